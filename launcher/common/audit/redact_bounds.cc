// Bounding and escaping of a record's fields (redact.h).
#include "launcher/common/audit/redact.h"

namespace caisson::audit {
namespace {

struct Cuts {
  std::size_t string_bytes;
  std::size_t items;
};
// Tried in turn: the first that makes the record fit wins. A string byte takes up to six bytes when escaped.
constexpr Cuts kCuts[] = {{8192, 4096}, {2048, 512}, {512, 128}, {128, 32}, {64, 16}, {16, 4}};

std::string ascii(const json::Value& value) { return value.dump(-1, ' ', true, json::Value::error_handler_t::replace); }

// Never inside a character: the rest of one would read as broken text.
std::string_view start_of(std::string_view text, std::size_t max) {
  std::size_t end = max;
  while (end > 0 && max - end < 4 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

json::Value marker(std::size_t before) { return {{"cut", before}}; }

json::Value cut(const json::Value& value, const Cuts& cuts) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text.size() <= cuts.string_bytes) return value;
    return {{"cut", text.size()}, {"start", std::string(start_of(text, cuts.string_bytes / 2))}};
  }
  if (value.is_array()) {
    json::Value out = json::Value::array();
    for (const json::Value& item : value) {
      if (out.size() == cuts.items) {
        out.push_back(marker(value.size()));
        break;
      }
      out.push_back(cut(item, cuts));
    }
    return out;
  }
  if (value.is_object()) {
    json::Value out = json::Value::object();
    for (const auto& [key, member] : value.items()) {
      if (out.size() == cuts.items) {
        out["cut"] = value.size();
        break;
      }
      const std::string_view name = key.size() <= cuts.string_bytes ? std::string_view(key) : start_of(key, cuts.string_bytes);
      out[std::string(name)] = cut(member, cuts);
    }
    return out;
  }
  return value;
}

}  // namespace

std::string fit(const json::Value& value, std::size_t max_bytes) {
  if (value.is_null()) return "{}";
  std::string text = ascii(value);
  const std::size_t before = text.size();
  for (const Cuts& cuts : kCuts) {
    if (text.size() <= max_bytes) return text;
    text = ascii(cut(value, cuts));
  }
  return text.size() <= max_bytes ? text : ascii(marker(before));
}

}  // namespace caisson::audit
