// What only a whole policy shows: paths that collide, and hidden paths that nothing grants.
#include <algorithm>
#include <utility>

#include "launcher/compiler/effective.h"
#include "launcher/compiler/egress.h"
#include "launcher/compiler/secrets.h"
#include "launcher/compiler/stages.h"
#include "launcher/egress/list/list.h"

namespace caisson::policy {
namespace {

// Where in the file a grant stands; "/grants" when the file inherited it.
std::string pointer_of(const Source& source, const std::string& path) {
  const json::Value& grants = list_of(source.doc, "grants");
  for (std::size_t i = 0; i < grants.size(); ++i)
    if (grants[i]["path"] == path) return "/grants/" + std::to_string(i) + "/path";
  return "/grants";
}

// The launcher builds these itself; a grant there would replace what it made, or show other processes.
std::string reserved(const Policy& policy, std::string_view path) {
  for (const std::string_view own : {"/proc", "/dev"})
    if (inside(path, own)) return "lies in " + std::string(own) + ", which the launcher mounts";
  if (path == "/tmp") return "is what the field 'tmp' decides";
  if (path == policy.home_path) return "is what the field 'home' decides";
  return {};
}

void check_made(const Policy& policy, const Source& source, const std::string& pointer, const std::string& path,
                Problems& problems) {
  const auto problem = [&](const std::string& what) { problems.add(source, pointer, quote(path) + " " + what); };
  if (const std::string why = reserved(policy, path); !why.empty()) return problem(why);
  if (inside(path, "/tmp") || inside(path, policy.home_path)) return problem("lies in a directory that sessions may write");
  for (const Grant& grant : policy.grants) {
    if (inside(path, grant.path)) return problem("lies inside the grant of " + quote(grant.path) + ", which it would change");
    if (inside(grant.path, path)) return problem("cannot be made: the grant of " + quote(grant.path) + " is below it");
  }
  const auto below = [&](const auto& made) {
    return std::ranges::any_of(made, [&](const auto& other) { return other.first != path && inside(other.first, path); });
  };
  if (below(policy.files) || below(policy.links)) problem("cannot be made: another file or link of this policy is below it");
}

// A directory of the home is where the home is: a file that gives another place as its `path` has another home_path in mind.
void place_in_home(Policy& policy) {
  for (Grant& grant : policy.grants) {
    if (!grant.source.starts_with(kOfHome)) continue;
    const std::string before =
        "/grants" + std::exchange(grant.path, policy.home_path + "/" + grant.source.substr(kOfHome.size()));
    for (auto* reasons : {&policy.weaken, &policy.why})
      if (auto reason = reasons->extract(before)) reason.key() = "/grants" + grant.path, reasons->insert(std::move(reason));
  }
  std::ranges::sort(policy.grants, {}, &Grant::path);
}

}  // namespace

void check_policy(Policy& policy, const Source& source, const Sets& sets, Problems& problems) {
  place_in_home(policy);
  for (const Grant& grant : policy.grants)
    for (const std::string& path : {grant.path, grant.source})
      if (const std::string why = reserved(policy, path); !why.empty()) {
        problems.add(source, pointer_of(source, grant.path), quote(path) + " " + why);
        break;
      }
  for (const Grant& grant : policy.grants) {
    const bool home = grant.source.starts_with(kOfHome);
    if (!home && !grant.source.starts_with(kOfWorkspace)) continue;
    const auto problem = [&](const std::string& what) {
      problems.add(source, pointer_of(source, grant.path), quote(grant.path) + what);
    };
    if (grant.required) problem(" is made where it is missing: it needs \"required\": false");
    if (!home && !inside(grant.path, "/tmp")) problem(" is of the workspace's memory, and lies outside /tmp");
    if (home && grant.access == Access::read) problem(" is of the home, and needs \"access\": \"read-write\"");
  }
  for (const std::string& path : policy.hide)
    if (policy.preset.empty() && ruling_grant(policy.grants, path) == nullptr)  // a preset speaks to every domain
      problems.add(source, "/hide", quote(path) + " is in no grant: there is nothing to hide");
  if (policy.protect.size() > kMaxProtect)
    problems.add(source, "/protect",
                 "has more than " + std::to_string(kMaxProtect) + " names, including those of the files that it extends");
  for (const auto& [path, content] : policy.files)
    check_made(policy, source, "/files/" + json::pointer_token(path), path, problems);
  for (const auto& [path, target] : policy.links) {
    check_made(policy, source, "/links/" + json::pointer_token(path), path, problems);
    if (target.empty()) problems.add(source, "/links/" + json::pointer_token(path), "target is empty");
    if (policy.files.contains(path))
      problems.add(source, "/links/" + json::pointer_token(path), quote(path) + " is also in 'files'");
  }
  if (const std::string& home = policy.home_path; inside(home, "/proc") || inside(home, "/dev") || inside(home, "/tmp"))
    problems.add(source, "/home_path", "cannot lie in /proc, /dev or /tmp: " + quote(home));
  for (const Mechanism m : policy.require)
    if (policy.disable.contains(m))
      problems.add(source, "/disable", quote(mechanism_name(m)) + " is also required: no session could start");
  if (policy.disable.contains(Mechanism::user_ns))
    problems.add(source, "/disable",
                 "\"user_ns\" cannot be switched off: every other namespace and the sessions' uid depend on it, in all domains. "
                 "Switch off single namespaces (\"net_ns\"), or start the container without user namespaces (tier T0)");
  const auto files = source.doc.find("files");
  if (goes_out(policy.network) && files != source.doc.end() && files->contains(kResolverFile))
    problems.add(source, "/files/" + json::pointer_token(kResolverFile),
                 "is made by the launcher where the policy has a way out");
  if (goes_out(policy.network))
    if (const auto list = egress::read_list(policy.egress); !list)
      problems.add(source, "/egress",
                   list.error().what + ": with those that deny in the files that it extends, it may have " +
                       std::to_string(egress::kMaxRules) + " rules and " + std::to_string(egress::kMaxListBytes) + " bytes");
  if (nests(policy) && std::ranges::find(policy.syscalls.allow, "netlink-route") != policy.syscalls.allow.end())
    problems.add(
        source, "/syscalls/allow",
        "has \"netlink-route\" beside \"nested-sandbox\": with the capabilities of a nested namespace it changes routes, "
        "queues and interfaces in the kernel");
  check_opened(policy, source, problems);
  resolve_sets(policy, source, sets, problems);
}

}  // namespace caisson::policy
