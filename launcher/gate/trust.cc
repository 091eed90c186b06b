#include "launcher/gate/trust.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "launcher/common/base/sys.h"
#include "launcher/common/egress/trust.h"
#include "launcher/gate/files.h"
#include "launcher/gate/store.h"

namespace caisson::gate {
namespace {

constexpr std::size_t kMostBytes = 4U << 20, kMostCertificate = 14 * 1024, kMostEntries = 4096, kHashDigits = 8;
constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----\n", kEnd = "-----END CERTIFICATE-----\n";

bool is_certificate(std::string_view text) {
  if (text.size() > kMostCertificate || !text.starts_with(kBegin) || !text.ends_with(kEnd)) return false;
  text.remove_prefix(kBegin.size());
  text.remove_suffix(std::min(text.size(), kEnd.size()));
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("+/=\n").find(c) != std::string_view::npos;
  });
}

void append(std::string& to, std::string_view text) {
  to += text;
  if (!to.empty() && !to.ends_with('\n')) to += '\n';
}

// others: what its mode lets every user read, for every session will.
Result<std::string> read_regular(const std::string& path, bool others) {
  struct stat st{};
  TRY_ASSIGN(const Fd file, open_regular(path, st));
  if (others && (st.st_mode & S_IROTH) == 0) return fail(Code::permission_denied, path + " is not for everybody to read");
  if (std::cmp_greater(st.st_size, kMostBytes)) return fail(Code::limit, path + " has more than 4 MiB");
  return sys::read_fd(file.get(), kMostBytes);
}

// Of what is made here, and must not be taken for the system's.
bool is_made(const std::string& name) {
  return name == egress::kBundle + 1 || name == egress::kChromiumPolicy + 1 || (egress::kJavaStore + 1) == name + "/cacerts";
}

// What lies in the system's store beside the file with all of them: links by name and by hash, and what somebody has put there
// for everybody: a server's key may lie there, too. Links lead to where the system's do, for a session sees that as well. Folders
// stay away; the JVM's is made anew.
Store systems() {
  namespace fs = std::filesystem;
  Store out;
  std::error_code error;
  std::size_t left = kMostEntries;
  for (fs::directory_iterator it(egress::kSystemStore, error), end; !error && it != end && left-- > 0; it.increment(error)) {
    const std::string name = it->path().filename();
    std::error_code none;
    if (is_made(name) || name.starts_with('.')) continue;
    if (it->is_symlink(none)) {
      const fs::path target = fs::read_symlink(it->path(), none);
      if (none) continue;
      const bool beside = !target.is_absolute() && target == target.filename();
      out.links[name] = beside ? target : (egress::kSystemStore / target).lexically_normal();
    } else if (it->is_regular_file(none)) {
      if (auto bytes = read_regular(it->path(), true); bytes) out.files[name] = std::move(*bytes);
    }
  }
  return out;
}

}  // namespace

std::optional<Authority> read_authority(std::string_view text) {
  const std::string_view hash = text.substr(0, std::min(kHashDigits, text.size())), rest = text.substr(hash.size());
  const bool digits = hash.size() == kHashDigits &&
                      std::ranges::all_of(hash, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (!digits || !rest.starts_with('\n') || !is_certificate(rest.substr(1))) return std::nullopt;
  return Authority{std::string(hash), std::string(rest.substr(1))};
}

Status Trust::write(const std::string& store, bool opened) {
  const Authority* const opener = opened && authority_ ? &*authority_ : nullptr;
  std::string of =
      stamp_of(egress::kSystemStore) + stamp_of(egress::kSystemAuthorities) + stamp_of(egress::kOperatorsAuthorities);
  for (const std::string& path : egress::operators_authorities()) of += stamp_of(path);
  if (opener != nullptr) of += opener->certificate;
  Written& last = written_[store];
  if (last.of == of && last.error.empty()) return {};
  Status wrong;
  const Status done = fill(store, opener, wrong);
  const bool told = !done && last.of == of && last.error == done.error().text();
  last = {.of = std::move(of), .error = done ? "" : done.error().text()};
  return told ? Status() : done ? wrong : done;
}

// Whatever is wrong with one file, the others are believed.
Status Trust::fill(const std::string& store, const Authority* opener, Status& wrong) const {
  Store made = systems();
  std::string bundle, added;
  const auto systems_own = read_regular(egress::kSystemAuthorities, true);
  if (systems_own) append(bundle, *systems_own);
  else if (systems_own.error().sys != ENOENT) wrong = std::unexpected(systems_own.error());
  for (const std::string& path : egress::operators_authorities()) {
    const auto text = read_regular(path, false);
    if (!text) {
      wrong = std::unexpected(text.error());
      continue;
    }
    auto found = named_certificates(*text);
    if (!found) wrong = std::unexpected(std::move(found).error().wrap(path));
    else
      for (auto& [hash, pem] : *found) added += pem, made.add(hash, std::move(pem));
  }
  if (opener != nullptr) added += opener->certificate, made.add(opener->hash, opener->certificate);
  append(bundle, added);
  // Without their slash: names in the store.
  made.files[egress::kJavaStore + 1] = java_store(certificates_of(bundle));
  made.files[egress::kChromiumPolicy + 1] = chromium_policy(certificates_of(added));
  made.files[egress::kBundle + 1] = std::move(bundle);
  return made.put(store);
}

Status show_trust(const std::string& store) {
  const std::string own = std::filesystem::path(store).parent_path().parent_path();
  struct stat st{};
  if (::stat(own.c_str(), &st) != 0 || ::chmod(own.c_str(), (st.st_mode & 07777) | 0011) != 0) return sys_error("chmod " + own);
  return {};
}

}  // namespace caisson::gate
