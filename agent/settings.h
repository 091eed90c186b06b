// The agent's settings from its environment, which the launcher made; defaults: agent/services/common/variables.h. Checked as a
// whole before anything is opened.
#pragma once

#include <string>

#include "launcher/base/result.h"

namespace caisson {

struct Settings {
  std::string bind;               // CAISSON_BIND
  unsigned short port = 0;        // CAISSON_PORT
  std::string api_key;            // SANDBOX_API_KEY; the launcher makes one when the user gave none
  bool auth_off = false;          // CAISSON_AUTH=none
  std::string allow_origin;       // CAISSON_ALLOW_ORIGIN: origins of web pages that may call, comma-separated
  std::string allow_host;         // CAISSON_ALLOW_HOST: names under which we are called without a key, comma-separated
  std::string user;               // USER
  std::string workspace;          // WORKSPACE; empty: what the launcher's hello says
  std::string timezone;           // TZ
  unsigned shutdown_seconds = 0;  // CAISSON_SHUTDOWN_SECONDS: for shutdown hooks; the launcher waits as long
  bool restarted = false;         // CAISSON_RESTARTED: the operator's hooks have run
};

// Takes the key out of the environment. Fails without a key unless CAISSON_AUTH=none: open by accident is not possible.
[[nodiscard]] Result<Settings> settings_from_env();

}  // namespace caisson
