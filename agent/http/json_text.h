// JsonText: the text of a JSON value in parts, so that a long one does not hold up other requests. Together the parts are the
// bytes of json::dump().
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "agent/http/coro.h"
#include "launcher/common/base/json.h"

namespace caisson::http {

// A smaller value is written in one part.
inline constexpr std::size_t kAtOnce = 32 * 1024;

// About the length of its text, in which a control character takes six bytes.
[[nodiscard]] std::size_t weight(const json::Value& value);

class JsonText {
 public:
  // `value` must outlive this.
  explicit JsonText(const json::Value& value) : next_(&value) {}
  // Appends a part: at worst (control characters) some ms of work, mostly much less. false: it was the last.
  [[nodiscard]] bool append_to(std::string& out);

 private:
  struct Open {
    const json::Value* of;
    json::Value::const_iterator at;
  };
  void begin(const json::Value& value, std::string& out);
  void go_on(std::string& out);

  const json::Value* next_;            // to be begun
  const std::string* text_ = nullptr;  // a string that is not written to its end
  std::size_t written_ = 0;            // of it
  std::vector<Open> open_;
};

// The whole text, with pauses in which other requests are served.
[[nodiscard]] asio::awaitable<std::string> json_text(json::Value value);

}  // namespace caisson::http
