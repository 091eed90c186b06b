// The input and output of every operation of the file worker: a request's head and bytes, then an answer or a Failure. Failure is
// a type of its own beside Error (common/base/result.h) because clients get its errno, path and kind as separate fields of a
// FileOperationError; TRY works with both.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>

#include "agent/frames/frame.h"
#include "launcher/common/base/result.h"

namespace caisson::worker {

// number: an errno, or 0 if `kind` names the failure ("invalid_target", "decode_error", ...). text: a message, where errno has
// none.
struct Failure {
  int number = 0;
  std::string path;
  std::string kind;
  std::string text;
};

template <class T>
using Done = std::expected<T, Failure>;

[[nodiscard]] inline std::unexpected<Failure> failed(int number, std::string path) {
  return std::unexpected(Failure{number, std::move(path), "", ""});
}
[[nodiscard]] inline std::unexpected<Failure> refused(std::string kind, std::string path, std::string text, int number = 0) {
  return std::unexpected(Failure{number, std::move(path), std::move(kind), std::move(text)});
}

// The most bytes of an answer that grows with its findings. A longer answer is cut and marked as cut.
inline constexpr std::size_t kMostAnswer = 12 * 1024 * 1024;

// One request. `cancelled` becomes true when its answer is no longer awaited; long operations check it.
struct Request {
  json::Value head;
  std::string body;
  std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);

  [[nodiscard]] std::string text(const char* name) const {
    return json::get_string(head, name).value_or(std::nullopt).value_or("");
  }
  [[nodiscard]] std::optional<std::string> text_if(const char* name) const {
    return json::get_string(head, name).value_or(std::nullopt);
  }
  [[nodiscard]] bool flag(const char* name) const { return json::get_bool(head, name).value_or(std::nullopt).value_or(false); }
  [[nodiscard]] std::optional<std::int64_t> number(const char* name) const {
    return json::get_int(head, name).value_or(std::nullopt);
  }
  [[nodiscard]] std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> out;
    if (const auto it = head.find(name); it != head.end() && it->is_array())
      for (const json::Value& item : *it)
        if (item.is_string()) out.push_back(item.get<std::string>());
    return out;
  }
  [[nodiscard]] bool stopped() const { return cancelled->load(std::memory_order_relaxed); }
};

struct Answer {
  json::Value head = json::Value::object();
  std::string body;
};
using Outcome = Done<Answer>;

}  // namespace caisson::worker
