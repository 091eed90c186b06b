#include "agent/cdp/flags.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace caisson::cdp {
namespace {

// `%p`: the profile.
constexpr std::string_view kFlags[] = {
    "--remote-debugging-pipe",       // descriptors 3 and 4: no port that another session could reach
    "--user-data-dir=%p",            //
    "--disable-gpu",                 // there is none; the process for it stays, small
    "--password-store=basic",        // no keyring is there to wait for
    "--keep-alive-for-test",         // the last page's end is not the browser's: only a restart is
    "--disable-back-forward-cache",  // a page that comes back from it has no load event for clients that wait for one
    "--no-first-run",                //
    "--no-default-browser-check",
    "--no-pings",
    "--disable-breakpad",  // no crash handler that sends
    "--disable-crash-reporter",
    "--hide-crash-restore-bubble",
    "--disable-background-networking",  // nothing is asked for that no page asked for
    "--disable-component-update",
    "--disable-component-extensions-with-background-pages",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-search-engine-choice-screen",
    "--metrics-recording-only",
    "--safebrowsing-disable-auto-update",
};
// The network service behind a filter of its own. No spare renderer, no pages behind the address bar, no background services: 80
// MB.
constexpr std::string_view kEnabled = "NetworkServiceSandbox";
constexpr std::string_view kDisabled =
    "SpareRendererForSitePerProcess,WebUIOmniboxPopup,WebUIOmniboxAimPopup,MediaRouter,OptimizationHints,Translate,"
    "AutofillServerCommunication,CertificateTransparencyComponentUpdater,InterestFeedContentSuggestions";

struct Refused {
  std::string_view pattern;  // of the name, without dashes, in lower case; `*` at either end
  std::string_view why;
};
constexpr Refused kRefused[] = {
    {"*sandbox*", "the browser's sandbox stays as it is"},
    {"remote-debugging-*", "the browser is reached through its pipe alone"},
    {"user-data-dir*", "the profile lies in the session's own memory"},
    {"single-process*", "each page needs a process of its own to be confined"},
    {"no-zygote*", "the zygote is what confines the pages' processes"},
    {"enable-unsafe-extension-debugging*", "extensions would come from any folder"},
    // They would put another program, or an unchecked one, in the place of a confined process.
    {"renderer-cmd-prefix*", "each page's process is started by the browser itself"},
    {"utility-cmd-prefix*", "each process is started by the browser itself"},
    {"zygote-cmd-prefix*", "each process is started by the browser itself"},
    {"gpu-launcher*", "each process is started by the browser itself"},
    {"browser-subprocess-path*", "each process is started by the browser itself"},
};

bool has_shape(std::string_view pattern, std::string_view text) {
  const bool open_begin = pattern.starts_with('*'), open_end = pattern.ends_with('*');
  if (open_begin) pattern.remove_prefix(1);
  if (open_end) pattern.remove_suffix(1);
  if (open_begin) return text.contains(pattern);
  return open_end ? text.starts_with(pattern) : text == pattern;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

bool below(std::string_view path, const std::string& home) {
  return !home.empty() && path.starts_with(home + "/") && !path.contains("/../") && !path.ends_with("/..");
}

Status check_one(std::string_view given, const std::string& home) {
  const std::string_view argument = trimmed(given);
  const std::string named = "argument " + quote(given) + " for the browser is refused: ";
  if (argument.empty() || argument.contains('\n') || argument.size() > 4096)
    return fail(Code::invalid_argument, named + "it is empty, too long, or has more than one line");
  if (!argument.starts_with('-'))
    return is_first_url(std::string(argument)) ? Status()
                                               : fail(Code::invalid_argument, named + "it is neither an option nor an address");
  if (argument.find_first_not_of('-') == std::string_view::npos) return fail(Code::invalid_argument, named + "it is no option");
  std::string name(argument.substr(argument.starts_with("--") ? 2 : 1));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const Refused& row : kRefused)
    if (has_shape(row.pattern, name)) return fail(Code::invalid_argument, named + std::string(row.why));
  if (name.starts_with("load-extension")) {
    const auto equals = argument.find('=');
    std::string_view paths = equals == std::string_view::npos ? "" : argument.substr(equals + 1);
    do {
      const auto comma = std::min(paths.find(','), paths.size());
      if (!below(paths.substr(0, comma), home))
        return fail(Code::invalid_argument, named + "extensions are loaded from the home only");
      paths.remove_prefix(std::min(comma + 1, paths.size()));
    } while (!paths.empty());
  }
  return {};
}

// Takes `--name=values` out of the arguments and adds its values to `list`.
void merge(std::vector<std::string>& arguments, std::string_view name, std::string& list) {
  std::erase_if(arguments, [&](const std::string& given) {
    std::string_view argument = trimmed(given);
    argument.remove_prefix(std::min<std::size_t>(argument.starts_with("--") ? 2 : 1, argument.size()));
    if (!argument.starts_with(name) || argument.substr(name.size(), 1) != "=") return false;
    list.append(",").append(argument.substr(name.size() + 1));
    return true;
  });
}

}  // namespace

Status check_extra(const std::vector<std::string>& extra, const std::string& home) {
  if (extra.size() > 64) return fail(Code::invalid_argument, "more than 64 arguments for the browser are refused");
  for (const std::string& argument : extra) TRY(check_one(argument, home));
  return {};
}

bool is_locale(const std::string& locale) {
  return locale.size() >= 2 && locale.size() <= 16 && std::isalpha(static_cast<unsigned char>(locale[0])) != 0 &&
         std::ranges::all_of(locale, [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; });
}

bool is_first_url(const std::string& url) {
  if (url.size() > 2048 || std::ranges::any_of(url, [](unsigned char c) { return c <= 0x20 || c == 0x7f; })) return false;
  return std::ranges::any_of(std::initializer_list<std::string_view>{"http://", "https://", "file:///", "about:", "data:"},
                             [&](std::string_view scheme) { return url.starts_with(scheme); });
}

std::vector<std::string> command_line(const Start& start) {
  std::vector<std::string> out{start.program};
  for (const std::string_view flag : kFlags)
    out.push_back(flag.ends_with("%p") ? std::string(flag.substr(0, flag.size() - 2)) + start.profile : std::string(flag));
  std::vector<std::string> extra = start.extra;
  std::string enabled(kEnabled), disabled(kDisabled);
  merge(extra, "enable-features", enabled);
  merge(extra, "disable-features", disabled);
  out.push_back("--enable-features=" + enabled);
  out.push_back("--disable-features=" + disabled);
  if (!start.locale.empty()) {
    out.push_back("--lang=" + start.locale);         // of the browser's own texts, where its translation is installed
    out.push_back("--accept-lang=" + start.locale);  // what sites are asked for, and navigator.language
  }
  out.insert(out.end(), extra.begin(), extra.end());
  out.push_back(start.url.empty() ? "about:blank" : start.url);
  return out;
}

}  // namespace caisson::cdp
