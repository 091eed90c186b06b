#include "launcher/compiler/fields.h"
#include "launcher/compiler/canonical.h"
#include "launcher/egress/list/list.h"

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

template <class T>
constexpr Type kType = std::same_as<T, bool>                                            ? boolean
                       : std::is_enum_v<T>                                              ? choice
                       : std::same_as<T, std::uint64_t>                                 ? integer
                       : std::same_as<T, unsigned>                                      ? octal
                       : std::same_as<T, std::string>                                   ? text
                       : std::same_as<T, Map>                                           ? map
                       : std::same_as<T, std::set<std::uint16_t>>                       ? ports
                       : std::same_as<T, Words> || std::same_as<T, std::set<Mechanism>> ? list
                                                                                        : objects;

// What its row says of a field.
consteval Field from_row(const Row& row) {
  return std::visit(
      [&row](auto member) {
        using T = std::remove_cvref_t<decltype(value_of(std::declval<Policy&>(), member))>;
        Field out{row.pointer, kType<T>, kAny, row.words, row.least, row.most, "", row.widens, ""};
        if constexpr (std::is_enum_v<T>) out.allowed = words(T{});
        if constexpr (std::same_as<T, std::set<Mechanism>>) out.allowed = words(Mechanism{});
        if (out.type == boolean && !row.words.empty()) out.type = choice;
        if (out.type == list && !out.allowed.empty()) out.max = static_cast<std::uint64_t>(count_words(out.allowed));
        return out;
      },
      row.member);
}

// How many or how long, of texts, lists and maps.
struct Size {
  std::uint64_t min = 0, max = 0;
};
// A field that has a row: what the row does not say. special: files write it in another way than its member suggests.
consteval Field field(std::string_view pointer, std::string_view doc, Form form = kAny, Size size = {},
                      std::optional<Type> special = {}) {
  const Row* row = find_row(pointer);
  if (row == nullptr) throw "no row of rows.h has this pointer";
  Field out = from_row(*row);
  out.doc = doc;
  out.form = form;
  if (size.max != 0) out.min = size.min, out.max = size.max;
  if (special) out.type = *special;
  return out;
}

constexpr Field kPolicy[] = {
    field("/description", "What the domain is for.", kAny, {1, 500}),
    {"/extends", text, Form::domain, "", 1, 32, "", never, "`\"base\"` or another domain. Not in base.json or in presets."},
    field("/why", "Fields with the reasons for their values. Shown by explain.", Form::pointer, {0, 100}),
    field("/weaken",
          "Each field in which this file gives more than the file that it extends. An entry that is not needed is refused.", kAny,
          {0, 100}, objects),
    {"/weaken/*/field", text, Form::pointer, "", 1, 4200, kRequired, never,
     "The field, such as `/limits/processes`; for a grant, `/grants` and its path: `/grants/srv/data`."},
    {"/weaken/*/why", text, kAny, "", 8, 1000, kRequired, never, "The reason; repeated in the audit log of every session."},
    field("/min_tier", "The weakest tier in which a session may start."),
    field("/require", "Mechanisms without which no session starts."),
    field("/disable", "Mechanisms that are switched off. Needs a `weaken` entry, even in base.json."),
    field("/grants",
          "What a session sees of the container; nothing else is visible. The longest path decides. Files are merged by path."),
    {"/grants/*/path", text, kPath, "", 2, kMaxPath, kRequired, never,
     "Where the session sees it. Absolute and canonical, never `/`."},
    {"/grants/*/source", text, Form::source, "", 2, kMaxPath, "", never,
     "Where it is taken from. Without it: `path`. `home:DIR`: a directory of the home, which stays writable where the home is "
     "only `read`. "
     "`workspace:display`: a directory in memory that the sessions of a workspace share whose policies name it."},
    {"/grants/*/access", choice, kAny, words(Access{}), 0, 0, "\"read\"", never,
     "Writing includes creating, renaming and removing."},
    {"/grants/*/execute", boolean, kAny, "", 0, 0, "false", never, "Whether programs below it may be executed."},
    {"/grants/*/required", boolean, kAny, "", 0, 0, "true", never,
     "`false`: where the source does not exist, the session starts and its report lists the path."},
    {"/grants/*/description", text, kAny, "", 1, kMaxDescription, "", never, "What it is."},
    {"/grants/*/why", text, kAny, "", 1, kMaxWhy, "", never, "Why sessions need it."},
    field("/hide",
          "Paths inside grants that are covered by something empty and unreadable. Without a mount namespace (T0, T1) they stay "
          "readable.",
          kPath, {0, 100}),
    field(
        "/protect",
        "Names or ends of paths (`.git/hooks`) that stay read-only at any depth of a writable grant. The list of a file is added "
        "to that of the file that it extends. Needs a mount namespace. A session can make such a file where there is none.",
        Form::name),
    field("/protect_home", "Whether `protect` also holds in the home."),
    field("/files",
          "Small read-only files that the launcher makes: path to text, or to a list of lines. Only with a mount namespace.",
          kPath, {0, 64}, content),
    field("/links", "Symbolic links that the launcher makes: path to target. Only with a mount namespace.", kPath, {0, 64}),
    field("/devices", "Devices in /dev. /dev/pts, /dev/shm, /dev/fd and the standard streams are always there."),
    field("/home",
          "`workspace`: the sessions of a workspace share one home; `read`: they read it and do not write to it; `private`: a "
          "tmpfs of this "
          "session. The last two need a mount namespace."),
    field("/home_path", "Where the home is.", kPath, {2, 200}),
    field("/tmp", "The same for /tmp."),
    field("/exec_writable",
          "Whether programs in home and /tmp may be executed. An interpreter in /usr can still read them as scripts."),
    field("/system_packages",
          "Sessions are root, without any capability, in a private copy of /usr, /etc and /var, where they can install packages. "
          "The sessions of a workspace share the copy, which ends with the workspace. Needs tier T3 and a grant of /usr."),
    field("/hostname", "What `uname -n` says.", Form::hostname, {1, 63}),
    field("/proc_shared_fallback",
          "Where no fresh /proc can be mounted: `true` shows the container's /proc, which lists numbers and command lines of its "
          "other processes; `false` shows none."),
    field("/network",
          "`none`: internet sockets are refused. `loopback`: a network namespace with only lo; without network namespaces, as "
          "`none`. `allowlist`: also what `egress` names; `monitor`: every public address, each connection on record; `open`: "
          "every "
          "public address. The last three need tier T2."),
    field("/egress",
          "What sessions may reach outside, and what not, whatever else is allowed. Rules that deny are added to those of the "
          "file that "
          "it extends.",
          kAny, {}, objects),
    {"/egress/*/host", text, kAny, "", 1, 255, kRequired, never,
     "A name (`example.org`), the names below one (`*.example.org`), an address or a block of addresses (`10.1.0.0/16`)."},
    {"/egress/*/ports", ranges, kAny, "", 1, 16, "", never,
     "Ports, or ranges of them (`\"8000-8010\"`). Without it: 80 and 443 of a name; every port, if the rule denies."},
    {"/egress/*/deny", boolean, kAny, "", 0, 0, "false", never, "The rule denies, and wins over all that allow."},
    {"/egress/*/alarm", boolean, kAny, "", 0, 0, "false", never,
     "With `deny`: nobody has a reason to ask for it, and whoever does raises an alarm (`canary`)."},
    {"/egress/*/private", boolean, kAny, "", 0, 0, "false", never,
     "The name may lead to private addresses (10.0.0.0/8, fc00::/7, …). Never to loopback, link-local or metadata addresses."},
    {"/egress/*/sni", choice, kAny, "required optional", 0, 0, "", never,
     "Whether a TLS client must name the server: `required` for names, `optional` for addresses, if not said."},
    {"/egress/*/methods", choice, kAny, "read all", 0, 0, "\"all\"", never,
     "`read`: GET, HEAD and OPTIONS only, in plain HTTP and where TLS is opened."},
    {"/egress/*/inspect", boolean, kAny, "", 0, 0, "false", never,
     "Whether TLS is opened there, at every port but 80, so that `methods` and `paths` hold in it, too. HTTP/1.1 alone; sessions "
     "believe an authority of Caisson's."},
    {"/egress/*/paths", list, kAny, "", 1, egress::kMaxRulePaths, "", never,
     "Only at these paths and below them (`/api` permits `/api/x`, not `/apis`). Without it: at any. At ports other than 80 it "
     "needs `inspect`."},
    {"/egress/*/why", text, kAny, "", 8, kMaxWhy, kRequired, never, "The reason; it stands in records and answers."},
    {"/egress_limits", object, kAny, "", 0, 0, "{}", never,
     "Of all connections to the outside of the domain's sessions in a workspace."},
    {"/egress_limits/connections", integer, kAny, "", 1, 16384, "512", larger, "Connections at once."},
    {"/egress_limits/connections_per_second", integer, kAny, "", 1, 10000, "50", larger,
     "New connections; four times as many in a burst."},
    {"/egress_limits/bytes_per_second", integer, kAny, "", 1024, kNoIoLimit, "1125899906842624", larger,
     "Bytes, both ways together. The default is no limit."},
    {"/egress_limits/idle_seconds", integer, kAny, "", 1, 86400, "300", larger,
     "After so long without a byte a connection ends."},
    {"/egress_ask", choice, kAny, "nobody operator api", 0, 0, "\"nobody\"", larger,
     "Who may allow what no rule names, once a session was refused it: for one connection, for the session, for a time. "
     "`operator`: whoever reaches the control socket (`caisson ask`); `api`: clients of the API with the scope `operator`, too, "
     "and with them the API agent. What a rule denies stays denied, and no grant leads to a private address."},
    {"/egress_auth_cmd", boolean, kAny, "", 0, 0, "false", larger,
     "Whether clients that set an upstream proxy may name the command that prints its user:password (`auth_cmd`). It runs in a "
     "session of the domain `credentials`: whoever may name one gets whatever that domain may read."},
    {"/upstream", object, kAny, "", 0, 0, "{}", never,
     "The proxy that all connections to the outside go through. `egress` is asked first, and as without it. Clients cannot "
     "take it away, nor set another."},
    {"/upstream/server", text, kAny, "", 1, 300, "", never,
     "`proxy.example.org:3128`, by HTTP CONNECT; `https://…`, the same in TLS; or `socks5://…`. It may have a private "
     "address, and, written as an address, one of the loopback. Sessions cannot connect to it themselves, unless `egress` says "
     "so."},
    {"/upstream/user", text, kAny, "", 1, 255, "", never, "The user name."},
    {"/upstream/secret", text, kPath, "", 2, kMaxPath, "", never,
     "A file with the password, or with user:password, which no policy shows to sessions. Read again on 407."},
    {"/upstream/command", text, kAny, "", 1, egress::kMaxCommand, "", never,
     "In place of that file: a command of `/bin/sh` that prints the password, or user:password, in a session of the domain "
     "`credentials`. Run again on 407."},
    {"/upstream/include", list, kAny, "", 0, 64, "[]", never,
     "What goes through it, as `example.org`, `.example.org` (and below), `*.example.org` (below), address or block. None: all."},
    {"/upstream/exclude", list, kAny, "", 0, 64, "[]", never, "What does not, in the same forms."},
    {"/upstream/resolve", choice, kAny, "local proxy", 0, 0, "\"proxy\"", never,
     "Who resolves names. Where it is the proxy, nothing here sees which addresses they lead to: private ones are its business."},
    {"/secrets", objects, kAny, "", 0, 16, "[]", added,
     "What sessions use at a host without having it: they hold a placeholder, for which the secret is put into requests to that "
     "host, and taken out of its answers. The list of a file replaces that of the file that it extends."},
    {"/secrets/*/name", text, kAny, "", 1, 64, kRequired, never, "Its name in records, of `a` to `z`, digits, `-`, `_` and `.`."},
    {"/secrets/*/host", text, kAny, "", 1, 255, kRequired, never,
     "The one name that it goes to, which `egress` permits. The connection is opened there: HTTP/1.1 alone."},
    {"/secrets/*/port", integer, kAny, "", 1, 65535, "443", never, "The port there, of TLS."},
    {"/secrets/*/methods", list, kAny, "", 0, 8, "[]", never, "Only in requests with these methods. Empty: with any."},
    {"/secrets/*/path", text, kAny, "", 1, 255, "\"/\"", never, "Only at this path and below it."},
    {"/secrets/*/field", text, kAny, "", 1, 64, "\"authorization\"", never,
     "The field of the request, in lower case, whose whole value the placeholder is; of `authorization` also after `Bearer` or "
     "`token`, or as user or password of `Basic`."},
    {"/secrets/*/file", text, kPath, "", 2, 255, "", never,
     "The file with the secret, 12 to 1,024 printable characters, which no domain shows to sessions. Read again when it "
     "changes."},
    {"/secrets/*/command", text, kAny, "", 1, egress::kMaxCommand, "", never,
     "In place of a file: a command of `/bin/sh` that prints the secret, in a session of the domain `credentials`."},
    {"/secrets/*/refresh_seconds", integer, kAny, "", egress::kLeastRefresh, egress::kMostRefresh, "3600", never,
     "After so long the command of a secret that is used runs again; also where the server answers 401."},
    {"/secrets/*/handed", boolean, kAny, "", 0, 0, "false", never,
     "In place of a file: an operator hands it over (`caisson secret set`), and it is in no file at all."},
    {"/secrets/*/env", text, Form::env_name, "", 1, 64, kRequired, never, "The variable in which sessions find the placeholder."},
    {"/secrets/*/why", text, kAny, "", 8, kMaxWhy, kRequired, never, "The reason."},
    field("/published_ports",
          "Ports of a workspace whose previews need no credential, at most 16, while a session of the domain runs there. Needs a "
          "`weaken` entry, even in base.json."),
    field("/api",
          "Areas of the API that programs in the domain's sessions may use for their own workspace, at `$AIO_API_URL` with "
          "`$AIO_TOKEN`. Needs tiers T2 or T3, and a `weaken` entry, even in base.json."),
    {"/limits", object, kAny, "", 0, 0, "{}", never, "Hard limits of one session. There is no \"unlimited\"."},
    field("/limits/processes", "Processes and threads."),
    field("/limits/memory_bytes", "Memory. The cgroup limits it; without cgroup v2 a watchdog adds it up."),
    field("/limits/cpu_percent", "Processor time; 100 is one core. Needs cgroup v2."),
    field("/limits/open_files", "Open files of each process."),
    field("/limits/file_size_bytes", "Size of any file written."),
    field("/limits/cpu_seconds", "Processor seconds of each process."),
    field("/limits/tmp_bytes", "Size of each private tmpfs: /dev/shm, private /tmp and home."),
    field("/limits/tmp_inodes", "Files in each private tmpfs."),
    field("/limits/packages_bytes", "Memory that `system_packages` may take in each workspace."),
    field("/limits/session_seconds", "Life of the session in wall-clock time."),
    field("/limits/execs", "Commands that run at once."),
    field("/limits/io_read_bytes_per_second",
          "Bytes read each second from the disk of the home. The default is no limit. Needs cgroup v2 with the io controller and "
          "a home on a disk; otherwise the mechanism `io` is unavailable."),
    field("/limits/io_write_bytes_per_second", "Bytes written each second, likewise."),
    {"/env", object, kAny, "", 0, 0, "{}", never, "The environment of commands. Nothing is inherited."},
    field("/env/set", "Always given.", Form::env_name, {0, 64}),
    field("/env/client_deny", "Names that a request may not set; `LD_*` stands for every name that begins with LD_.",
          Form::env_pattern, {0, 100}),
    {"/syscalls", object, kAny, "", 0, 0, "{}", never, "The seccomp filter. Calls in no set answer ENOSYS."},
    field("/syscalls/allow", "Sets: `seccomp/<name>.json`.", Form::domain, {1, 32}),
    field("/syscalls/deny", "System calls taken out of these sets; they answer EPERM.", Form::syscall, {0, 100}),
    {"/audit", object, kAny, "", 0, 0, "{}", never,
     "What the audit log records about a session, and how long the log is kept. Recording less than base needs a `weaken` "
     "entry."},
    field("/audit/denials", "Whether each call that a rule refuses is recorded."),
    field("/audit/paths",
          "`observe`: paths that the mount tree or Landlock refuses are recorded as advice. Every call that names a file then "
          "waits for two processes, one of which may read the session's memory. Needs `denials` and a "
          "mount namespace."),
    field("/audit/max_bytes",
          "Disk space of one session's log. The log is written in segments of an eighth. When the next segment would not fit, "
          "the oldest is deleted, and a record in the chain names the deleted records."),
    field("/audit/keep_days",
          "Days for which a log is kept after its session's end. The launcher's own log says which were deleted."),
    field("/audit/on_full",
          "What happens when a record cannot be written. `stop`: the session ends, and no session starts. `stderr`: the session "
          "continues, and its records go to the launcher's standard error until the disk has room."),
    field("/umask", "File mode bits that new files do not get."),
};

constexpr Field kSets[] = {
    {"/name", text, Form::domain, "", 1, 32, kRequired, never, "The name of the file without `.json`."},
    {"/why", text, kAny, "", 8, 1000, kRequired, never, "What the set is for."},
    {"/needs", choice, kAny, words(Mechanism{}), 0, 0, "", never, "The set applies only where this mechanism is enforced."},
    {"/allow", objects, kAny, "", 0, 200, "[]", never, "Rules; every call not in one is refused."},
    {"/allow/*/names", list, Form::syscall, "", 1, 200, kRequired, never,
     "System calls; one that the machine does not have is skipped."},
    {"/allow/*/any_of", rows, kAny, "", 1, 80, "", never, "Allowed only when all conditions of one row hold."},
    {"/allow/*/any_of/*/*/index", integer, kAny, "", 0, 5, kRequired, never, "The number of the argument."},
    {"/allow/*/any_of/*/*/op", choice, kAny, "eq ne lt le gt ge masked_eq", 0, 0, kRequired, never, "Comparison."},
    {"/allow/*/any_of/*/*/value", number, kAny, "", 0, kMax64, kRequired, never, "The value to compare with."},
    {"/allow/*/any_of/*/*/mask", number, kAny, "", 1, kMax64, "", never, "masked_eq: (argument & mask) == value."},
    {"/allow/*/refuse_if", rows, kAny, "", 1, 80, "", never, "Allowed except when all conditions of one row hold."},
    {"/allow/*/refuse_if/*/*/index", integer, kAny, "", 0, 5, kRequired, never, "The number of the argument."},
    {"/allow/*/refuse_if/*/*/op", choice, kAny, "masked_eq", 0, 0, kRequired, never,
     "An exact comparison would be passed by garbage in the upper half."},
    {"/allow/*/refuse_if/*/*/value", number, kAny, "", 0, kMax64, kRequired, never, "The value to compare with."},
    {"/allow/*/refuse_if/*/*/mask", number, kAny, "", 1, kMax64, kRequired, never, "(argument & mask) == value."},
    {"/allow/*/why", text, kAny, "", 1, 1000, "", never, "The reason."},
    {"/refuse", objects, kAny, "", 0, 100, "[]", never, "Calls that answer EPERM instead of ENOSYS."},
    {"/refuse/*/names", list, Form::syscall, "", 1, 200, kRequired, never, "System calls."},
    {"/refuse/*/why", text, kAny, "", 8, 1000, kRequired, never, "The reason."},
    {"/pretend", objects, kAny, "", 0, 100, "[]", never,
     "Calls that are answered without being carried out, whatever other sets say."},
    {"/pretend/*/names", list, Form::syscall, "", 1, 200, kRequired, never, "System calls."},
    {"/pretend/*/errno", choice, kAny, "EPROTONOSUPPORT", 0, 0, "", never, "The answer. Without it: success."},
    {"/pretend/*/when", rows, kAny, "", 1, 80, "", never, "Only when all conditions of one row hold; else as other sets say."},
    {"/pretend/*/when/*/*/index", integer, kAny, "", 0, 5, kRequired, never, "The number of the argument."},
    {"/pretend/*/when/*/*/op", choice, kAny, "masked_eq", 0, 0, kRequired, never, "Comparison."},
    {"/pretend/*/when/*/*/value", number, kAny, "", 0, kMax64, kRequired, never, "The value to compare with."},
    {"/pretend/*/when/*/*/mask", number, kAny, "", 1, kMax64, kRequired, never, "(argument & mask) == value."},
    {"/pretend/*/why", text, kAny, "", 8, 1000, kRequired, never, "The reason."},
};

// How many members an aggregate has.
struct Any {
  template <class T>
  operator T() const;
};
template <class T, class... Some>
consteval std::size_t members_of() {
  if constexpr (requires { T{Some()..., Any()}; }) return members_of<T, Some..., Any>();
  else return sizeof...(Some);
}

// Every member of a policy has a row, each its own, and every row that files have has a field.
static_assert(std::size(kRows) == members_of<Policy>() - 4 + members_of<Limits>() + members_of<Audit>() +
                                      members_of<Environment>() + members_of<Syscalls>(),
              "a member of Policy has no row in rows.h");
static_assert(std::ranges::all_of(kRows,
                                  [](const Row& row) {
                                    return std::ranges::count(kRows, row.member, &Row::member) == 1 &&
                                           (row.pointer.empty() || std::ranges::count(kRows, row.pointer, &Row::pointer) == 1);
                                  }),
              "two rows of rows.h are of one member, or have one pointer");
static_assert(std::ranges::all_of(kRows,
                                  [](const Row& row) {
                                    return std::ranges::count(kPolicy, row.pointer, &Field::pointer) == (in_files(row) ? 1 : 0);
                                  }),
              "a row of rows.h has no field here");

// The fields with the defaults of their rows, which are those of Policy.
struct Defaults {
  Defaults() {
    const json::Value policy = to_json({.network = Network::open});  // with all that it leaves out where there is no way out
    for (std::size_t i = 0; i < fields.size(); ++i) {
      Field& field = fields[i];
      if (find_row(field.pointer) == nullptr) continue;
      // to_json() leaves out empty lists of ports and areas.
      const bool empty = field.type == objects || field.type == ports || field.pointer == "/api";
      if (field.pointer == "/network") texts[i] = "\"loopback\"";
      else texts[i] = empty ? "[]" : json::dump(policy.at(json::Value::json_pointer(std::string(field.pointer))));
      if (texts[i] != "\"\"") field.fallback = texts[i];
    }
  }
  std::array<Field, std::size(kPolicy)> fields = std::to_array(kPolicy);
  std::array<std::string, std::size(kPolicy)> texts;
};

}  // namespace

std::span<const Field> policy_fields() {
  static const Defaults defaults;
  return defaults.fields;
}
std::span<const Field> set_fields() { return kSets; }

const Field* find_field(std::span<const Field> fields, std::string_view pattern) {
  using Index = std::unordered_map<std::string_view, const Field*>;
  const auto index = [](std::span<const Field> rows) {
    Index out;
    for (const Field& field : rows) out.emplace(field.pointer, &field);
    return out;
  };
  static const Index policy = index(policy_fields()), sets = index(kSets);
  const Index& known = fields.data() == std::data(kSets) ? sets : policy;
  const auto it = known.find(pattern);
  return it == known.end() ? nullptr : it->second;
}

}  // namespace caisson::policy
