#include "agent/http/json_text.h"

#include <algorithm>

#include "agent/http/lane.h"

namespace caisson::http {
namespace {

constexpr std::size_t kOfOneValue = 16;

// The first position in `text` from `at` on that cuts no UTF-8 sequence.
std::size_t between_characters(const std::string& text, std::size_t at) {
  for (int more = 0; more < 3 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80; ++more) ++at;
  return at;
}

}  // namespace

std::size_t weight(const json::Value& value) {
  if (value.is_string()) return kOfOneValue + value.get_ref<const std::string&>().size();
  std::size_t sum = kOfOneValue;
  if (value.is_structured())
    for (const auto& [key, member] : value.items()) sum += (value.is_object() ? key.size() : 0) + weight(member);
  return sum;
}

bool JsonText::append_to(std::string& out) {
  const std::size_t enough = out.size() + kAtOnce;
  while (out.size() < enough) {
    if (next_ != nullptr) begin(*std::exchange(next_, nullptr), out);
    else if (text_ != nullptr || !open_.empty()) go_on(out);
    else return false;
  }
  return true;
}

void JsonText::begin(const json::Value& value, std::string& out) {
  if (value.is_string()) {
    out += '"';
    text_ = &value.get_ref<const std::string&>();
    written_ = 0;
  } else if (value.is_structured()) {
    out += value.is_object() ? '{' : '[';
    open_.push_back({&value, value.begin()});
  } else {
    out += json::dump(value);
  }
}

void JsonText::go_on(std::string& out) {
  if (text_ != nullptr) {
    const std::size_t end = between_characters(*text_, std::min(text_->size(), written_ + kAtOnce));
    const std::string quoted = json::dump(json::Value(text_->substr(written_, end - written_)));
    out.append(quoted, 1, quoted.size() - 2);
    written_ = end;
    if (end < text_->size()) return;
    out += '"';
    text_ = nullptr;
    return;
  }
  Open& last = open_.back();
  const bool object = last.of->is_object();
  if (last.at == last.of->end()) {
    out += object ? '}' : ']';
    open_.pop_back();
    return;
  }
  if (last.at != last.of->begin()) out += ',';
  if (object) out += json::dump(json::Value(last.at.key())) + ':';
  next_ = &*last.at++;
}

asio::awaitable<std::string> json_text(json::Value value) {
  std::string text;
  JsonText parts(value);
  while (parts.append_to(text)) co_await pause();
  co_return text;
}

}  // namespace caisson::http
