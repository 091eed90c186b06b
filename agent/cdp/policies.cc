#include "agent/cdp/policies.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdio>

#include "agent/cdp/downloads.h"
#include "launcher/common/base/sys.h"

namespace caisson::cdp {

json::Value policies(const Wishes& wishes, const std::string& home) {
  json::Value out = {{"DownloadDirectory", downloads_folder(home)},
                     {"PromptForDownloadLocation", false},
                     {"BrowserSignin", 0},
                     {"SyncDisabled", true},
                     {"MetricsReportingEnabled", false},
                     {"PasswordManagerEnabled", false},
                     {"BackgroundModeEnabled", false},
                     {"ComponentUpdatesEnabled", false},
                     {"DefaultBrowserSettingEnabled", false},
                     {"DnsOverHttpsMode", "off"}};
  if (wishes.url_blocklist) out["URLBlocklist"] = *wishes.url_blocklist;
  if (wishes.url_allowlist) out["URLAllowlist"] = *wishes.url_allowlist;
  if (wishes.allow_file_selection_dialogs) out["AllowFileSelectionDialogs"] = *wishes.allow_file_selection_dialogs;
  return out;
}

Status write_policies(const std::string& folder, const json::Value& content) {
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return sys_error("make folder " + quote(folder));
  const std::string path = folder + "/caisson.json", next = folder + "/caisson.next";
  {
    TRY_ASSIGN(const Fd file, sys::open(next, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644));
    TRY(sys::write_all(file.get(), json::dump(content)));
  }
  if (::rename(next.c_str(), path.c_str()) != 0) return sys_error("replace " + quote(path));
  return {};
}

}  // namespace caisson::cdp
