#include "agent/services/common/settings.h"

#include <charconv>
#include <cstdlib>

namespace caisson::services {
namespace {

// "67108864 (64 MiB)" where that is easier to read.
std::string fallback_text(const Variable& row) {
  if (!row.is_number()) return row.text.empty() ? "–" : "`" + std::string(row.text) + "`";
  const std::string number = std::to_string(row.fallback);
  if (!row.name.ends_with("_BYTES")) return number;
  return number + " (" + std::to_string(row.fallback >> 20) + " MiB)";
}

}  // namespace

Result<std::int64_t> number_from_env(const Variable& row) {
  const std::string text = text_from_env(row);
  if (text.empty()) return row.fallback;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= row.lowest && number <= row.highest) return number;
  return fail(Code::invalid_argument, std::string(row.name) + " must be a number from " + std::to_string(row.lowest) + " to " +
                                          std::to_string(row.highest) + ", not " + quote(text));
}

std::string text_from_env(const Variable& row) {
  const char* value = std::getenv(std::string(row.name).c_str());
  return value == nullptr ? "" : value;
}

std::string variables_text() {
  std::string out = "| variable | default | meaning |\n|---|---|---|\n";
  for (const Variable& row : kVariables) {
    out.append("| `").append(row.name).append("` | ").append(fallback_text(row)).append(" | ").append(row.meaning);
    if (row.is_number()) out += " (" + std::to_string(row.lowest) + " to " + std::to_string(row.highest) + ")";
    out += " |\n";
  }
  return out;
}

}  // namespace caisson::services
