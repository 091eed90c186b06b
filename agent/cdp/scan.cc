#include "agent/cdp/scan.h"

#include <algorithm>
#include <bitset>
#include <cstring>
#include <utility>

namespace caisson::cdp {
namespace {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
constexpr bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// What may follow. Nesting is a bit for each level, so that no input can exhaust the stack.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  // Calls member(key, value, whether the key has an escape, whether the value has one) for each member of the outermost object.
  template <class F>
  [[nodiscard]] bool object(F member) {
    spaces();
    open_ = at_;
    if (!take('{')) return why("message is no object");
    spaces();
    if (take('}')) return finish();
    do {
      spaces();
      const Span key = string();
      if (!key.there()) return why("no key where one must be");
      const bool escaped = escaped_;
      spaces();
      if (!take(':')) return why("no colon after a key");
      spaces();
      const std::size_t begin = at_;
      escaped_ = false;
      if (!value()) return false;
      if (!member(key, Span{begin, at_}, escaped, escaped_)) return false;
      spaces();
    } while (take(','));
    if (!take('}')) return why("object does not end");
    return finish();
  }

  [[nodiscard]] bool why(const char* what) {
    if (what_ == nullptr) what_ = what;
    return false;
  }
  [[nodiscard]] const char* what() const { return what_ != nullptr ? what_ : "text is no JSON"; }
  [[nodiscard]] std::size_t open() const { return open_; }

 private:
  [[nodiscard]] bool finish() {
    spaces();
    return at_ == text_.size() || why("bytes after the object");
  }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  [[nodiscard]] bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void spaces() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  // With its quotes. Sets escaped_ if a backslash is in it.
  [[nodiscard]] Span string() {
    const std::size_t begin = at_;
    escaped_ = false;
    if (!take('"')) return {};
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return {begin, at_};
      if (static_cast<unsigned char>(c) < 0x20) return {};
      if (c != '\\') continue;
      escaped_ = true;
      const char escape = peek();
      ++at_;
      if (escape == 'u') {
        if (text_.size() - std::min(at_, text_.size()) < 4 || !std::ranges::all_of(text_.substr(at_, 4), is_hex)) return {};
        at_ += 4;
      } else if (escape == '\0' || std::strchr("\"\\/bfnrt", escape) == nullptr) {
        return {};
      }
    }
    return {};
  }

  [[nodiscard]] bool digits() {
    const std::size_t begin = at_;
    while (is_digit(peek())) ++at_;
    return at_ > begin;
  }
  [[nodiscard]] bool number() {
    (void)take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) (void)take('-');
      if (!digits()) return false;
    }
    return true;
  }
  [[nodiscard]] bool scalar() {
    if (peek() == '"') return string().there();
    for (const std::string_view word : {"true", "false", "null"})
      if (text_.substr(at_).starts_with(word)) return at_ += word.size(), true;
    return number();
  }

  // One value of any depth. The outermost object is the first level.
  [[nodiscard]] bool value() {
    std::bitset<kMaxDepth> is_object;
    std::size_t depth = 0;
    for (;;) {
      spaces();
      bool entered = false;
      if (peek() == '{' || peek() == '[') {
        if (depth + 1 >= kMaxDepth) return why("message is nested too deeply");
        is_object[depth++] = text_[at_++] == '{';
        spaces();
        entered = true;
      } else if (!scalar()) {
        return why("text is no JSON");
      }
      // After a value: close what ends here, then a comma, then a key where the level is an object's.
      bool more = false;
      while (depth > 0 && !more) {
        spaces();
        const bool object = is_object[depth - 1];
        if (take(object ? '}' : ']')) {
          --depth;
          entered = false;
          continue;
        }
        if (!entered && !take(',')) return why("no comma between values");
        if (object && !key()) return why("no key where one must be");
        more = true;
      }
      if (depth == 0) return true;
    }
  }
  [[nodiscard]] bool key() {
    spaces();
    if (!string().there()) return false;
    spaces();
    return take(':');
  }

  const std::string_view text_;
  std::size_t at_ = 0, open_ = 0;
  bool escaped_ = false;
  const char* what_ = nullptr;
};

struct Known {
  std::string_view key;
  Member Message::* member;
};
constexpr Known kKnown[] = {{"id", &Message::id},         {"sessionId", &Message::session_id}, {"method", &Message::method},
                            {"params", &Message::params}, {"result", &Message::result},        {"error", &Message::error}};

}  // namespace

std::string_view unquoted(std::string_view value) {
  if (value.size() < 2 || value.front() != '"' || value.back() != '"') return {};
  return value.substr(1, value.size() - 2);
}

bool is_integer(std::string_view value) {
  if (value.starts_with('-')) value.remove_prefix(1);
  return !value.empty() && value.size() < 32 && std::ranges::all_of(value, is_digit);
}

Result<Message> scan(std::string_view text) {
  Scanner scanner(text);
  Message out;
  std::size_t members = 0, previous_end = 0;
  Member* first = nullptr;  // it takes the comma behind it; the others take the one before them
  const bool ok = scanner.object([&](Span key, Span value, bool escaped_key, bool escaped_value) {
    if (escaped_key) return scanner.why("a key of the message has an escape");
    if (++members == 2 && first != nullptr) first->whole.end = key.begin;
    const std::size_t begin = members == 1 ? key.begin : std::exchange(previous_end, value.end);
    previous_end = value.end;
    const std::string_view name = unquoted(key.of(text));
    const auto* known = std::ranges::find(kKnown, name, &Known::key);
    if (known == std::end(kKnown)) return true;
    Member& member = out.*known->member;
    if (member.value.there()) return scanner.why("a key of the message is there twice");
    if (escaped_value && (known->member == &Message::method || known->member == &Message::session_id))
      return scanner.why("the method or the session of the message has an escape");
    member = {value, {begin, value.end}};
    if (members == 1) first = &member;
    return true;
  });
  if (!ok) return fail(Code::invalid_argument, scanner.what());
  out.open = scanner.open();
  return out;
}

std::string_view inner_value(std::string_view text, std::string_view wanted) {
  Scanner scanner(text);
  std::string_view found;
  std::size_t count = 0;
  const bool ok = scanner.object([&](Span key, Span value, bool escaped_key, bool) {
    if (escaped_key || unquoted(key.of(text)) != wanted) return true;
    ++count;
    found = value.of(text);
    return true;
  });
  return ok && count == 1 ? found : std::string_view();
}

std::string_view inner_string(std::string_view text, std::string_view wanted) {
  const std::string_view found = unquoted(inner_value(text, wanted));
  return found.contains('\\') ? std::string_view() : found;
}

}  // namespace caisson::cdp
