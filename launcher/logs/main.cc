// caisson-logs KEEP_DAYS MAX_BYTES BOOT: one sweep of the audit logs (logs/store.h), for the launcher, which is PID 1 and shall
// neither read them again nor wait for their disk. fd 3 is their directory, fd 0 the launcher (common/audit/sweeper.h). Nothing
// goes that it has not agreed to and recorded; when it is gone, or does not answer, so are we.
#include <cap-ng.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <string_view>

#include "launcher/common/audit/sweeper.h"
#include "launcher/common/base/sys.h"
#include "launcher/logs/store.h"

namespace caisson::logs {
namespace {

constexpr int kLauncherFd = 0, kDirectoryFd = 3;
constexpr int kFailed = 1;

bool give_up() {
  // Where sessions have the launcher's uid (T1), they must not get at what may delete logs.
  if (::prctl(PR_SET_DUMPABLE, 0) != 0 || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  capng_get_caps_process();
  constexpr int kNeeded[] = {CAP_DAC_OVERRIDE, CAP_FOWNER};  // of a directory that belongs to another
  bool had[2];
  for (int i = 0; i < 2; ++i) had[i] = capng_have_capability(CAPNG_PERMITTED, static_cast<unsigned>(kNeeded[i])) != 0;
  capng_clear(CAPNG_SELECT_CAPS);
  constexpr auto kInForce = static_cast<capng_type_t>(CAPNG_EFFECTIVE | CAPNG_PERMITTED);
  for (int i = 0; i < 2; ++i)
    if (had[i]) capng_update(CAPNG_ADD, kInForce, static_cast<unsigned>(kNeeded[i]));
  return capng_apply(CAPNG_SELECT_CAPS) == 0;
}

bool asked(char what, const json::Value& fields) {
  const std::string message = what + json::dump(fields);
  char answer = 0;
  if (message.size() > audit::kMaxSweeperMessage) return false;
  if (::send(kLauncherFd, message.data(), message.size(), MSG_NOSIGNAL) < 0 || ::recv(kLauncherFd, &answer, 1, 0) != 1)
    ::_exit(kFailed);
  return answer == 'y';
}

bool number(std::string_view text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0;
}

int run(int argc, char** argv) {
  audit::Rules rules{.now_ns = sys::realtime_ns(),
                     .mono_us = sys::monotonic_us(),
                     .may_go = [](const json::Value& fields) { return asked(audit::kMayGo, fields); },
                     .keep_root = [](const json::Value& fields) { (void)asked(audit::kKeepRoot, fields); }};
  if (argc != 4 || !number(argv[1], rules.keep_days) || !number(argv[2], rules.max_bytes))
    return std::fputs("usage: caisson-logs KEEP_DAYS MAX_BYTES BOOT\n", stderr), 64;
  rules.boot = argv[3];
  if (!give_up() || ::fchdir(kDirectoryFd) != 0) return std::perror("caisson-logs"), kFailed;
  return audit::sweep(".", rules) ? 0 : audit::kSweepMore;
}

}  // namespace
}  // namespace caisson::logs

int main(int argc, char** argv) { return caisson::logs::run(argc, argv); }
