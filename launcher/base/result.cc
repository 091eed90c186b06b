#include "launcher/base/result.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

namespace caisson {
namespace {

struct CodeRow {
  Code code;
  std::string_view name;
  int exit_status;  // documented in `caisson --help`
};
constexpr CodeRow kCodes[] = {
    {Code::invalid_argument, "invalid_argument", 2},
    {Code::not_found, "not_found", 3},
    {Code::permission_denied, "permission_denied", 4},
    {Code::already_exists, "already_exists", 5},
    {Code::unavailable, "unavailable", 6},
    {Code::limit, "limit", 7},
    {Code::timeout, "timeout", 8},
    {Code::protocol, "protocol", 9},
    {Code::io, "io", 10},
    {Code::internal, "internal", 11},
};

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

const CodeRow& row(Code code) {
  for (const CodeRow& r : kCodes)
    if (r.code == code) return r;
  return kCodes[std::size(kCodes) - 1];
}

}  // namespace

std::string_view code_name(Code code) { return row(code).name; }
int code_exit_status(Code code) { return row(code).exit_status; }

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
