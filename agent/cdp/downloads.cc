#include "agent/cdp/downloads.h"

#include "agent/cdp/text.h"

namespace caisson::cdp {
namespace {
constexpr std::size_t kMostBytes = 64 * 1024;
}

std::string with_downloads_in(std::string_view folder, std::string_view text, const Message& message) {
  const std::string_view method = unquoted(message.method.value.of(text));
  if (method != "Browser.setDownloadBehavior" && method != "Page.setDownloadBehavior") return {};
  if (text.size() > kMostBytes) return {};  // a changed message is a copy
  const std::string_view params = message.params.value.of(text), behavior = inner_string(params, "behavior");
  if (behavior != "allow" && behavior != "allowAndName") return {};
  const std::string_view path = inner_string(params, "downloadPath");
  if (!folder.empty() && path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/')) return {};
  std::string changed = R"({"behavior":"default")";
  for (const std::string_view member : {"browserContextId", "eventsEnabled"})
    if (const std::string_view value = inner_value(params, member); !value.empty())
      changed.append(",").append(json_string(member)).append(":").append(value);
  const Span& place = message.params.value;
  return std::string(text.substr(0, place.begin)).append(changed).append("}").append(text.substr(place.end));
}

}  // namespace caisson::cdp
