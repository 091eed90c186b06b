#include "launcher/compiler/system_plan.h"

#include <algorithm>
#include <functional>

#include <nlohmann/json.hpp>

#include "launcher/common/base/hash.h"
#include "launcher/common/policy/text_checks.h"

namespace caisson::confine {
namespace {

using policy::inside;

// What installing needs besides that which is granted; all of it anybody may read. Users and groups instead of the stand-ins.
constexpr const char* kInstalling[] = {
    "/etc/adduser.conf", "/etc/apt",    "/etc/debconf.conf",  "/etc/default",  "/etc/deluser.conf", "/etc/dpkg",
    "/etc/group",        "/etc/init.d", "/etc/login.defs",    "/etc/pam.conf", "/etc/pam.d",        "/etc/passwd",
    "/etc/security",     "/etc/skel",   "/var/cache/debconf", "/var/lib/dpkg", "/var/lib/pam",      "/var/lib/ucf"};

// What no policy's plan goes without; of the others a policy that has something of its own there keeps that, and no copy.
bool needed(const std::string& top) { return top == "/etc" || top == "/usr" || top == "/var"; }

// A mount inside the copy could be moved or covered by sessions that have the copy without it.
Result<std::vector<std::string>> tops_of(const Plan& plan, const std::vector<Bind>& mounts) {
  std::vector<std::string> tops(std::begin(kSystemTops), std::end(kSystemTops)), places{plan.policy->home_path};
  for (const Bind& b : mounts) places.push_back(b.target);
  for (const std::string& place : places) {
    const auto top = std::ranges::find_if(tops, [&place](const std::string& t) { return inside(place, t); });
    if (top == tops.end()) continue;
    if (needed(*top))
      return fail(Code::invalid_argument, "policy '" + plan.policy->domain +
                                              "' has system_packages, and something of its own at " + quote(place) +
                                              ": of /usr, /etc and /var it can only grant what is there, for reading");
    tops.erase(top);
  }
  return tops;
}

}  // namespace

Status plan_system(Plan& plan, const std::string& directory) {
  const auto usr = std::ranges::find(plan.binds, "/usr", &Bind::target);
  if (usr == plan.binds.end() || usr->source != "/usr" || !usr->read_only)
    return fail(Code::invalid_argument,
                "policy '" + plan.policy->domain + "' has system_packages, and no grant of /usr for reading");
  std::vector<std::string> copies(std::begin(kInstalling), std::end(kInstalling));
  nlohmann::json files = nlohmann::json::object(), links = files, without = nlohmann::json::array();
  std::vector<Bind> mounts = plan.binds;
  std::erase_if(mounts, [&copies](const Bind& b) {
    const bool copied =
        b.read_only && !b.device && b.source == b.target && (inside(b.target, "/etc") || inside(b.target, "/var"));
    if (copied && std::ranges::find(copies, b.target) == copies.end()) copies.push_back(b.target);
    return copied || b.target == "/usr";
  });
  TRY_ASSIGN(const std::vector<std::string> tops, tops_of(plan, mounts));
  const auto hand_on = [&tops](auto& list, const auto& path_of, const auto& take) {
    std::erase_if(list, [&](const auto& entry) {
      const bool there = std::ranges::any_of(tops, [&](const std::string& top) { return inside(path_of(entry), top); });
      if (there) take(entry);
      return there;
    });
  };
  const auto first = [](const auto& entry) -> const std::string& { return entry.first; };
  hand_on(plan.files, first, [&files](const auto& entry) { files[entry.first] = entry.second; });
  hand_on(plan.links, first, [&links](const auto& entry) { links[entry.first] = entry.second; });
  hand_on(plan.hide, std::identity(), [&without](const std::string& path) { without.push_back(path); });
  nlohmann::json what{{"tops", tops}, {"without", without}, {"copies", copies}, {"files", files}, {"links", links}};
  const std::string place = directory + "/" + sha256_hex(what.dump()).substr(0, 16);
  for (const std::string& top : tops)
    mounts.push_back({.target = top, .source = place + top, .read_only = false, .execute = true, .staged = true});
  what["directory"] = place;
  what["bytes"] = plan.policy->limits.packages_bytes;
  plan.binds = std::move(mounts);
  plan.system = {place, tops, std::move(copies), what.dump()};
  plan.residual.push_back(
      {"system-shared",
       "a session can replace the programs of its workspace's copy of the system, which its other sessions run"});
  return {};
}

}  // namespace caisson::confine
