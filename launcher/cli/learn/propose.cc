#include "launcher/cli/learn/propose.h"

#include <algorithm>
#include <set>

#include "launcher/cli/learn/calls.h"
#include "launcher/common/policy/in_force.h"
#include "launcher/common/policy/rows.h"
#include "launcher/common/policy/text_checks.h"

namespace caisson::cli::learn {
namespace {

using policy::inside;

constexpr std::size_t kSiblings = 3;  // files of one directory before the directory is proposed
constexpr std::size_t kTogether = 8;  // grants below one directory before it is

constexpr std::string_view kBroad[] = {"/",        "/bin",     "/boot",      "/etc",      "/home",      "/lib",     "/lib64",
                                       "/media",   "/mnt",     "/opt",       "/root",     "/run",       "/sbin",    "/srv",
                                       "/sys",     "/usr",     "/var",       "/var/lib",  "/var/cache", "/var/log", "/var/run",
                                       "/var/tmp", "/usr/lib", "/usr/share", "/usr/local"};

struct Need {
  bool write = false, execute = false;
  void add(const Need& other) {
    write |= other.write;
    execute |= other.execute;
  }
};
using Needs = std::map<std::string, Need>;

std::string parent(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

// What the session makes itself, whatever it is granted.
bool is_special(const policy::Policy& p, const std::string& path) {
  for (const std::string_view own : {std::string_view("/proc"), std::string_view("/dev"), std::string_view("/sys"),
                                     std::string_view("/tmp"), std::string_view(p.home_path)})
    if (inside(path, own)) return true;
  return path == "/";
}

// A grant for each path that was really used. Entries made or removed need their directory.
Needs needs_of(const policy::Policy& p, const Accesses& seen) {
  Needs needs;
  for (const auto& [path, use] : seen.paths) {
    if (is_special(p, path)) continue;
    const unsigned used = use.done;
    // That a directory is there shows without a grant where something below it is granted.
    const unsigned real = use.directory ? used & ~unsigned{kLooked} : used;
    if (real == 0) continue;
    const Need need{(used & (kWritten | kEntries)) != 0, (used & kExecuted) != 0};
    const auto cover = covered(p, path);
    if (cover && (cover->write || !need.write) && (cover->execute || !need.execute)) continue;
    needs[path].add(need);
  }
  return needs;
}

// Replaces everything at and below `directory` by it.
void collapse(Needs& needs, const std::string& directory) {
  Need all;
  std::erase_if(needs, [&](const auto& entry) {
    if (!inside(entry.first, directory)) return false;
    all.add(entry.second);
    return true;
  });
  needs[directory].add(all);
}

// Entries of one directory become the directory; many grants below one directory become one of it. Not above what is broad.
void generalise(const policy::Policy& p, const Accesses& seen, Needs& needs) {
  for (;;) {
    std::map<std::string, std::size_t> children, below;
    for (const auto& [path, need] : needs) {
      ++children[parent(path)];
      for (std::string up = parent(path); up != "/"; up = parent(up)) ++below[up];
    }
    std::string pick;
    for (const auto& [directory, count] : children) {
      const auto at = seen.paths.find(directory);
      const bool listed = at != seen.paths.end() && (at->second.done & kListed) != 0;
      if (!is_broad(p, directory) && (count >= kSiblings || (listed && count > 0)) && !needs.contains(directory))
        pick = directory;
    }
    if (pick.empty())
      for (const auto& [directory, count] : below)
        if (count > kTogether && !is_broad(p, directory) && !needs.contains(directory)) pick = directory;
    // A grant that lies in another one with no less access is none.
    for (auto it = needs.begin(); pick.empty() && it != needs.end(); ++it) {
      const auto within = std::ranges::find_if(needs, [&](const auto& other) {
        return other.first != it->first && inside(it->first, other.first) && !is_broad(p, other.first) &&
               (other.second.write || !it->second.write) && (other.second.execute || !it->second.execute);
      });
      if (within != needs.end()) pick = within->first;
    }
    if (pick.empty()) return;
    collapse(needs, pick);
  }
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t step) { return (value + step - 1) / step * step; }

// Sets that every session needs: caisson-init's calls, and what C libraries and interpreters do at their start and end.
constexpr std::string_view kAlways[] = {"basic-io", "files", "memory",   "process", "signals",      "time",
                                        "sync",     "sched", "terminal", "misc",    "sockets-unix", "refused"};

// The domain's sets without those of which no call was made; nothing when that is all of them, or not all calls were seen.
std::vector<std::string> used_sets(const policy::Policy& policy, const Accesses& seen) {
  if (seen.used_calls.empty()) return {};
  std::set<std::string> used;
  for (const std::uint64_t number : seen.used_calls) used.insert(call_name(number));
  std::vector<std::string> out;
  for (const policy::SyscallSet& set : policy.sets)
    if (std::ranges::find(kAlways, set.name) != std::end(kAlways) ||
        std::ranges::any_of(set.allow, [&](const policy::SyscallRule& rule) { return used.contains(rule.name); }))
      out.push_back(set.name);
  return out.size() < policy.sets.size() ? out : std::vector<std::string>();
}

void propose_limit(Proposal& out, const char* name, std::uint64_t now, std::uint64_t seen, std::uint64_t factor,
                   std::uint64_t step) {
  const std::uint64_t wanted = std::max(step, round_up(seen * factor, step));
  if (seen != 0 && wanted < now) out.limits[name] = wanted;
}

}  // namespace

bool is_broad(const policy::Policy& policy, const std::string& path) {
  return std::ranges::find(kBroad, path) != std::end(kBroad) || path == policy.home_path || parent(path) == "/home";
}

std::optional<Cover> covered(const policy::Policy& policy, const std::string& path) {
  if (inside(path, policy.home_path) || inside(path, "/tmp")) return Cover{true, inside(path, policy.home_path)};
  if (policy.files.contains(path) || policy.links.contains(path)) return Cover{};
  const policy::Grant* longest = policy::ruling_grant(policy.grants, path);
  if (longest == nullptr) return std::nullopt;
  return Cover{longest->access == policy::Access::read_write, longest->execute};
}

std::vector<std::string> use_names(unsigned use) {
  static constexpr const char* kNames[] = {"looked", "read", "listed", "written", "executed", "entries"};
  std::vector<std::string> out;
  for (unsigned i = 0; i < std::size(kNames); ++i)
    if ((use >> i & 1U) != 0) out.emplace_back(kNames[i]);
  return out;
}

Proposal propose(const policy::Policy& policy, const Accesses& seen) {
  Proposal out;
  Needs needs = needs_of(policy, seen);
  generalise(policy, seen, needs);
  for (const auto& [path, need] : needs) {
    // A directory that can only be granted whole and is too broad for that: named, not granted.
    if (is_broad(policy, path)) {
      out.notes.push_back((need.write ? "writes entries of " : "reads ") + path + " itself: too broad to be granted");
      continue;
    }
    const auto access = need.write ? policy::Access::read_write : policy::Access::read;
    out.grants.push_back({.path = path, .source = path, .access = access, .execute = need.execute});
  }
  const Peaks& peak = seen.peaks;
  propose_limit(out, "processes", policy.limits.processes, peak.processes, 2, 16);
  propose_limit(out, "memory_bytes", policy.limits.memory_bytes, peak.memory_bytes, 2, 64ULL << 20);
  propose_limit(out, "open_files", policy.limits.open_files, peak.open_files, 2, 64);
  propose_limit(out, "file_size_bytes", policy.limits.file_size_bytes, peak.file_size_bytes, 4, 16ULL << 20);
  propose_limit(out, "cpu_seconds", policy.limits.cpu_seconds, peak.cpu_seconds, 4, 60);
  out.sets = used_sets(policy, seen);
  out.network_none = !seen.inet && policy.network != policy::Network::none;

  for (const std::string& address : seen.outside)
    out.notes.push_back("connects to " + address + ": what goes out is learnt by name, from records (--records)");
  for (const auto& [call, count] : seen.refused_calls)
    out.notes.push_back("was refused " + call + " " + std::to_string(count) + " times, and went on");
  for (const auto& [path, use] : seen.paths)
    if (use.refused != 0 && use.done == 0 && !is_special(policy, path) && out.notes.size() < 100)
      out.notes.push_back("was refused " + path + " by its owner and mode, too");
  if (seen.dropped != 0)
    out.notes.push_back(std::to_string(seen.dropped) + " paths were beyond what is kept: the proposal is not whole");
  out.notes.emplace_back(
      "not seen: what other input or another day would make the command do; peaks of memory between two samples; files reached "
      "through descriptors that another process sent");
  return out;
}

json::Value policy_file(const policy::Policy& policy, const Proposal& proposal, const std::string& command) {
  json::Value file = {{"description", "Learnt from: " + command}, {"extends", policy.domain}};
  for (const policy::Grant& grant : proposal.grants) {
    const bool write = grant.access == policy::Access::read_write;
    json::Value one = {{"path", grant.path}, {"access", write ? "read-write" : "read"}, {"description", "learnt"}};
    if (grant.execute) one["execute"] = true;
    file["grants"].push_back(std::move(one));
    file["weaken"].push_back({{"field", "/grants" + grant.path},
                              {"why", std::string(write           ? "written"
                                                  : grant.execute ? "executed"
                                                                  : "read") +
                                          " by: " + command}});
  }
  for (const auto& [name, value] : proposal.limits) file["limits"][name] = value;
  if (!proposal.sets.empty()) {
    file["syscalls"]["allow"] = proposal.sets;
    file["why"]["/syscalls/allow"] = "the command made no call of the domain's other sets";
  }
  if (proposal.network_none) {
    file["network"] = "none";
    file["why"]["/network"] = "the command made no internet socket";
  }
  return file;
}

std::string difference(const policy::Policy& policy, const Proposal& proposal) {
  std::string out;
  for (const policy::Grant& grant : proposal.grants)
    out += "+ grant " + std::string(grant.access == policy::Access::read_write ? "read-write" : "read") +
           (grant.execute ? ", programs may run: " : ": ") + grant.path + "\n";
  for (const policy::SyscallSet& set : policy.sets)
    if (!proposal.sets.empty() && std::ranges::find(proposal.sets, set.name) == proposal.sets.end())
      out += "- syscalls/allow " + set.name + "\n";
  if (proposal.network_none) out += "- network -> none\n";
  for (const policy::Row& row : policy::kRows)
    if (const auto* limit = std::get_if<std::uint64_t policy::Limits::*>(&row.member))
      if (const auto at = proposal.limits.find(std::string(row.name())); at != proposal.limits.end())
        out += "- limits/" + at->first + " " + std::to_string(policy.limits.**limit) + " -> " + std::to_string(at->second) + "\n";
  return out;
}

std::vector<std::string> lost(const Accesses& learnt, const Accesses& again) {
  std::vector<std::string> out;
  for (const auto& [path, use] : again.paths) {
    const auto before = learnt.paths.find(path);
    const unsigned could = before == learnt.paths.end() ? 0 : before->second.done;
    const unsigned refused = use.refused & could & ~use.done, missing = use.missing & could & ~use.done;
    if (refused != 0) out.push_back("refused: " + path);
    else if (missing != 0 && !before->second.directory) out.push_back("not there: " + path);
  }
  for (const auto& [call, count] : again.refused_calls)
    if (!learnt.refused_calls.contains(call))
      out.push_back("refused: system call " + call + ", " + std::to_string(count) + " times");
  return out;
}

}  // namespace caisson::cli::learn
