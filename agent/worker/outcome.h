// What every operation of the file worker gets and gives: a request's head and bytes, an answer or the reason why there is none.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>

#include "agent/frames/frame.h"

namespace caisson::worker {

// number: an errno, or 0 where `kind` says it ("invalid_target", "decode_error", ...). text: in words, where errno does not say
// it.
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

// The most bytes of an answer that grows with what is found; what is more is cut, and said to be.
inline constexpr std::size_t kMostAnswer = 12 * 1024 * 1024;

// One request. `cancelled` becomes true when nobody waits for the answer any more; long operations look.
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

#define WORKER_CONCAT_(a, b) a##b
#define WORKER_CONCAT(a, b) WORKER_CONCAT_(a, b)
#define GIVE(expr)                                                                                          \
  do {                                                                                                      \
    if (auto give_result_ = (expr); !give_result_) return std::unexpected(std::move(give_result_).error()); \
  } while (false)
#define GIVE_ASSIGN(decl, ...) GIVE_ASSIGN_(WORKER_CONCAT(give_value_, __LINE__), decl, __VA_ARGS__)
#define GIVE_ASSIGN_(tmp, decl, ...)                        \
  auto tmp = (__VA_ARGS__);                                 \
  if (!tmp) return std::unexpected(std::move(tmp).error()); \
  decl = std::move(*tmp)
