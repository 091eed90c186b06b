#include "launcher/policy/summary.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "launcher/base/hash.h"
#include "launcher/policy/stages.h"

namespace caisson::policy {
namespace {

// 2147483648 -> "2 GiB", where nothing is lost by it.
std::string amount(const std::string& limit, std::uint64_t value) {
  std::string unit;
  if (limit.ends_with("_bytes"))
    for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
      if (value < 1024 || value % 1024 != 0) break;
      value /= 1024, unit = next;
    }
  if (limit.ends_with("_bytes") && unit.empty()) unit = "bytes";
  if (limit.ends_with("_seconds")) {
    unit = "s";
    for (const auto& [size, next] : {std::pair(60U, "min"), std::pair(60U, "h"), std::pair(24U, "days")}) {
      if (value < size || value % size != 0) break;
      value /= size, unit = next;
    }
  }
  if (unit == "days" && value == 1) unit = "day";
  if (limit.ends_with("_percent")) unit = "%";
  return std::to_string(value) + (unit.empty() ? "" : " " + unit);
}

std::string scope(Scope scope) { return scope == Scope::private_ ? "of this session alone" : "shared by the workspace"; }

template <class List, class Name>
std::string joined(const List& list, const Name& name) {
  std::string out;
  for (const auto& item : list) out.append(out.empty() ? "" : " ").append(name(item));
  return out.empty() ? "none" : out;
}
std::string joined(const std::vector<std::string>& list) {
  return joined(list, [](const std::string& s) { return s; });
}

class Facts {
 public:
  explicit Facts(const Policy& p) : p_(p) {}

  std::vector<Fact> all() {
    reads();
    writes();
    runs();
    add("reaches", "network", p_.network == Network::none ? "nothing: no internet sockets" : "loopback of its workspace only",
        why("/network"));
    for (const LimitRow& row : kLimits)
      add("uses", row.name, amount(row.name, p_.limits.*row.member), why(std::string("/limits/") + row.name));
    recorded();
    add("starts", "weakest tier", std::string(tier_name(p_.min_tier)), why("/min_tier"));
    add("starts", "requires", joined(p_.require, mechanism_name), why("/require"));
    add("starts", "switched off", joined(p_.disable, mechanism_name), why("/disable"));
    add("starts", "preset", p_.preset.empty() ? "none" : p_.preset, "");
    return std::move(out_);
  }

 private:
  void add(std::string topic, std::string name, std::string value, std::string reason) {
    out_.push_back({std::move(topic), std::move(name), std::move(value), std::move(reason)});
  }
  std::string why(const std::string& field) const { return reason_of(p_, field); }

  std::string why_of(const Grant& g) const {
    const std::string given = why("/grants" + g.path);
    return given.empty() ? g.description : given;
  }
  static std::string origin(const Grant& g) {
    return (g.source == g.path ? "" : " from " + g.source) + (g.required ? "" : ", if there");
  }

  void reads() {
    for (const Grant& g : p_.grants) add("reads", g.path, "all below" + origin(g), why_of(g));
    for (const std::string& path : p_.hide) add("reads", path, "hidden", why("/hide"));
    for (const auto& [path, content] : p_.files) add("reads", path, "a file made for it, sha256 " + sha(content), why("/files"));
    for (const auto& [path, target] : p_.links) add("reads", path, "a link to " + target, why("/links"));
    add("reads", "/dev", joined(p_.devices), why("/devices"));
    add("reads", "/proc",
        p_.proc_shared_fallback ? "its own; where none can be mounted, the container's"
                                : "its own; where none can be mounted, none",
        why("/proc_shared_fallback"));
  }

  void writes() {
    add("writes", p_.home_path, scope(p_.home), why("/home"));
    add("writes", "/tmp", scope(p_.tmp), why("/tmp"));
    add("writes", "/dev/shm", scope(Scope::private_), "");
    for (const Grant& g : p_.grants)
      if (g.access == Access::read_write) add("writes", g.path, "all below" + origin(g), why_of(g));
    for (const std::string& name : p_.protect)
      add("writes", name, p_.protect_home ? "not, in grants and in the home" : "not, in grants", why("/protect"));
    if (p_.system_packages)
      add("writes", "/usr, /etc, /var", "a copy that the sessions of the workspace share, to install packages in",
          why("/system_packages"));
    add("writes", "umask", octal_text(p_.umask), why("/umask"));
  }

  void runs() {
    for (const Grant& g : p_.grants)
      if (g.execute) add("runs", g.path, "programs below", why_of(g));
    add("runs", "home and /tmp", p_.exec_writable ? "programs below" : "no program, scripts by an interpreter only",
        why("/exec_writable"));
    for (const auto& [name, value] : p_.env.set) add("runs", "$" + name, value, "");
    add("runs", "not from a request", joined(p_.env.client_deny), why("/env/client_deny"));
    for (const SyscallSet& set : p_.sets)
      add("runs", "system calls " + set.name,
          std::to_string(set.allow.size()) + " allowed, " + std::to_string(set.refuse.size()) + " refused" +
              (set.needs ? ", needs " + std::string(mechanism_name(*set.needs)) : ""),
          set.why);
    add("runs", "denied by the policy", joined(p_.syscalls.deny), why("/syscalls/deny"));
  }

  void recorded() {
    add("is recorded", "refused calls", p_.audit.denials ? "each" : "no", why("/audit/denials"));
    add("is recorded", "refused paths", p_.audit.paths ? "as far as names tell" : "no", why("/audit/paths"));
    add("is recorded", "at most", amount("_bytes", p_.audit.max_bytes), why("/audit/max_bytes"));
    add("is recorded", "kept", std::to_string(p_.audit.keep_days) + " days after its end", why("/audit/keep_days"));
    add("is recorded", "with a full disk", p_.audit.on_full == OnFull::stop ? "the session ends" : "the session goes on",
        why("/audit/on_full"));
  }

  static std::string sha(const std::string& content) { return sha256_hex(content).substr(0, 12); }

  const Policy& p_;
  std::vector<Fact> out_;
};

}  // namespace

std::string reason_of(const Policy& policy, const std::string& field) {
  if (const auto it = policy.weaken.find(field); it != policy.weaken.end()) return it->second;
  const auto it = policy.why.find(field);
  return it == policy.why.end() ? "" : it->second;
}

std::vector<Fact> facts(const Policy& policy) { return Facts(policy).all(); }

std::vector<Deduction> deductions(const Policy& policy) { return caisson::deductions(to_json(policy)); }

std::vector<Difference> differences(const Policy& before, const Policy& after) {
  std::vector<Difference> out;
  const std::vector<Fact> old_facts = facts(before), new_facts = facts(after);
  const auto same = [](const Fact& a) { return [&a](const Fact& b) { return a.topic == b.topic && a.name == b.name; }; };
  for (const Fact& f : old_facts)
    if (std::ranges::none_of(new_facts, same(f))) out.push_back({f.topic, f.name, f.value, "", f.why});
  for (const Fact& f : new_facts) {
    const auto was = std::ranges::find_if(old_facts, same(f));
    if (was == old_facts.end()) out.push_back({f.topic, f.name, "", f.value, f.why});
    else if (was->value != f.value) out.push_back({f.topic, f.name, was->value, f.value, f.why});
  }
  // In the order of the topics, as explain has them.
  std::vector<Difference> sorted;
  std::set<std::string> done;
  for (const Fact& f : new_facts)
    if (done.insert(f.topic).second)
      std::ranges::copy_if(out, std::back_inserter(sorted), [&f](const Difference& d) { return d.topic == f.topic; });
  return sorted;
}

std::vector<std::string> json_names(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (const auto name = entry.path().filename().string(); name.ends_with(".json") && name[0] != '.')
      out.push_back(name.substr(0, name.size() - 5));
  std::ranges::sort(out);
  return out;
}

std::string presets_text(const std::vector<std::pair<std::string, PolicySet>>& presets) {
  const auto value = [](const Policy& p, const std::string& topic, const std::string& name) {
    for (const Fact& f : facts(p))
      if (f.topic == topic && f.name == name) return f.value;
    return std::string("no");
  };
  static constexpr std::pair<const char*, const char*> kRows[] = {
      {"starts", "weakest tier"},  {"reaches", "network"},      {"writes", "/home/gem"},    {"writes", "/tmp"},
      {"writes", "umask"},         {"runs", "home and /tmp"},   {"reads", "/srv/datasets"}, {"runs", "denied by the policy"},
      {"uses", "processes"},       {"uses", "memory_bytes"},    {"uses", "cpu_percent"},    {"uses", "cpu_seconds"},
      {"uses", "file_size_bytes"}, {"uses", "session_seconds"}, {"uses", "execs"},          {"is recorded", "paths touched"},
      {"is recorded", "at most"},  {"is recorded", "kept"}};
  std::string out = "With each preset, a session of `bash`:\n\n| |";
  for (const auto& [name, domains] : presets) out += name.empty() ? " none |" : " `" + name + "` |";
  out += "\n|---|";
  for (std::size_t i = 0; i < presets.size(); ++i) out += "---|";
  out += "\n";
  for (const auto& [topic, name] : kRows) {
    out += std::string("| ") + topic + ": " + name + " |";
    for (const auto& [preset, domains] : presets) out += " " + value(*domains.at("bash"), topic, name) + " |";
    out += "\n";
  }
  out += "| programs of /usr/local |";
  for (const auto& [preset, domains] : presets) {
    const Grant* rule = ruling_grant(domains.at("bash")->grants, "/usr/local");
    out += rule != nullptr && rule->execute ? " run |" : " are read only |";
  }
  out += "\n| posture score |";
  for (const auto& [preset, domains] : presets) out += " " + std::to_string(score(deductions(*domains.at("bash")))) + " |";
  out +=
      "\n\nWithout a preset, each domain, and its posture score without and with each preset:\n\n"
      "| domain | reaches | home | /tmp | runs what it wrote | processes | memory | processor time | life | score |";
  for (const auto& [preset, domains] : presets)
    if (!preset.empty()) out += " `" + preset + "` |";
  out += "\n|---|---|---|---|---|---|---|---|---|---|";
  for (std::size_t i = 1; i < presets.size(); ++i) out += "---|";
  out += "\n";
  for (const auto& [domain, p] : presets.front().second) {
    out += "| `" + domain + "` | " + (p->network == Network::none ? "nothing" : "loopback");
    for (const Scope s : {p->home, p->tmp}) out += s == Scope::private_ ? " | private" : " | workspace";
    out += std::string(" | ") + (p->exec_writable ? "yes" : "no") + " | " + std::to_string(p->limits.processes) + " | " +
           amount("_bytes", p->limits.memory_bytes) + " | " + amount("_seconds", p->limits.cpu_seconds) + " | " +
           amount("_seconds", p->limits.session_seconds) + " |";
    for (const auto& [preset, domains] : presets) out += " " + std::to_string(score(deductions(*domains.at(domain)))) + " |";
    out += "\n";
  }
  return out;
}

}  // namespace caisson::policy
