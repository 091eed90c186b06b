#include "launcher/gate/trust.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "launcher/common/base/sys.h"
#include "launcher/common/egress/trust.h"

namespace caisson::gate {
namespace {

constexpr std::size_t kMostBytes = 4U << 20, kMostCertificate = 8192;
constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----\n", kEnd = "-----END CERTIFICATE-----\n";

void add(std::string& to, const std::string& path) {
  const auto text = sys::read_file(path, kMostBytes);
  if (!text) return;  // there is none, or not for us; the opener says what it lacks
  to += *text;
  if (!to.empty() && !to.ends_with('\n')) to += '\n';
}

std::string believed(std::string_view authority) {
  std::string out;
  add(out, egress::kSystemAuthorities);
  std::vector<std::string> operators;
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator(egress::kOperatorsAuthorities, none))
    if (file.path().extension() == ".pem" || file.path().extension() == ".crt") operators.push_back(file.path());
  std::ranges::sort(operators);
  for (const std::string& path : operators) add(out, path);
  return out.append(authority);
}

}  // namespace

bool is_certificate(std::string_view text) {
  if (text.size() > kMostCertificate || !text.starts_with(kBegin) || !text.ends_with(kEnd)) return false;
  text.remove_prefix(kBegin.size());
  text.remove_suffix(std::min(text.size(), kEnd.size()));
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("+/=\n").find(c) != std::string_view::npos;
  });
}

Status write_trust(const std::string& path, std::string_view authority) {
  const std::string wanted = believed(authority);
  TRY_ASSIGN(const Fd file, sys::open(path, O_RDWR | O_NOFOLLOW));
  TRY_ASSIGN(const std::string now, sys::read_fd(file.get(), 4 * kMostBytes));
  const auto [same, end] = std::ranges::mismatch(wanted, now);
  for (auto at = static_cast<std::size_t>(same - wanted.begin()); at < wanted.size();) {
    const ssize_t wrote = ::pwrite(file.get(), wanted.data() + at, wanted.size() - at, static_cast<off_t>(at));
    if (wrote < 0) return sys_error("write " + path);
    at += static_cast<std::size_t>(wrote);
  }
  if (now.size() > wanted.size() && ::ftruncate(file.get(), static_cast<off_t>(wanted.size())) != 0)
    return sys_error("truncate " + path);
  return {};
}

Status show_trust(const std::string& path) {
  const std::string own = std::filesystem::path(path).parent_path().parent_path();
  struct stat st{};
  if (::stat(own.c_str(), &st) != 0 || ::chmod(own.c_str(), (st.st_mode & 07777) | 0011) != 0) return sys_error("chmod " + own);
  return {};
}

}  // namespace caisson::gate
