#include "launcher/common/base/json.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

namespace caisson::json {
namespace {

// Counts lines as the lexer pulls bytes, so that the SAX handler knows where it is.
struct Cursor {
  int line = 1;
  char last = 0;
};

class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, Cursor* cursor) : at_(at), cursor_(cursor) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    if (cursor_ != nullptr) {
      cursor_->last = *at_;
      if (*at_ == '\n') ++cursor_->line;
    }
    ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  Cursor* cursor_;
};

class Builder : public nlohmann::json_sax<Value> {
 public:
  Builder(const Bounds& bounds, const Cursor& cursor, const Placed& placed) : bounds_(bounds), cursor_(cursor), placed_(placed) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool v) override { return add(v); }
  // A number ends only at the byte behind it: the lexer has read one too far.
  bool number_integer(number_integer_t v) override { return add(v, true); }
  bool number_unsigned(number_unsigned_t v) override { return add(v, true); }
  bool number_float(number_float_t v, const string_t&) override { return add(v, true); }
  bool string(string_t& v) override { return add(std::move(v)); }
  bool binary(binary_t&) override { return stop("binary value"); }
  bool start_object(std::size_t) override { return open(Value::object()); }
  bool start_array(std::size_t) override { return open(Value::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& v) override {
    if (++values_ > bounds_.max_values) return stop("more than " + std::to_string(bounds_.max_values) + " values");
    if (stack_.back()->contains(v)) return stop("duplicate key " + quote(v));
    key_ = v;
    key_line_ = cursor_.line;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    std::string text = e.what();
    if (const auto colon = text.find("column"); colon != std::string::npos) text.erase(0, text.find(':', colon) + 2);
    else if (const auto bracket = text.find("] "); bracket != std::string::npos) text.erase(0, bracket + 2);
    return stop(text);
  }

  Value take() { return std::move(root_); }
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  bool stop(std::string_view why) {
    if (error_.empty()) error_ = "line " + std::to_string(cursor_.line) + ": " + std::string(why);
    return false;
  }

  Value* place(Value v, bool number) {
    if (++values_ > bounds_.max_values) return stop("more than " + std::to_string(bounds_.max_values) + " values"), nullptr;
    int line = cursor_.line - (number && cursor_.last == '\n' ? 1 : 0);
    Value* placed = nullptr;
    std::string token;
    if (stack_.empty()) {
      root_ = std::move(v);
      placed = &root_;
    } else if (stack_.back()->is_object()) {
      token = key_;
      line = key_line_;
      placed = &(*stack_.back())[key_];
      *placed = std::move(v);
    } else {
      if (placed_) token = std::to_string(stack_.back()->size());
      stack_.back()->push_back(std::move(v));
      placed = &stack_.back()->back();
    }
    if (placed_) placed_(stack_.size(), token, line);
    return placed;
  }

  bool add(Value v, bool number = false) { return place(std::move(v), number) != nullptr; }

  bool open(Value v) {
    if (stack_.size() >= bounds_.max_depth) return stop("nested deeper than " + std::to_string(bounds_.max_depth));
    Value* placed = place(std::move(v), false);
    if (placed != nullptr) stack_.push_back(placed);
    return placed != nullptr;
  }

  bool close() { return stack_.pop_back(), true; }

  const Bounds& bounds_;
  const Cursor& cursor_;
  const Placed& placed_;
  Value root_;
  std::vector<Value*> stack_;  // a parent array does not grow while its child is open, so these stay valid
  std::string key_, error_;
  int key_line_ = 1;
  std::size_t values_ = 0;
};

const Value* member(const Value& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

std::unexpected<Error> wrong_type(std::string_view key, std::string_view wanted) {
  return fail(Code::invalid_argument, "'" + std::string(key) + "' must be " + std::string(wanted));
}

}  // namespace

Result<Value> parse(std::string_view text, const Bounds& bounds, const Placed& placed) {
  if (text.size() > bounds.max_bytes)
    return fail(Code::invalid_argument, "line 1: larger than " + std::to_string(bounds.max_bytes) + " bytes");
  // nlohmann's lexer takes a NUL byte for the end of the input: what follows would be accepted unread.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos)
    return fail(Code::invalid_argument,
                "line " + std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(nul), '\n')) +
                    ": NUL byte");
  // The lexer skips a byte order mark: not JSON (RFC 8259, 8.1), and another parser might not skip it.
  if (text.starts_with("\xef\xbb\xbf")) return fail(Code::invalid_argument, "line 1: byte order mark");
  Cursor cursor;
  Builder builder(bounds, cursor, placed);
  const bool ok =
      Value::sax_parse(CountingIterator(text.data(), &cursor), CountingIterator(text.data() + text.size(), nullptr), &builder);
  if (!ok) return fail(Code::invalid_argument, builder.error().empty() ? "line 1: not JSON" : builder.error());
  return builder.take();
}

std::string dump(const Value& value, int indent) { return value.dump(indent, ' ', false, Value::error_handler_t::replace); }

Result<std::optional<std::string>> get_string(const Value& object, std::string_view key) {
  const Value* v = member(object, key);
  if (v == nullptr) return std::nullopt;
  if (!v->is_string()) return wrong_type(key, "a string");
  return v->get<std::string>();
}

Result<std::optional<std::int64_t>> get_int(const Value& object, std::string_view key) {
  const Value* v = member(object, key);
  if (v == nullptr) return std::nullopt;
  if (!v->is_number_integer()) return wrong_type(key, "an integer");
  if (v->is_number_unsigned() && v->get<std::uint64_t>() > INT64_MAX) return wrong_type(key, "a smaller integer");
  return v->get<std::int64_t>();
}

Result<std::optional<bool>> get_bool(const Value& object, std::string_view key) {
  const Value* v = member(object, key);
  if (v == nullptr) return std::nullopt;
  if (!v->is_boolean()) return wrong_type(key, "true or false");
  return v->get<bool>();
}

}  // namespace caisson::json
