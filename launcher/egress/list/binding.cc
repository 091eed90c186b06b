#include "launcher/egress/list/binding.h"

#include <algorithm>

#include "launcher/egress/list/path.h"

namespace caisson::egress {
namespace {

bool printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}
bool is_word(std::string_view text, std::string_view extra) {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [extra](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || extra.find(c) != std::string_view::npos;
  });
}
bool is_method(std::string_view text) {
  return !text.empty() && text.size() <= 16 && std::ranges::all_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
}
// Fields that say where a message ends or where it goes are not a secret's.
bool is_field(std::string_view text) {
  static constexpr std::string_view kNever[] = {
      "host",   "connection",      "content-length", "transfer-encoding",   "upgrade",         "te", "trailer",
      "expect", "accept-encoding", "keep-alive",     "proxy-authorization", "proxy-connection"};
  return is_word(text, "-_") && std::ranges::find(kNever, text) == std::end(kNever);
}

}  // namespace

bool is_secret(std::string_view text) { return text.size() >= kLeastSecret && text.size() <= kMaxSecret && printable(text); }

bool is_command(std::string_view text) {
  return !text.empty() && text.size() <= kMaxCommand &&
         std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
}

std::string_view fault_of(const Binding& binding) {
  const auto host = read_host(binding.host);
  const auto* name = host ? std::get_if<Name>(&*host) : nullptr;
  if (!is_word(binding.name, "-_.")) return "its name has other characters than a-z, 0-9, '-', '_' and '.', or more than 64";
  if (!is_secret(binding.placeholder) || binding.placeholder.size() > kMaxBindingText)
    return "its placeholder is not 12 to 255 printable characters";
  // A colon is what Basic has between user and password.
  if (binding.placeholder.contains(':')) return "its placeholder has a colon";
  if (name == nullptr || name->text != binding.host) return "its host is no name in canonical form";
  if (binding.port == 0) return "its port is 0";
  if (binding.methods.size() > kMaxMethods || !std::ranges::all_of(binding.methods, is_method)) return "a method is none";
  if (!fault_of_path(binding.path).empty()) return "its path is no plain path that begins with '/'";
  if (!is_field(binding.field)) return "its field is none that may carry a secret";
  if (!binding.file.empty() &&
      (!binding.file.starts_with('/') || binding.file.size() > kMaxBindingText || !printable(binding.file)))
    return "its file is no absolute path";
  if (!binding.command.empty() && !is_command(binding.command)) return "its command is not one line of at most 1,000 bytes";
  if (!binding.file.empty() && !binding.command.empty()) return "it has a file and a command";
  if (binding.refresh_seconds < kLeastRefresh || binding.refresh_seconds > kMostRefresh) return "its refresh_seconds are none";
  return {};
}

}  // namespace caisson::egress
