#include "launcher/confine/system_plan.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "launcher/policy/words.h"

namespace caisson::confine {
namespace {

using policy::inside;

// What installing needs besides that which is granted; all of it anybody may read. Users and groups instead of the stand-ins.
constexpr const char* kInstalling[] = {
    "/etc/adduser.conf", "/etc/apt",    "/etc/debconf.conf",  "/etc/default",  "/etc/deluser.conf", "/etc/dpkg",
    "/etc/group",        "/etc/init.d", "/etc/login.defs",    "/etc/pam.conf", "/etc/pam.d",        "/etc/passwd",
    "/etc/security",     "/etc/skel",   "/var/cache/debconf", "/var/lib/dpkg", "/var/lib/pam",      "/var/lib/ucf"};

// Moves what lies in the copy from the list to `out`.
void hand_on(std::vector<std::pair<std::string, std::string>>& list, nlohmann::json& out) {
  std::erase_if(list, [&out](const auto& entry) {
    const bool there = std::ranges::any_of(kSystemTops, [&entry](const char* top) { return inside(entry.first, top); });
    if (there) out[entry.first] = entry.second;
    return there;
  });
}

}  // namespace

Status plan_system(Plan& plan, const std::string& directory) {
  const auto usr = std::ranges::find(plan.binds, "/usr", &Bind::target);
  if (usr == plan.binds.end() || usr->source != "/usr")
    return fail(Code::invalid_argument, "policy '" + plan.policy->domain + "' has system_packages, and no grant of /usr");
  nlohmann::json copies(kInstalling), files = nlohmann::json::object(), links = files;
  std::erase_if(plan.binds, [&copies](const Bind& b) {
    const bool copied =
        b.read_only && !b.device && b.source == b.target && (inside(b.target, "/etc") || inside(b.target, "/var"));
    if (copied) copies.push_back(b.target);
    return copied || b.target == "/usr";
  });
  hand_on(plan.files, files);
  hand_on(plan.links, links);
  for (const char* top : kSystemTops) {
    Bind bind;
    bind.target = top;
    bind.source = directory + top;
    bind.read_only = false;
    bind.execute = bind.staged = true;
    plan.binds.push_back(std::move(bind));
  }
  plan.system =
      nlohmann::json{{"directory", directory},       {"tops", kSystemTops},         {"bytes", plan.policy->limits.packages_bytes},
                     {"without", plan.policy->hide}, {"copies", std::move(copies)}, {"files", std::move(files)},
                     {"links", std::move(links)}}
          .dump();
  plan.residual.push_back(
      {"system-shared",
       "a session can replace the programs of its workspace's copy of the system, which its other sessions run"});
  return {};
}

}  // namespace caisson::confine
