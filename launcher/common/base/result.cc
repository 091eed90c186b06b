#include "launcher/common/base/result.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <iterator>

namespace caisson {
namespace {

struct ErrnoRow {
  Code code;
  std::array<int, 6> numbers;
};
constexpr ErrnoRow kErrnoCodes[] = {{Code::not_found, {ENOENT, ESRCH, ENOTDIR}},
                                    {Code::permission_denied, {EACCES, EPERM, EROFS}},
                                    {Code::already_exists, {EEXIST}},
                                    {Code::unavailable, {ENOSYS, EOPNOTSUPP, EAFNOSUPPORT}},
                                    {Code::limit, {EAGAIN, EMFILE, ENFILE, ENOSPC, EDQUOT, ENOMEM}},
                                    {Code::timeout, {ETIMEDOUT}},
                                    {Code::invalid_argument, {EINVAL, ENAMETOOLONG, ELOOP, E2BIG}}};

}  // namespace

std::string_view code_name(Code code) { return word(words(code), static_cast<std::size_t>(code)); }
int code_exit_status(Code code) { return static_cast<int>(code) + 2; }

std::string errno_name(int sys) {
  if (const char* name = ::strerrorname_np(sys)) return name;
  return "errno " + std::to_string(sys);
}

std::string Error::text() const {
  if (sys == 0) return what;
  const char* description = ::strerrordesc_np(sys);
  return what + ": " + errno_name(sys) + (description ? std::string(" (") + description + ")" : "");
}

std::unexpected<Error> sys_error(std::string what, int sys) {
  Code code = Code::io;
  for (const auto& [meaning, numbers] : kErrnoCodes)
    if (sys != 0 && std::ranges::find(numbers, sys) != numbers.end()) code = meaning;
  return std::unexpected(Error(code, std::move(what), sys));
}

std::string quote(std::string_view untrusted, std::size_t max) {
  std::string out = "'";
  for (const char byte : untrusted.substr(0, max)) {
    const auto c = static_cast<unsigned char>(byte);
    if (c == '\'' || c == '\\') {
      (out += '\\') += byte;
    } else if (c < 0x20 || c >= 0x7f) {
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\x%02x", c);
      out += hex;
    } else {
      out += byte;
    }
  }
  if (untrusted.size() > max) out += "...";
  return out + "'";
}

}  // namespace caisson
