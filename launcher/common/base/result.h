// Result<T> and Error: how every fallible function of Caisson reports. No exceptions cross a function boundary in the
// launcher; the agent converts Asio and std exceptions at two places. Text in `what` is for people and is never parsed.
#pragma once

#include <cerrno>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "launcher/common/base/word.h"

namespace caisson {

// Closed set. The exit status of the command is two more, as `caisson --help` says.
enum class Code {
  invalid_argument,   // the caller's input is wrong; repeating it cannot help
  not_found,          // the named thing does not exist
  permission_denied,  // policy or kernel refused
  already_exists,
  unavailable,  // the kernel or the outer container does not offer it
  limit,        // a bound of ours was reached; retry later may help
  timeout,
  protocol,  // the peer broke the IPC protocol: fatal for that peer
  io,        // a system call failed
  internal,  // an invariant of ours does not hold
};
constexpr std::string_view words(Code) {
  return "invalid_argument not_found permission_denied already_exists unavailable limit timeout protocol io internal";
}
static_assert(count_words(words(Code{})) == static_cast<int>(Code::internal) + 1);

[[nodiscard]] std::string_view code_name(Code code);
[[nodiscard]] int code_exit_status(Code code);

class [[nodiscard]] Error {
 public:
  Error(Code code, std::string what, int sys = 0) : code(code), sys(sys), what(std::move(what)) {}

  // Puts context in front, once per layer: wrap("load policy 'shell'").
  [[nodiscard]] Error wrap(std::string_view context) && {
    what.insert(0, ": ").insert(0, context);
    return std::move(*this);
  }
  // "what: EACCES (Permission denied)" when an errno is known.
  [[nodiscard]] std::string text() const;

  Code code;
  int sys;           // errno, or 0
  std::string what;  // "verb object": mount_setattr '/srv'
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

// An Error from errno; ENOENT, EACCES, ... choose the code.
[[nodiscard]] std::unexpected<Error> sys_error(std::string what, int sys = errno);
[[nodiscard]] inline std::unexpected<Error> fail(Code code, std::string what) {
  return std::unexpected(Error(code, std::move(what)));
}

// "EACCES" for 13; "errno 4242" for a number without a name.
[[nodiscard]] std::string errno_name(int sys);

// Untrusted text for messages: control characters, quotes and non-ASCII bytes escaped, cut at max bytes.
[[nodiscard]] std::string quote(std::string_view untrusted, std::size_t max = 200);

}  // namespace caisson

#define CAISSON_CONCAT_(a, b) a##b
#define CAISSON_CONCAT(a, b) CAISSON_CONCAT_(a, b)
// Statements only: TRY(expr); and TRY_ASSIGN(auto fd, open(...));
#define TRY(expr)                                                                                        \
  do {                                                                                                   \
    if (auto try_result_ = (expr); !try_result_) return std::unexpected(std::move(try_result_).error()); \
  } while (false)
#define TRY_ASSIGN(decl, ...) TRY_ASSIGN_(CAISSON_CONCAT(try_value_, __LINE__), decl, __VA_ARGS__)
#define TRY_ASSIGN_(tmp, decl, ...)                         \
  auto tmp = (__VA_ARGS__);                                 \
  if (!tmp) return std::unexpected(std::move(tmp).error()); \
  decl = std::move(*tmp)

// As TRY and TRY_ASSIGN, inside a coroutine: CO_TRY(co_await f()); CO_TRY_ASSIGN(auto x, co_await g());
#define CO_TRY(expr)                                                                                        \
  do {                                                                                                      \
    if (auto try_result_ = (expr); !try_result_) co_return std::unexpected(std::move(try_result_).error()); \
  } while (false)
#define CO_TRY_ASSIGN(decl, ...) CO_TRY_ASSIGN_(CAISSON_CONCAT(try_value_, __LINE__), decl, __VA_ARGS__)
#define CO_TRY_ASSIGN_(tmp, decl, ...)                         \
  auto tmp = (__VA_ARGS__);                                    \
  if (!tmp) co_return std::unexpected(std::move(tmp).error()); \
  decl = std::move(*tmp)
