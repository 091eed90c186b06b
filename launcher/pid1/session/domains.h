// The policies in force, and what each is made ready as in each workspace: plan, template and canary. A domain whose demands
// this machine does not meet stays refused until a reload. A reload is taken whole, or everything stays as it was. What a
// grant's path names is looked at again, and a domain whose sources have changed is made anew.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "launcher/common/policy/in_force.h"
#include "launcher/pid1/session/host.h"
#include "launcher/pid1/session/uids.h"
#include "launcher/pid1/session/workspace.h"

namespace caisson::session {

// By domain; and of all together, as they are read, with the digests of their preset.
[[nodiscard]] json::Value digests(const policy::LoadResult& loaded);
[[nodiscard]] std::string digest_of_all(const policy::LoadResult& loaded);

class Domains {
 public:
  using Problems = std::vector<policy::Problem>;
  // A domain of that workspace was made anew: sessions built ahead from the old one are useless.
  using Replaced = std::function<void(const Workspace& workspace, const std::string& domain)>;
  // main: the default workspace, which outlives this.
  Domains(const Host& host, Uids& uids, Workspace& main, Replaced replaced)
      : host_(host), uids_(uids), default_(&main), replaced_(std::move(replaced)) {}

  // Takes the set as a whole, or returns its problems. Domains in use are made ready; the others are only planned, to know that
  // they could be.
  [[nodiscard]] Task<Problems> put_in_force(const policy::LoadResult& loaded);
  // Reads the policy directory again, and says in the launcher's log what came of it. by: "SIGHUP".
  [[nodiscard]] Task<Problems> reload(std::string by);
  [[nodiscard]] const std::map<std::string, Domain>& in_force() const { return domains_; }  // as the default workspace has them
  [[nodiscard]] std::string lists() const;                                                  // of those that go out
  [[nodiscard]] const std::map<std::string, std::string>& refused() const { return refused_domains_; }  // domain -> why
  [[nodiscard]] const std::string& digest() const { return digest_; }
  [[nodiscard]] Workspace& main() const { return *default_; }

  // Made ready; to be used before the next co_await. Errors: unavailable (refused), not_found.
  [[nodiscard]] Task<Result<Domain*>> domain_in(Workspace& workspace, const std::string& name);
  // A path below its mounts may have been moved: the next session gets a new tree.
  void distrust(Workspace& workspace, const std::string& name);
  // A session whose request narrows its domain. own: namespaces that serve it alone.
  struct Narrowed {
    Narrowings& narrowings;
    std::string asked;
    const confine::Workspace* own;
  };
  // domain: its policy, and its plan, if it has been made. by: its canary is the domain's, too. In the workspace's turn.
  [[nodiscard]] Task<Result<Domain>> prepare_domain(const Workspace& workspace, Domain domain, const Narrowed* by = nullptr);

 private:
  struct Taken {
    std::map<std::string, Domain> domains;
    std::map<std::string, std::string> refused;  // domain -> why its demands cannot be met here
    Problems problems;
  };
  [[nodiscard]] Task<Taken> take(const policy::LoadResult& loaded);
  [[nodiscard]] std::map<std::string, Domain>& table(Workspace& of) { return &of == default_ ? domains_ : of.domains; }
  [[nodiscard]] bool in_use(const std::string& domain) const;
  // Opens the sources of the domain's policy; what it goes without is added to `closed`.
  [[nodiscard]] Result<confine::PlanRequest> plan_request(const Workspace& workspace, Domain& domain, bool alone) const;
  [[nodiscard]] Task<Status> plan_domain(const Workspace& workspace, Domain& domain, const Narrowed* by);
  [[nodiscard]] std::string ungranted_file(const confine::Plan& plan) const;
  [[nodiscard]] Task<Result<confine::ProbeResults>> ask_canary(const Workspace& workspace, const confine::Template& prepared);
  [[nodiscard]] static Result<bool> fresh(Domain& domain);

  const Host& host_;
  const Settings& settings_ = host_.settings;
  const confine::Features& features_ = host_.features;
  const confine::Builder& builder_ = host_.builder;
  Loop& loop_ = host_.loop;
  Uids& uids_;
  Workspace* const default_;
  const Replaced replaced_;
  std::map<std::string, Domain> domains_;
  std::map<std::string, std::string> refused_domains_;
  std::string digest_;
  bool reloading_ = false;
  std::uint64_t reloads_ = 0;
};

}  // namespace caisson::session
