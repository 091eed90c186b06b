#include "launcher/compiler/summary.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "launcher/common/base/hash.h"
#include "launcher/compiler/canonical.h"
#include "launcher/compiler/egress.h"
#include "launcher/compiler/fields.h"
#include "launcher/compiler/secrets.h"
#include "launcher/egress/list/path.h"

namespace caisson::policy {
namespace {

// 2147483648 -> "2 GiB", where nothing is lost by it.
std::string amount(std::string_view limit, std::uint64_t value) {
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

std::string_view reach(Network network) {
  switch (network) {
    case Network::none:
      return "nothing: no internet sockets";
    case Network::loopback:
      return "loopback of its workspace only";
    case Network::allowlist:
      return "loopback of its workspace, and what is allowed here";
    case Network::monitor:
      return "every public address; each connection is on record";
    case Network::open:
      return "every public address";
  }
  return "";
}

// "allowed at 80, 443, also if private" of a rule in canonical JSON.
std::string permission(const json::Value& rule) {
  const bool deny = rule.value("deny", false);
  std::string out = deny ? "denied" : "allowed";
  if (rule.contains("ports")) {
    out += " at";
    for (const json::Value& port : rule["ports"])
      out += (out.ends_with(" at") ? " " : ", ") +
             (port.is_string() ? port.get<std::string>() : std::to_string(port.get<unsigned>()));
  } else if (!deny) {
    out += " at 80, 443";
  }
  if (rule.contains("private")) out += "; may be private";
  if (rule.contains("methods")) out += "; GET, HEAD and OPTIONS only";
  if (rule.contains("inspect")) out += "; TLS is opened there";
  if (rule.contains("paths")) out += "; at and below " + egress::paths_text(rule["paths"].get<std::vector<std::string>>());
  if (rule.contains("sni")) out += "; TLS server name " + rule["sni"].get<std::string>();
  return out;
}

std::string scope(Scope scope) {
  return scope == Scope::private_ ? "of this session alone"
         : scope == Scope::read   ? "the workspace's, to be read"
                                  : "shared by the workspace";
}

template <class List, class Name>
std::string joined(const List& list, const Name& name) {
  std::string out;
  for (const auto& item : list) out.append(out.empty() ? "" : " ").append(name(item));
  return out.empty() ? "none" : out;
}
std::string joined(const std::vector<std::string>& list) {
  return joined(list, [](const std::string& s) { return s; });
}

std::string origin(const Grant& g) { return (g.source == g.path ? "" : " from " + g.source) + (g.required ? "" : ", if there"); }
std::string why_of(const Policy& p, const Grant& g) {
  const std::string given = reason_of(p, "/grants" + g.path);
  return given.empty() ? g.description : given;
}

// Says facts about one field: each with the field's reason, where no other is given.
class Say {
 public:
  Say(const Policy& policy, std::string_view pointer, std::string_view topic, std::vector<Fact>& out)
      : why_(reason_of(policy, std::string(pointer))), topic_(topic), out_(out) {}
  void operator()(std::string name, std::string value) const { (*this)(std::move(name), std::move(value), why_); }
  void operator()(std::string name, std::string value, std::string why) const {
    out_.push_back({topic_, std::move(name), std::move(value), std::move(why)});
  }

 private:
  std::string why_, topic_;
  std::vector<Fact>& out_;
};

// What is said of each field, in this order. A pointer that ends in "/" stands for all rows below it.
struct Telling {
  std::string_view topic, pointer;
  void (*tell)(const Policy&, const Say&);
};
constexpr Telling kTellings[] = {
    {"reads", "/grants",
     [](const Policy& p, const Say& say) {
       for (const Grant& g : p.grants) say(g.path, "all below" + origin(g), why_of(p, g));
     }},
    {"reads", "/hide",
     [](const Policy& p, const Say& say) {
       for (const std::string& path : p.hide) say(path, "hidden");
     }},
    {"reads", "/files",
     [](const Policy& p, const Say& say) {
       for (const auto& [path, content] : p.files)
         say(path, "a file that the launcher makes, sha256 " + sha256_hex(content).substr(0, 12));
     }},
    {"reads", "/links",
     [](const Policy& p, const Say& say) {
       for (const auto& [path, target] : p.links) say(path, "a link to " + target);
     }},
    {"reads", "/devices", [](const Policy& p, const Say& say) { say("/dev", joined(p.devices)); }},
    {"reads", "/proc_shared_fallback",
     [](const Policy& p, const Say& say) {
       say("/proc", p.proc_shared_fallback ? "its own; the container's where none can be mounted"
                                           : "its own; none where it cannot be mounted");
     }},
    {"writes", "/home", [](const Policy& p, const Say& say) { say(p.home_path, scope(p.home)); }},
    {"writes", "/tmp",
     [](const Policy& p, const Say& say) {
       say("/tmp", scope(p.tmp));
       say("/dev/shm", scope(Scope::private_), "");
     }},
    {"writes", "/grants",
     [](const Policy& p, const Say& say) {
       for (const Grant& g : p.grants)
         if (g.access == Access::read_write) say(g.path, "all below" + origin(g), why_of(p, g));
     }},
    {"writes", "/protect",
     [](const Policy& p, const Say& say) {
       for (const std::string& name : p.protect)
         say(name, p.protect_home ? "read-only in grants and in the home" : "read-only in grants");
     }},
    {"writes", "/system_packages",
     [](const Policy& p, const Say& say) {
       if (p.system_packages) say("/usr, /etc, /var", "a copy that the sessions of the workspace share, to install packages in");
     }},
    {"writes", "/umask", [](const Policy& p, const Say& say) { say("umask", octal_text(p.umask)); }},
    {"runs", "/grants",
     [](const Policy& p, const Say& say) {
       for (const Grant& g : p.grants)
         if (g.execute) say(g.path, "programs below", why_of(p, g));
     }},
    {"runs", "/exec_writable",
     [](const Policy& p, const Say& say) {
       say("home and /tmp", p.exec_writable ? "programs below" : "no programs; scripts only through an interpreter");
     }},
    {"runs", "/env/set",
     [](const Policy& p, const Say& say) {
       for (const auto& [name, value] : p.env.set) say("$" + name, value, "");
     }},
    {"runs", "/env/client_deny", [](const Policy& p, const Say& say) { say("denied to requests", joined(p.env.client_deny)); }},
    {"runs", "/syscalls/allow",
     [](const Policy& p, const Say& say) {
       for (const SyscallSet& set : p.sets)
         say("system calls " + set.name,
             std::to_string(set.allow.size()) + " allowed, " + std::to_string(set.refuse.size()) + " refused" +
                 (set.needs ? ", needs " + std::string(mechanism_name(*set.needs)) : ""),
             set.why);
     }},
    {"runs", "/syscalls/deny", [](const Policy& p, const Say& say) { say("denied by the policy", joined(p.syscalls.deny)); }},
    {"reaches", "/network", [](const Policy& p, const Say& say) { say("network", std::string(reach(p.network))); }},
    {"reaches", "/egress",
     [](const Policy& p, const Say& say) {
       for (const json::Value& rule : egress_json(p.egress))
         say(rule["host"].get<std::string>(), permission(rule), rule["why"].get<std::string>());
     }},
    {"reaches", "/egress_limits",
     [](const Policy& p, const Say& say) {
       const json::Value limits = egress_limits_json(p.egress);  // outlives the loop: items() only refers to it
       for (const auto& [name, limit] : limits.items())
         say(name, limit == kNoIoLimit ? "no limit" : amount(name, limit.get<std::uint64_t>()),
             reason_of(p, "/egress_limits/" + name));
     }},
    {"reaches", "/upstream",
     [](const Policy& p, const Say& say) {
       const json::Value upstream = upstream_json(p.egress);
       for (const auto& [name, value] : upstream.items())
         say("upstream " + name, value.is_string() ? value.get<std::string>() : json::dump(value),
             reason_of(p, "/upstream/" + name));
     }},
    {"reaches", "/secrets",
     [](const Policy& p, const Say& say) {
       const json::Value secrets = secrets_json(p.egress);
       for (const json::Value& one : secrets) {
         const auto text = [&one](const char* member) { return one[member].get<std::string>(); };
         say("secret " + text("name"),
             "at " + text("host") + ":" + std::to_string(one["port"].get<unsigned>()) + text("path") + ", in " + text("field") +
                 "; $" + text("env") + " is its placeholder",
             text("why"));
       }
     }},
    {"is reached", "/published_ports",
     [](const Policy& p, const Say& say) {
       const std::string ports = joined(p.published_ports, [](std::uint16_t port) { return std::to_string(port); });
       say("without a credential", p.published_ports.empty() ? "at no port" : "at ports " + ports);
     }},
    {"reaches", "/api",
     [](const Policy& p, const Say& say) {
       say("the API", p.api.empty() ? "not at all" : "of its workspace: " + joined(p.api));
     }},
    {"uses", "/limits/",
     [](const Policy& p, const Say& say) {
       for (const Row& row : kRows)
         if (const auto* limit = std::get_if<std::uint64_t Limits::*>(&row.member))
           say(std::string(row.name()), amount(row.name(), p.limits.**limit), reason_of(p, std::string(row.pointer)));
     }},
    {"is recorded", "/audit/denials",
     [](const Policy& p, const Say& say) { say("refused calls", p.audit.denials ? "each" : "no"); }},
    {"is recorded", "/audit/paths",
     [](const Policy& p, const Say& say) { say("refused paths", p.audit.paths ? "by their names, as advice" : "no"); }},
    {"is recorded", "/audit/max_bytes",
     [](const Policy& p, const Say& say) { say("at most", amount("_bytes", p.audit.max_bytes)); }},
    {"is recorded", "/audit/keep_days",
     [](const Policy& p, const Say& say) { say("kept", std::to_string(p.audit.keep_days) + " days after its end"); }},
    {"is recorded", "/audit/on_full",
     [](const Policy& p, const Say& say) {
       say("with a full disk", p.audit.on_full == OnFull::stop ? "the session ends" : "the session goes on");
     }},
    {"starts", "/min_tier", [](const Policy& p, const Say& say) { say("weakest tier", std::string(tier_name(p.min_tier))); }},
    {"starts", "/require", [](const Policy& p, const Say& say) { say("requires", joined(p.require, mechanism_name)); }},
    {"starts", "/disable", [](const Policy& p, const Say& say) { say("switched off", joined(p.disable, mechanism_name)); }},
    {"starts", "/preset", [](const Policy& p, const Say& say) { say("preset", p.preset.empty() ? "none" : p.preset, ""); }},
};
// Said with other fields, or at the head of explain.
constexpr std::string_view kUntold[] = {"/description", "/why", "/weaken", "/protect_home", "/home_path", "/hostname"};

constexpr bool told(const Row& row) {
  return !in_files(row) || std::ranges::count(kUntold, row.pointer) == 1 ||
         std::ranges::any_of(kTellings, [&row](const Telling& one) {
           return one.pointer == row.pointer || (one.pointer.ends_with('/') && row.pointer.starts_with(one.pointer));
         });
}
static_assert(std::ranges::all_of(kRows, told), "explain says nothing of a row of rows.h");
static_assert(std::ranges::all_of(kRows, [](const Row& row) { return !in_files(row) || score_knows(row.pointer); }),
              "the posture score (common/tables/posture.h) says nothing of a row of rows.h");

}  // namespace

std::string reason_of(const Policy& policy, const std::string& field) {
  if (const auto it = policy.weaken.find(field); it != policy.weaken.end()) return it->second;
  const auto it = policy.why.find(field);
  return it == policy.why.end() ? "" : it->second;
}

std::vector<Fact> facts(const Policy& policy) {
  std::vector<Fact> out;
  for (const Telling& one : kTellings) one.tell(policy, Say(policy, one.pointer, one.topic, out));
  return out;
}

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
  static constexpr std::pair<const char*, const char*> kLines[] = {
      {"starts", "weakest tier"},  {"reaches", "network"},      {"writes", "/home/gem"},    {"writes", "/tmp"},
      {"writes", "umask"},         {"runs", "home and /tmp"},   {"reads", "/srv/datasets"}, {"runs", "denied by the policy"},
      {"uses", "processes"},       {"uses", "memory_bytes"},    {"uses", "cpu_percent"},    {"uses", "cpu_seconds"},
      {"uses", "file_size_bytes"}, {"uses", "session_seconds"}, {"uses", "execs"},          {"is recorded", "refused paths"},
      {"is recorded", "at most"},  {"is recorded", "kept"}};
  std::string out = "With each preset, a session of `bash`:\n\n| |";
  for (const auto& [name, domains] : presets) out += name.empty() ? " none |" : " `" + name + "` |";
  out += "\n|---|";
  for (std::size_t i = 0; i < presets.size(); ++i) out += "---|";
  out += "\n";
  for (const auto& [topic, name] : kLines) {
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
    out += "| `" + domain + "` | " +
           (p->network == Network::none ? "nothing" : std::string(word(words(p->network), static_cast<std::size_t>(p->network))));
    for (const Scope s : {p->home, p->tmp}) out += " | " + std::string(word(words(s), static_cast<std::size_t>(s)));
    out += std::string(" | ") + (p->exec_writable ? "yes" : "no") + " | " + std::to_string(p->limits.processes) + " | " +
           amount("_bytes", p->limits.memory_bytes) + " | " + amount("_seconds", p->limits.cpu_seconds) + " | " +
           amount("_seconds", p->limits.session_seconds) + " |";
    for (const auto& [preset, domains] : presets) out += " " + std::to_string(score(deductions(*domains.at(domain)))) + " |";
    out += "\n";
  }
  return out;
}

}  // namespace caisson::policy
