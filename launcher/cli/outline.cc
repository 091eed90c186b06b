// Documents as text (commands.h: outline).
#include <algorithm>

#include "launcher/cli/audit/show.h"
#include "launcher/cli/commands.h"
#include "launcher/common/base/json.h"

namespace caisson::cli {
namespace {

bool flat(const json::Value& value) {
  return std::ranges::none_of(value, [](const json::Value& item) { return item.is_structured() && !item.empty(); });
}

// "pid_ns  no  errno=EPERM": small objects on one line.
std::string inline_members(const json::Value& object) {
  std::string out;
  for (const auto& [key, value] : object.items())
    out.append(out.empty() ? "" : "  ").append(audit::show_value(key) + "=" + audit::show_value(value));
  return out;
}

// Sentences stay as they are; what could move a terminal's cursor does not.
std::string sentence(const json::Value& value) {
  if (!value.is_string()) return audit::show_value(value);
  const std::string escaped = value.dump(-1, ' ', true, json::Value::error_handler_t::replace);
  return escaped.contains('\\') ? escaped : escaped.substr(1, escaped.size() - 2);
}

void append(std::string& out, const json::Value& value, std::size_t depth) {
  const std::string indent(2 * depth, ' ');
  if (value.is_array()) {
    for (const json::Value& item : value)
      out.append(indent).append("- ").append(item.is_object() ? inline_members(item) : sentence(item)).append("\n");
    return;
  }
  std::size_t width = 0;
  for (const auto& [key, member] : value.items()) width = std::max(width, key.size());
  const auto one_line = [&](const json::Value& member) {
    return !member.is_structured() || member.empty() || (member.is_object() && depth > 0 && flat(member));
  };
  for (const auto& [key, member] : value.items()) {  // keys are the launcher's own: plain words
    if (!one_line(member)) continue;
    const std::string text = member.is_object() ? inline_members(member) : sentence(member);
    out.append(indent).append(key).append(width + 2 - key.size(), ' ').append(text).append("\n");
  }
  for (const auto& [key, member] : value.items()) {
    if (one_line(member)) continue;
    out.append(indent).append(key).append("\n");
    append(out, member, depth + 1);
  }
}

}  // namespace

int print_document(const json::Value& value, const Options& options) {
  if (options.json) print_json(value);
  else print(outline(value));
  return 0;
}

std::string outline(const json::Value& value) {
  if (!value.is_structured()) return sentence(value) + "\n";
  std::string out;
  append(out, value, 0);
  return out;
}

}  // namespace caisson::cli
