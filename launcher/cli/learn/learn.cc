// `caisson policy learn`: runs a command in a session that sees everything, or looks at a living session, and proposes what the
// domain's policy lacks and what it has too much of. It proposes; it changes no policy.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "launcher/cli/args.h"
#include "launcher/cli/commands.h"
#include "launcher/cli/control_client.h"
#include "launcher/cli/learn/observer.h"
#include "launcher/cli/learn/propose.h"
#include "launcher/cli/learn/records.h"
#include "launcher/common/base/json.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/policy/text_checks.h"
#include "launcher/compiler/load.h"

namespace caisson::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kExitLost = 22;            // --verify: the learnt policy is not enough
constexpr std::size_t kMaxGrants = 200;  // a session has at most 256 mounts of grants
struct Asked {
  std::string domain;
  std::vector<std::string> command;
  std::vector<std::string> passed;  // --cwd, --env, --grant: for `caisson run`
  std::optional<std::string> output, session;
  unsigned seconds = 0;
  bool verify = false;
};

std::string command_line(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out.size() > 200 ? out.substr(0, 197) + "..." : out;
}

// True when the domain has something of its own strictly below `path`: then its entries are granted one by one, and what the
// domain makes there (a passwd of its own, a read-only grant) stays.
bool has_below(const policy::Policy& p, const std::string& path) {
  const auto under = [&path](const std::string& other) { return other != path && policy::inside(other, path); };
  return std::ranges::any_of(p.grants, [&](const policy::Grant& g) { return under(g.path); }) ||
         std::ranges::any_of(p.files, [&](const auto& f) { return under(f.first); }) ||
         std::ranges::any_of(p.links, [&](const auto& l) { return under(l.first); }) || under(p.home_path) || under("/tmp");
}

// What a session of the domain is shown besides, so that nothing is missing while it is learnt from.
struct World {
  std::vector<std::string> grants;    // "/srv:rwx"
  std::vector<std::string> left_out;  // paths that are there and that no grant could be made for
};

// Everything else there is, as far as owner and mode let the session's user. Not /run: sockets of services wait there.
void open_up(const policy::Policy& p, const std::string& directory, World& world) {
  std::error_code failed;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory, failed)) names.push_back(entry.path().string());
  std::ranges::sort(names);
  for (const std::string& path : names) {
    struct stat st{};
    if (::lstat(path.c_str(), &st) != 0 || (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))) continue;
    if (path == "/proc" || path == "/sys" || path == "/dev" || path == "/run" || path == "/tmp" || path == p.home_path) continue;
    if (p.files.contains(path) || p.links.contains(path)) continue;
    if (std::ranges::any_of(p.grants, [&path](const policy::Grant& g) { return g.path == path; })) continue;
    if (S_ISDIR(st.st_mode) && has_below(p, path)) open_up(p, path, world);
    // A colon ends the path of --grant.
    else if (world.grants.size() < kMaxGrants && path.find(':') == std::string::npos) world.grants.push_back(path + ":rwx");
    else world.left_out.push_back(path);
  }
}

Result<Asked> asked_for(const Args& args) {
  Asked asked{.command = args.words()};
  if (args.before() > 0) return fail(Code::invalid_argument, "one argument too many: " + quote(args.words()[0]));
  asked.session = args.last("--session");
  asked.output = args.last("--output");
  asked.verify = args.has("--verify");
  asked.domain = args.last("--policy").value_or("run");
  for (const char* flag : {"--cwd", "--env", "--grant"})
    for (const std::string& value : args.all(flag)) asked.passed.insert(asked.passed.end(), {flag, value});
  if (const auto seconds = args.last("--seconds")) {
    const auto [end, error] = std::from_chars(seconds->data(), seconds->data() + seconds->size(), asked.seconds);
    if (error != std::errc() || end != seconds->data() + seconds->size() || asked.seconds == 0 || asked.seconds > 86400)
      return fail(Code::invalid_argument, "--seconds must be 1 to 86400");
  }
  if (asked.session.has_value() != asked.command.empty())
    return fail(Code::invalid_argument, "either a command behind \"--\", or --session SESSION");
  if (asked.session && (asked.verify || !asked.passed.empty()))
    return fail(Code::invalid_argument, "--verify, --cwd, --env and --grant go with a command, not with --session");
  if (::geteuid() != 0) return fail(Code::permission_denied, "needs root: it traces the session");
  return asked;
}

// A `caisson run` of the command, traced. grants: beyond those asked for.
Result<int> observe(const std::string& policies, const std::string& domain, const Asked& asked,
                    const std::vector<std::string>& grants, learn::Observer& observer) {
  TRY_ASSIGN(const std::string self, [] -> Result<std::string> {
    std::error_code failed;
    const fs::path path = fs::read_symlink("/proc/self/exe", failed);
    if (failed) return sys_error("read /proc/self/exe", failed.value());
    return path.string();
  }());
  std::vector<std::string> argv = {self, "--policies", policies, "run", "--policy", domain};
  argv.insert(argv.end(), asked.passed.begin(), asked.passed.end());
  for (const std::string& grant : grants) argv.insert(argv.end(), {"--grant", grant});
  argv.emplace_back("--");
  argv.insert(argv.end(), asked.command.begin(), asked.command.end());
  learn::Tracer tracer(observer.watch());
  TRY_ASSIGN(const int status, tracer.run(argv));
  observer.accesses().processes = tracer.processes();
  observer.accesses().peaks.processes = std::max<std::uint64_t>(observer.accesses().peaks.processes, tracer.peak_threads());
  return status;
}

// Every process below `first`, it included and first.
std::vector<pid_t> tree_of(pid_t first) {
  std::vector<pid_t> out{first};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::string base = "/proc/" + std::to_string(out[i]) + "/task";
    std::error_code ignored;
    for (const auto& task : fs::directory_iterator(base, ignored)) {
      std::istringstream children(sys::read_file(task.path().string() + "/children", 1 << 16).value_or(""));
      for (pid_t child = 0; children >> child;) out.push_back(child);
    }
  }
  return out;
}

// What a confined session misses: paths that it was refused or did not find, but that exist out here and that anybody may read.
void take_wishes(learn::Accesses& seen) {
  for (auto& [path, use] : seen.paths) {
    struct stat st{};
    if (use.done != 0 || (use.refused | use.missing) == 0 || ::stat(path.c_str(), &st) != 0) continue;
    if ((st.st_mode & (S_ISDIR(st.st_mode) ? S_IXOTH : S_IROTH)) == 0) continue;
    use.directory = S_ISDIR(st.st_mode);
    use.done = use.refused | use.missing;
  }
}

Result<learn::Accesses> observe_session(const Asked& asked, const Options& options, std::string& domain) {
  pid_t pid = 0;
  {
    TRY_ASSIGN(ControlClient control, ControlClient::connect(options));
    TRY_ASSIGN(const json::Value stat, control.ask("session_stat", {{"session", *asked.session}}));
    pid = static_cast<pid_t>(stat.value("pid", 0));
    domain = stat.value("domain", "");
  }
  if (pid <= 0) return fail(Code::not_found, "the session has no process yet");
  learn::Observer observer;
  learn::Tracer tracer(observer.watch());
  TRY(tracer.attach(tree_of(pid), asked.seconds));
  learn::Accesses seen = std::move(observer.accesses());
  seen.processes = tracer.processes();
  take_wishes(seen);
  // Seen from the middle: no peak is the session's, and whatever was open before is not known.
  seen.peaks = {};
  seen.used_calls.clear();
  seen.inet = true;
  return seen;
}

// The policies with the learnt one among them, for a run under it.
class LearntPolicies {
 public:
  static Result<LearntPolicies> make(const std::string& policies, const json::Value& file) {
    char directory[] = "/tmp/caisson-learn-XXXXXX";
    if (::mkdtemp(directory) == nullptr) return sys_error("mkdtemp");
    LearntPolicies made(directory);
    std::error_code failed;
    fs::copy(policies, made.path(), fs::copy_options::recursive, failed);
    if (failed) return sys_error("copy the policies", failed.value());
    TRY_ASSIGN(const Fd fd, sys::open(made.path() + "/learnt.json", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
    TRY(sys::write_all(fd.get(), json::dump(file, 2) + "\n"));
    return made;
  }
  LearntPolicies(LearntPolicies&& other) noexcept : root_(std::move(other.root_)) { other.root_.clear(); }
  LearntPolicies& operator=(LearntPolicies&&) = delete;
  ~LearntPolicies() {
    std::error_code ignored;
    if (!root_.empty()) fs::remove_all(root_, ignored);
  }
  [[nodiscard]] std::string path() const { return root_ + "/policies"; }

 private:
  explicit LearntPolicies(std::string root) : root_(std::move(root)) {}
  std::string root_;
};

struct Outcome {
  std::shared_ptr<const policy::Policy> policy;
  learn::Accesses seen;
  learn::Proposal proposal;
  std::string names;  // the difference that they make
  json::Value file;
  std::optional<std::vector<std::string>> lost;  // --verify
};

Result<Outcome> learn_it(const Asked& asked, const Options& options) {
  Outcome out;
  std::string domain = asked.domain, source = "session " + asked.session.value_or("");
  int status = 0;
  World world;
  if (asked.session) {
    TRY_ASSIGN(out.seen, observe_session(asked, options, domain));
    TRY_ASSIGN(out.policy, learn::find_policy(options.policies, domain));
  } else {
    source = command_line(asked.command);
    TRY_ASSIGN(out.policy, learn::find_policy(options.policies, domain));
    open_up(*out.policy, "/", world);
    learn::Observer observer;
    TRY_ASSIGN(status, observe(options.policies, domain, asked, world.grants, observer));
    out.seen = std::move(observer.accesses());
    if (out.seen.calls == 0)
      return fail(Code::unavailable, "the session was not started (status " + std::to_string(status) + ")");
  }
  out.proposal = learn::propose(*out.policy, out.seen);
  for (const std::string& path : world.left_out)
    out.proposal.notes.push_back("was not shown " + path + ": more paths than a session can be granted, or a name with a colon");
  if (status != 0)
    out.proposal.notes.insert(out.proposal.notes.begin(), "the command ended with status " + std::to_string(status) +
                                                              ": what it would have done then is not seen");
  out.file = learn::policy_file(*out.policy, out.proposal, source);
  if (asked.session && policy::goes_out(out.policy->network)) {
    learn::Names names(*out.policy);
    TRY(learn::read_names(options, *asked.session, names));
    names.add_to(out.file, source);
    out.names = names.difference();
    for (std::string& note : names.notes()) out.proposal.notes.push_back(std::move(note));
  }
  if (asked.verify) {
    TRY_ASSIGN(const LearntPolicies policies, LearntPolicies::make(options.policies, out.file));
    learn::Observer observer;
    TRY_ASSIGN(const int again, observe(policies.path(), "learnt", asked, {}, observer));
    out.lost = learn::lost(out.seen, observer.accesses());
    if (again != status)
      out.lost->push_back("the command ended with status " + std::to_string(again) + " instead of " + std::to_string(status));
  }
  return out;
}

Status show(const Outcome& out, const Asked& asked, const Options& options) {
  if (asked.output) {
    TRY_ASSIGN(const Fd fd, sys::open(*asked.output, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
    TRY(sys::write_all(fd.get(), json::dump(out.file, 2) + "\n"));
  }
  if (options.json) {
    json::Value document = {{"policy", out.file}, {"notes", out.proposal.notes}, {"calls", out.seen.calls}};
    for (const auto& [path, use] : out.seen.paths)
      document["paths"][path] = {{"done", learn::use_names(use.done)},
                                 {"refused", learn::use_names(use.refused)},
                                 {"missing", learn::use_names(use.missing)}};
    document["lost"] = out.lost ? json::Value(*out.lost) : json::Value(nullptr);
    print_json(document);
    return {};
  }
  std::string report = "against policy " + quote(out.policy->domain) + ", from " + std::to_string(out.seen.calls) + " calls of " +
                       std::to_string(out.seen.processes) + " processes:\n" + learn::difference(*out.policy, out.proposal) +
                       out.names;
  for (const std::string& note : out.proposal.notes) report += "! " + quote(note, 400) + "\n";
  if (out.lost) {
    for (const std::string& line : *out.lost) report += "LOST under the learnt policy: " + quote(line, 400) + "\n";
    if (out.lost->empty()) report += "run again under the learnt policy: nothing was refused\n";
  }
  (void)sys::write_all(2, report);
  if (!asked.output) print(json::dump(out.file, 2) + "\n");
  return {};
}

}  // namespace

Result<int> policy_learn(const Args& args, const Options& options) {
  if (const auto log = args.last("--records")) {
    for (const char* other : {"--session", "--cwd", "--env", "--grant", "--verify", "--seconds"})
      if (args.has(other)) return fail(Code::invalid_argument, "--records goes with --policy and --output alone");
    if (!args.words().empty()) return fail(Code::invalid_argument, "--records runs no command");
    return learn::learn_from_records(options, *log, args.last("--policy"), args.last("--output"));
  }
  TRY_ASSIGN(const Asked asked, asked_for(args));
  TRY_ASSIGN(const Outcome outcome, learn_it(asked, options));
  TRY(show(outcome, asked, options));
  return outcome.lost && !outcome.lost->empty() ? kExitLost : 0;
}

}  // namespace caisson::cli
