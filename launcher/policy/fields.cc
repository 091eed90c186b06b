#include "launcher/policy/fields.h"

#include <array>
#include <iterator>
#include <unordered_map>

namespace caisson::policy {
namespace {

constexpr std::uint64_t kMax64 = ~0ULL;

using enum Type;
using enum Widens;
constexpr auto kAny = Form::any;
constexpr auto kPath = Form::path;

// A number as JSON.
class Decimal {
 public:
  constexpr explicit Decimal(std::uint64_t value = 0) {
    do text_[--first_] = static_cast<char>('0' + value % 10);
    while ((value /= 10) != 0);
  }
  [[nodiscard]] constexpr std::string_view view() const { return {text_ + first_, sizeof text_ - first_}; }

 private:
  char text_[20]{};
  std::size_t first_ = sizeof text_;
};

// The defaults of Limits and Audit, which stand there alone.
constexpr Decimal kMaxBytesDefault(Audit{}.max_bytes), kKeepDaysDefault(Audit{}.keep_days);
constexpr auto kLimitDefaults = [] {
  std::array<Decimal, std::size(kLimits)> out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = Decimal(Limits{}.*kLimits[i].member);
  return out;
}();

// A member of Limits. Its bounds are in kLimits, which requests are checked by, too.
consteval Field limit(std::string_view pointer, std::string_view doc) {
  for (std::size_t i = 0; i < std::size(kLimits); ++i)
    if (const LimitRow& row = kLimits[i]; pointer.substr(pointer.rfind('/') + 1) == row.name)
      return {pointer, integer, kAny, "", row.least, row.most, kLimitDefaults[i].view(), larger, doc};
  throw "no such limit";
}

constexpr Field kPolicy[] = {
    {"/description", text, kAny, "", 1, 500, "", never, "What the domain is for."},
    {"/extends", text, Form::domain, "", 1, 32, "", never, "`\"base\"`, or another domain; not in base.json nor in presets."},
    {"/why", map, Form::pointer, "", 0, 100, "{}", never, "Field to reason: why a value is what it is. Shown by explain."},
    {"/weaken", objects, kAny, "", 0, 100, "[]", never,
     "Each field in which this file gives more than the one it extends. One that is not needed is refused."},
    {"/weaken/*/field", text, Form::pointer, "", 1, 4200, kRequired, never,
     "The field, such as `/limits/processes`; for a grant, `/grants` and its path: `/grants/srv/data`."},
    {"/weaken/*/why", text, kAny, "", 8, 1000, kRequired, never, "The reason; repeated in the audit log of every session."},
    {"/min_tier", choice, kAny, kTierNames, 0, 0, "\"T1\"", smaller, "The weakest tier in which a session may start."},
    {"/require", list, kAny, kMechanismNames, 0, kMechanismCount, "[]", removed, "Mechanisms without which no session starts."},
    {"/disable", list, kAny, kMechanismNames, 0, kMechanismCount, "[]", added,
     "Mechanisms that are switched off. Needs a `weaken` entry in base.json too."},
    {"/grants", objects, kAny, "", 0, kMaxGrants, "[]", Widens::grants,
     "What a session sees of the container; nothing else is visible. The longest path wins; merged by path."},
    {"/grants/*/path", text, kPath, "", 2, kMaxPath, kRequired, never,
     "Where the session sees it. Absolute and canonical, never `/`."},
    {"/grants/*/source", text, kPath, "", 2, kMaxPath, "", never, "Where it is taken from. Without it: `path`."},
    {"/grants/*/access", choice, kAny, "read read-write", 0, 0, "\"read\"", never,
     "Writing includes creating, renaming and removing."},
    {"/grants/*/execute", boolean, kAny, "", 0, 0, "false", never, "Whether programs below it may be executed."},
    {"/grants/*/required", boolean, kAny, "", 0, 0, "true", never,
     "`false`: where the source does not exist, the session starts and its report lists the path."},
    {"/grants/*/description", text, kAny, "", 1, kMaxDescription, "", never, "What it is."},
    {"/grants/*/why", text, kAny, "", 1, kMaxWhy, "", never, "Why sessions need it."},
    {"/hide", list, kPath, "", 0, 100, "[]", removed,
     "Paths inside grants that are covered by something empty and unreadable. Without a mount namespace (T0, T1) they "
     "stay readable."},
    {"/protect", list, Form::name, "", 0, kMaxProtect, "[]", joins,
     "Names, or ends of paths (`.git/hooks`), that are read-only at any depth of what is granted for writing, whatever a session "
     "does. "
     "The list of a file is added to that of the one it extends. Needs a mount namespace; what is not there yet can be made."},
    {"/protect_home", boolean, kAny, "", 0, 0, "false", smaller, "Whether `protect` holds in the home, too."},
    {"/files", content, kPath, "", 0, 64, "{}", never,
     "Small read-only files that the launcher makes: path to text, or to a list of lines. Only with a mount namespace."},
    {"/links", map, kPath, "", 0, 64, "{}", never,
     "Symbolic links that the launcher makes: path to target. Only with a mount namespace."},
    {"/devices", list, kAny, "null zero full random urandom tty", 0, 6, "[]", added,
     "Devices in /dev. /dev/pts, /dev/shm, /dev/fd and the standard streams are always there."},
    {"/home", choice, kAny, "private workspace", 0, 0, "\"workspace\"", larger,
     "`workspace`: the sessions of a workspace share one home; `private`: a tmpfs of this session."},
    {"/home_path", text, kPath, "", 2, 200, "\"/home/gem\"", never, "Where the home is. It is writable."},
    {"/tmp", choice, kAny, "private workspace", 0, 0, "\"workspace\"", larger, "The same for /tmp."},
    {"/exec_writable", boolean, kAny, "", 0, 0, "true", larger,
     "Whether programs in home and /tmp may be executed. An interpreter of /usr can read them as scripts all the same."},
    {"/system_packages", boolean, kAny, "", 0, 0, "false", larger,
     "Sessions are root, without any capability, of a private copy of /usr, /etc and /var, in which they install packages. Those "
     "of a workspace share it, and it ends with the workspace. Needs tier T3 and a grant of /usr."},
    {"/hostname", text, Form::hostname, "", 1, 63, "\"caisson\"", never, "What `uname -n` says."},
    {"/proc_shared_fallback", boolean, kAny, "", 0, 0, "false", larger,
     "Where no fresh /proc can be mounted: `true` shows the container's own, whose other processes are then listed by "
     "number and command line; `false` shows none."},
    {"/network", choice, kAny, "none loopback", 0, 0, "\"loopback\"", larger,
     "`loopback`: an own network namespace with lo; where none can be had, internet sockets are refused. `none`: they "
     "are always refused."},
    {"/limits", object, kAny, "", 0, 0, "{}", never, "Hard limits of one session. There is no \"unlimited\"."},
    limit("/limits/processes", "Processes and threads."),
    limit("/limits/memory_bytes", "Memory: the cgroup's, or without cgroup v2 what a watchdog adds up."),
    limit("/limits/cpu_percent", "Processor time; 100 is one core. Needs cgroup v2."),
    limit("/limits/open_files", "Open files of each process."),
    limit("/limits/file_size_bytes", "Size of any file written."),
    limit("/limits/cpu_seconds", "Processor seconds of each process."),
    limit("/limits/tmp_bytes", "Size of each private tmpfs: /dev/shm, private /tmp and home."),
    limit("/limits/tmp_inodes", "Files in each private tmpfs."),
    limit("/limits/packages_bytes", "What `system_packages` may take of memory, in each workspace."),
    limit("/limits/session_seconds", "Life of the session, by the clock."),
    limit("/limits/execs", "Commands that run at once."),
    limit("/limits/io_read_bytes_per_second",
          "Bytes a second read from the disk of the home. Without it: no limit. Needs cgroup v2 with the io controller, and a "
          "home on a disk; where these are not, the mechanism `io` is unavailable."),
    limit("/limits/io_write_bytes_per_second", "The same, written."),
    {"/env", object, kAny, "", 0, 0, "{}", never, "The environment of commands. Nothing is inherited."},
    {"/env/set", map, Form::env_name, "", 0, 64, "{}", never, "Always given."},
    {"/env/client_deny", list, Form::env_pattern, "", 0, 100, "[]", removed,
     "Names that a request may not set; `LD_*` is every name that starts so."},
    {"/syscalls", object, kAny, "", 0, 0, "{}", never, "The seccomp filter. Calls in no set answer ENOSYS."},
    {"/syscalls/allow", list, Form::domain, "", 1, 32, "[]", added, "Sets: `seccomp/<name>.json`."},
    {"/syscalls/deny", list, Form::syscall, "", 0, 100, "[]", removed,
     "System calls taken out of these sets; they answer EPERM."},
    {"/audit", object, kAny, "", 0, 0, "{}", never,
     "What the audit log says about a session, and how long it is kept. Saying less than base needs a `weaken` entry."},
    {"/audit/denials", boolean, kAny, "", 0, 0, "true", smaller, "Whether each call that was refused by rule is a record."},
    {"/audit/paths", choice, kAny, "off observe", 0, 0, "\"off\"", smaller,
     "`observe`: paths that the mount tree or Landlock refuses are advisory records. Every call that names a file then waits for "
     "two processes, and the auditor's part that answers may read the session's memory. Needs `denials` and a mount namespace."},
    {"/audit/max_bytes", integer, kAny, "", 1048576, 1ULL << 40, kMaxBytesDefault.view(), smaller,
     "Disk space of one session's log. It is written in segments of an eighth; when the next would not fit, the oldest is "
     "deleted, and a record in the chain says which records went."},
    {"/audit/keep_days", integer, kAny, "", 1, 36500, kKeepDaysDefault.view(), smaller,
     "Days for which a log is kept after its session's end. The launcher's own log says which were deleted."},
    {"/audit/on_full", choice, kAny, "stop stderr", 0, 0, "\"stop\"", larger,
     "When a record cannot be written. `stop`: the session ends, and none starts. `stderr`: it goes on, and its records go "
     "to the launcher's standard error until the disk has room."},
    {"/umask", octal, kAny, "", 0, 0777, "\"022\"", removed, "File mode bits that new files do not get."},
};

constexpr Field kSets[] = {
    {"/name", text, Form::domain, "", 1, 32, kRequired, never, "As the file's."},
    {"/why", text, kAny, "", 8, 1000, kRequired, never, "What the set is for."},
    {"/needs", choice, kAny, kMechanismNames, 0, 0, "", never, "The set applies only where this mechanism is enforced."},
    {"/allow", objects, kAny, "", 0, 200, "[]", never, "Rules; every call not in one is refused."},
    {"/allow/*/names", list, Form::syscall, "", 1, 200, kRequired, never,
     "System calls; one that the machine does not have is skipped."},
    {"/allow/*/any_of", rows, kAny, "", 1, 80, "", never, "Allowed only when all conditions of one row hold."},
    {"/allow/*/any_of/*/*/index", integer, kAny, "", 0, 5, kRequired, never, "Argument."},
    {"/allow/*/any_of/*/*/op", choice, kAny, "eq ne lt le gt ge masked_eq", 0, 0, kRequired, never, "Comparison."},
    {"/allow/*/any_of/*/*/value", number, kAny, "", 0, kMax64, kRequired, never, "Compared with."},
    {"/allow/*/any_of/*/*/mask", number, kAny, "", 1, kMax64, "", never, "masked_eq: (argument & mask) == value."},
    {"/allow/*/refuse_if", rows, kAny, "", 1, 80, "", never, "Allowed except when all conditions of one row hold."},
    {"/allow/*/refuse_if/*/*/index", integer, kAny, "", 0, 5, kRequired, never, "Argument."},
    {"/allow/*/refuse_if/*/*/op", choice, kAny, "masked_eq", 0, 0, kRequired, never,
     "An exact comparison would be passed by garbage in the upper half."},
    {"/allow/*/refuse_if/*/*/value", number, kAny, "", 0, kMax64, kRequired, never, "Compared with."},
    {"/allow/*/refuse_if/*/*/mask", number, kAny, "", 1, kMax64, kRequired, never, "(argument & mask) == value."},
    {"/allow/*/why", text, kAny, "", 1, 1000, "", never, "The reason."},
    {"/refuse", objects, kAny, "", 0, 100, "[]", never, "Calls that answer EPERM instead of ENOSYS."},
    {"/refuse/*/names", list, Form::syscall, "", 1, 200, kRequired, never, "System calls."},
    {"/refuse/*/why", text, kAny, "", 8, 1000, kRequired, never, "The reason."},
    {"/pretend", objects, kAny, "", 0, 100, "[]", never, "Calls that are answered and not carried out, whatever other sets say."},
    {"/pretend/*/names", list, Form::syscall, "", 1, 200, kRequired, never, "System calls."},
    {"/pretend/*/errno", choice, kAny, "EPROTONOSUPPORT", 0, 0, "", never, "The answer. Without it: success."},
    {"/pretend/*/when", rows, kAny, "", 1, 80, "", never, "Only when all conditions of one row hold; else as other sets say."},
    {"/pretend/*/when/*/*/index", integer, kAny, "", 0, 5, kRequired, never, "Argument."},
    {"/pretend/*/when/*/*/op", choice, kAny, "masked_eq", 0, 0, kRequired, never, "Comparison."},
    {"/pretend/*/when/*/*/value", number, kAny, "", 0, kMax64, kRequired, never, "Compared with."},
    {"/pretend/*/when/*/*/mask", number, kAny, "", 1, kMax64, kRequired, never, "(argument & mask) == value."},
    {"/pretend/*/why", text, kAny, "", 8, 1000, kRequired, never, "The reason."},
};

}  // namespace

std::span<const Field> policy_fields() { return kPolicy; }
std::span<const Field> set_fields() { return kSets; }

const Field* find_field(std::span<const Field> fields, std::string_view pattern) {
  using Index = std::unordered_map<std::string_view, const Field*>;
  const auto index = [](std::span<const Field> rows) {
    Index out;
    for (const Field& field : rows) out.emplace(field.pointer, &field);
    return out;
  };
  static const Index policy = index(kPolicy), sets = index(kSets);
  const Index& known = fields.data() == std::data(kSets) ? sets : policy;
  const auto it = known.find(pattern);
  return it == known.end() ? nullptr : it->second;
}

}  // namespace caisson::policy
