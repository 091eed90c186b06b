// What the classes of this folder share: the settings, this boot, what the kernel offers, the helpers and the launcher's own log.
// Operations fills it in at the start; then it stays as it is.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "launcher/common/attest/key.h"
#include "launcher/common/audit/log.h"
#include "launcher/common/base/loop.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/confine/cgroup.h"
#include "launcher/pid1/execute/session_builder.h"
#include "launcher/pid1/session/denials.h"
#include "launcher/pid1/session/egress.h"
#include "launcher/pid1/session/homes.h"
#include "launcher/pid1/session/settings.h"

namespace caisson::session {

struct Host {
  const Settings settings;
  Loop& loop;
  const std::string boot_id = sys::random_hex(16), boot_time = sys::rfc3339(sys::realtime_ns());
  std::optional<attest::Key> key = {};
  confine::Features features = {};
  confine::Builder builder = {};
  std::unique_ptr<confine::CgroupRoot> cgroups = {};  // nullptr: there is no cgroup to divide
  std::unique_ptr<audit::Log> log = {};
  std::unique_ptr<Denials> denials = {};  // nullptr: refused calls are not recorded
  std::unique_ptr<Egress> egress = {};
  std::optional<Homes> homes = {};

  [[nodiscard]] std::string boot_tag() const { return boot_id.substr(0, 8); }  // in names of homes that end with us
  // What the disk does not take goes to stderr, whatever the policies say: it is the index of what they wrote themselves.
  void record(audit::Event event, json::Value fields) const {
    if (const Status done = log->append(event, fields); !done) sys::say("caisson-launcher: audit log: " + done.error().text());
  }
};

}  // namespace caisson::session
