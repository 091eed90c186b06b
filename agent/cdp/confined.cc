#include "agent/cdp/confined.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "launcher/common/base/sys.h"

namespace caisson::cdp {
namespace {

std::string file_of(pid_t pid, const char* name) { return "/proc/" + std::to_string(pid) + "/" + name; }

template <class T>
std::optional<T> number(std::string_view text) {
  T out{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(out) : std::nullopt;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of(" \t\n"), text.size());
    if (end > 0) out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// proc_pid_stat(5): the name in parentheses may have any character, so fields are counted behind the last one.
std::optional<Process> process_of(pid_t pid) {
  const auto stat = sys::read_file(file_of(pid, "stat"), 4096);
  if (!stat) return std::nullopt;
  const auto name_end = stat->rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  const auto fields = words_of(std::string_view(*stat).substr(name_end + 1));
  constexpr std::size_t kParent = 1, kStarted = 19;
  if (fields.size() <= kStarted) return std::nullopt;
  const auto parent = number<pid_t>(fields[kParent]);
  const auto started = number<std::uint64_t>(fields[kStarted]);
  if (!parent || !started) return std::nullopt;
  return Process{pid, *parent, *started};
}

struct SandboxCall {
  const char* name;
  int (*make)();
};
constexpr SandboxCall kSandboxCalls[] = {{"unshare(CLONE_NEWUSER)", [] { return ::unshare(CLONE_NEWUSER); }},
                                         {"chroot in a user namespace", [] { return ::chroot("/"); }}};

}  // namespace

Status try_sandbox() {
  TRY_ASSIGN(auto said, sys::pipe());
  const pid_t child = ::fork();
  if (child < 0) return sys_error("fork");
  if (child == 0) {
    for (int i = 0; const SandboxCall& call : kSandboxCalls) {
      const int refused[] = {i++, call.make() == 0 ? 0 : errno};
      if (refused[1] != 0) ::_exit(::write(said.second.get(), refused, sizeof refused) > 0 ? 1 : 2);
    }
    ::_exit(0);
  }
  said.second.reset();
  int refused[2] = {};
  const bool told = ::read(said.first.get(), refused, sizeof refused) == static_cast<ssize_t>(sizeof refused);
  const int status = sys::reap(child);
  if (!told && status == 0) return {};
  if (!told) return fail(Code::unavailable, "the calls of Chromium's sandbox end a process, status " + std::to_string(status));
  return fail(Code::unavailable, std::string(kSandboxCalls[refused[0]].name) + " is refused (" + errno_name(refused[1]) +
                                     "), and Chromium's sandbox needs it: start the container with image/seccomp.json");
}

std::vector<Process> descendants(pid_t ancestor) {
  std::multimap<pid_t, Process> by_parent;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (proc == nullptr) return {};
  while (const dirent* entry = ::readdir(proc.get())) {
    const auto pid = number<pid_t>(entry->d_name);
    if (!pid || by_parent.size() >= kMaxProcesses) continue;
    if (const auto process = process_of(*pid)) by_parent.emplace(process->parent, *process);
  }
  std::vector<Process> out;
  std::set<pid_t> seen{ancestor};
  for (std::vector<pid_t> next{ancestor}; !next.empty();) {
    const auto [begin, end] = by_parent.equal_range(next.back());
    next.pop_back();
    for (auto it = begin; it != end; ++it) {
      if (!seen.insert(it->second.pid).second) continue;
      out.push_back(it->second);
      next.push_back(it->second.pid);
    }
  }
  return out;
}

bool has_type(pid_t pid, std::string_view type) {
  const auto file = sys::open(file_of(pid, "cmdline"), O_RDONLY);
  if (!file) return false;
  std::string line(16 * 1024, '\0');
  const ssize_t n = ::read(file->get(), line.data(), line.size());
  if (n <= 0) return false;
  line.resize(static_cast<std::size_t>(n));
  const std::string option = "--type=" + std::string(type);
  for (std::size_t at = line.find(option); at != std::string::npos; at = line.find(option, at + 1)) {
    const char before = at == 0 ? '\0' : line[at - 1], after = at + option.size() < line.size() ? line[at + option.size()] : '\0';
    if ((before == '\0' || before == ' ') && (after == '\0' || after == ' ')) return true;
  }
  return false;
}

std::optional<Confinement> confinement_of(pid_t pid) {
  const auto status = sys::read_file(file_of(pid, "status"), 64 * 1024);
  if (!status) return std::nullopt;
  const std::string namespaces = sys::status_field(*status, "NSpid");
  const auto filters = number<std::size_t>(sys::status_field(*status, "Seccomp_filters"));
  if (!sys::status_field(*status, "State").starts_with('Z') && filters) return Confinement{words_of(namespaces).size(), *filters};
  return std::nullopt;
}

Watch::Watch(std::size_t least_filters)
    : own_(confinement_of(::getpid()).value_or(Confinement{1, 0})),
      least_filters_(least_filters > 0 ? least_filters : std::max<std::size_t>(2, own_.filters + 1)) {}

std::string Watch::judge(const Confinement& it, std::int64_t known_for_us) const {
  if (it.pid_namespaces <= own_.pid_namespaces) return "it has no PID namespace of its own";
  if (it.filters >= least_filters_ || known_for_us < kFilterWithinUs) return "";
  return "it has " + std::to_string(it.filters) + " seccomp filters, and must have " + std::to_string(least_filters_);
}

std::optional<Watch::Finding> Watch::look(const std::vector<Process>& processes, std::int64_t now_us) {
  std::map<std::pair<pid_t, std::uint64_t>, std::int64_t> seen;
  std::optional<Finding> found;
  for (const Process& process : processes) {
    if (!has_type(process.pid, "renderer")) continue;
    const auto key = std::pair(process.pid, process.started);
    const auto known = first_seen_.find(key);
    const std::int64_t since = known == first_seen_.end() ? now_us : known->second;
    seen.emplace(key, since);
    const auto confinement = confinement_of(process.pid);
    if (!confinement || found) continue;
    if (const std::string why = judge(*confinement, now_us - since); !why.empty()) found = Finding{process.pid, why};
  }
  first_seen_ = std::move(seen);
  return found;
}

bool Zygotes::lost(pid_t browser, const std::vector<Process>& processes, bool ready) {
  std::set<std::pair<pid_t, std::uint64_t>> there;
  for (const Process& process : processes)
    if (process.parent == browser && has_type(process.pid, "zygote")) there.emplace(process.pid, process.started);
  const bool any_gone = !std::ranges::includes(there, seen_) || (ready && there.empty());
  seen_ = std::move(there);
  return any_gone;
}

}  // namespace caisson::cdp
