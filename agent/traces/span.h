// Span: one request, as OpenTelemetry has it, with what the launcher did for it. A plain value that travels with the request; the
// exporter takes it at the request's end. It has no query, no body, no command and no credential.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace caisson::traces {

// Ids as the wire has them: lower-case hexadecimal digits.
struct Parent {
  std::string trace, span;  // 32 and 16 digits
  bool sampled = true;
};
// The client's `traceparent` (W3C Trace Context). nullopt: not valid, and so not followed.
[[nodiscard]] std::optional<Parent> parse_traceparent(std::string_view text);
// The client's `tracestate` if all of it is valid and at most 512 bytes; otherwise "".
[[nodiscard]] std::string_view valid_tracestate(std::string_view text);
// `bytes` random bytes as digits, never all zero.
[[nodiscard]] std::string new_id(std::size_t bytes);

// When something began, and how long it took by a clock that does not jump.
class Period {
 public:
  void end() { took_ = std::chrono::steady_clock::now() - since_; }
  [[nodiscard]] std::int64_t start_ns() const { return start_.time_since_epoch().count(); }
  [[nodiscard]] std::int64_t end_ns() const { return start_ns() + took_.count(); }

 private:
  using Nanoseconds = std::chrono::nanoseconds;
  std::chrono::time_point<std::chrono::system_clock, Nanoseconds> start_ = std::chrono::system_clock::now();
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  Nanoseconds took_{};
};

using Attributes = std::vector<std::pair<std::string_view, std::string>>;

// Work of the launcher.
struct Child {
  std::string_view name;
  std::string id = new_id(8);
  Attributes attributes = {};
  std::string error = {};  // its code; empty: it succeeded
  Period period = {};
};

struct Span {
  static constexpr std::size_t kMostChildren = 32;

  std::string trace, id, parent, state;  // parent, state: empty without a client's
  std::string method, scheme, path, request_id, workspace;
  std::string_view route = {};  // of the route table, which is constant
  std::string session = {};     // the launcher's id of the one that it made or used
  int status = 0;               // 0: the client left without an answer
  bool wanted = true;           // probes are not
  bool ended = false;           // what comes now belongs to no request any more
  Period period = {};
  std::vector<Child> children = {};
  std::uint32_t left_out = 0;  // children beyond these
};

}  // namespace caisson::traces
