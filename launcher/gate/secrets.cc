#include "launcher/gate/secrets.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <span>

#include "launcher/common/base/sys.h"
#include "launcher/common/egress/protocol.h"
#include "launcher/egress/list/binding.h"
#include "launcher/gate/files.h"

namespace caisson::gate {
namespace {

constexpr unsigned kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

Result<Fd> sealed(std::string_view bytes) {
  Fd file(::memfd_create("secret", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const bool made = file && ::write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) &&
                    ::fcntl(file.get(), F_ADD_SEALS, kSeals) == 0;
  if (!made) return sys_error("memory file for a secret");
  return file;
}

// Its beginning, without a line's end.
Result<std::string_view> beginning(const std::string& path, std::span<char> into) {
  struct stat st{};
  TRY_ASSIGN(const Fd file, open_regular(path, st));
  const ssize_t size = ::pread(file.get(), into.data(), into.size(), 0);
  if (size < 0) return sys_error(path);
  std::string_view secret(into.data(), static_cast<std::size_t>(size));
  if (secret.ends_with('\n')) secret.remove_suffix(1);
  return secret;
}

}  // namespace

Result<std::string> credential_of(const std::string& path) {
  char bytes[kMaxCredentialFile + 2];
  const auto text = beginning(path, bytes);
  Result<std::string> out = fail(Code::invalid_argument, path + " has no credential: it is empty, or has more than 1,024 bytes");
  if (!text) out = std::unexpected(text.error());
  else if (!text->empty() && text->size() <= kMaxCredentialFile) out = std::string(*text);
  ::explicit_bzero(bytes, sizeof bytes);
  return out;
}

Result<Fd> secret_of(const std::string& path) {
  char bytes[egress::kMaxSecret + 2];
  TRY_ASSIGN(const std::string_view secret, beginning(path, bytes));
  Result<Fd> out = fail(Code::invalid_argument, path + " has no secret: 12 to 1,024 printable characters, and nothing else");
  if (egress::is_secret(secret)) out = sealed(secret);
  ::explicit_bzero(bytes, sizeof bytes);
  return out;
}

Result<Fd> secret_in(std::string_view text) { return sealed(text); }

Result<std::string> secret_text(const Fd& secret) {
  char bytes[kMaxCredentialFile];
  const ssize_t size = ::pread(secret.get(), bytes, sizeof bytes, 0);
  if (size < 0) return sys_error("read a secret's memory file");
  std::string out(bytes, static_cast<std::size_t>(size));
  ::explicit_bzero(bytes, sizeof bytes);
  return out;
}

Result<Fd> no_secret() { return sealed({}); }

Result<Fd> new_seed() {
  char bytes[egress::kSeedBytes];
  if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) return sys_error("getrandom");
  Result<Fd> out = sealed({bytes, sizeof bytes});
  ::explicit_bzero(bytes, sizeof bytes);
  return out;
}

}  // namespace caisson::gate
