#include "launcher/cli/audit/show.h"

#include <algorithm>
#include <charconv>

#include "launcher/common/base/sys.h"

namespace caisson::audit {
namespace {

// Fields that a reader wants first, in this order; the rest follows by name.
constexpr std::string_view kFirst[] = {"session", "exec",   "domain",    "label",  "mechanism", "step", "state", "tier",  "argv",
                                       "cwd",     "signal", "exit_code", "reason", "why",       "what", "errno", "detail"};
constexpr std::string_view kHidden[] = {"seq", "time", "mono_us", "event", "prev", "hash"};

struct ColourRow {
  std::string_view end;  // of the event's name
  std::string_view code;
};
constexpr ColourRow kColours[] = {
    {"_refused", "\x1b[31m"}, {"_violation", "\x1b[1;31m"}, {"limit_hit", "\x1b[33m"},
    {"_request", "\x1b[36m"}, {"_step", "\x1b[2m"},         {"", "\x1b[32m"},
};

bool plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::string_view("_-./:@%+,").contains(c);
}

std::string text_of(const json::Value& record, const char* key) {
  const auto it = record.find(key);
  return it == record.end() ? "?" : show_value(*it);
}

void field(std::string& out, std::string_view key, const json::Value& value, const Style& style) {
  std::string text = show_value(value);
  if (style.max_value != 0 && text.size() > style.max_value) text = text.substr(0, style.max_value) + "...";
  out.append("  ").append(show_value(std::string(key))).append("=").append(text);
}

}  // namespace

std::string show_value(const json::Value& value) {
  if (value.is_array()) {
    std::string out = "[";
    for (const json::Value& item : value) out.append(out.size() > 1 ? " " : "").append(show_value(item));
    return out + "]";
  }
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (!text.empty() && std::ranges::all_of(text, plain)) return text;
  }
  return value.dump(-1, ' ', true, json::Value::error_handler_t::replace);
}

bool Filter::match(const json::Value& record) const {
  const auto is = [&](const char* key, auto&& test) {
    const auto it = record.find(key);
    return it != record.end() && it->is_string() && test(it->template get_ref<const std::string&>());
  };
  if (!since.empty() && !is("time", [&](const std::string& time) { return time >= since; })) return false;
  const auto wanted = [&](const std::string& event) { return std::ranges::find(events, event) != events.end(); };
  return events.empty() || is("event", wanted);
}

std::string show(const json::Value& record, const Style& style) {
  std::string time = text_of(record, "time");
  if (time.size() == 27 && time[10] == 'T') time[10] = ' ', time.pop_back();
  std::string seq = text_of(record, "seq"), event = text_of(record, "event"), colour;
  if (style.colour)
    for (const ColourRow& row : kColours)
      if (colour.empty() && event.ends_with(row.end)) colour = row.code;
  const auto pad = [](std::size_t width, std::size_t used) { return std::string(used < width ? width - used : 0, ' '); };
  std::string out = time + pad(7, seq.size()) + seq + "  ";
  out.append(colour).append(event).append(colour.empty() ? "" : "\x1b[0m").append(pad(15, event.size()));
  for (const std::string_view key : kFirst)
    if (const auto it = record.find(key); it != record.end()) field(out, key, *it, style);
  for (const auto& [key, value] : record.items())
    if (std::ranges::find(kFirst, key) == std::end(kFirst) && std::ranges::find(kHidden, key) == std::end(kHidden))
      field(out, key, value, style);
  return out;
}

std::string show_broken(std::string_view line, const Style& style) {
  const std::string text = quote(line, style.max_value == 0 ? line.size() : style.max_value);
  return (style.colour ? "\x1b[1;31mnot a record\x1b[0m: " : "not a record: ") + text;
}

std::optional<std::string> since_from(std::string_view text, std::int64_t now_ns) {
  std::int64_t amount = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
  if (error != std::errc{} || amount < 0) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const std::int64_t seconds = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : unit == "d" ? 86400 : 0;
  if (seconds != 0 && amount < 100'000'000) return sys::rfc3339(now_ns - amount * seconds * 1'000'000'000);
  // A date or a time of day on one: a beginning of RFC 3339 compares rightly as text.
  static constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd.ddddddZ";
  if (text.size() < 10 || text.size() > kShape.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (i + 1 == text.size() && i >= 18 && text[i] == 'Z') return std::string(text.substr(0, i));
    if (kShape[i] == 'd' ? !digit : text[i] != kShape[i] && !(i == 10 && text[i] == ' ')) return std::nullopt;
  }
  std::string out(text);
  if (out.size() > 10) out[10] = 'T';
  return out;
}

}  // namespace caisson::audit
