// The agent's settings from its environment, which the launcher made; defaults: agent/services/common/settings.h. Checked as a
// whole before anything is opened.
#pragma once

#include <chrono>
#include <string>

#include "agent/auth/gate.h"
#include "agent/http/network.h"
#include "launcher/common/base/result.h"

namespace caisson {

struct Settings {
  std::string bind;                      // CAISSON_BIND
  unsigned short port = 0;               // CAISSON_PORT
  auth::GateSettings auth;               // SANDBOX_API_KEY: the launcher makes one when the user gave none
  std::string jwks_url;                  // CAISSON_JWKS_URL: whether there is one; the courier has its own
  std::string tls_certificate, tls_key;  // CAISSON_TLS_CERTIFICATE, CAISSON_TLS_KEY; empty: connections are plain
  bool traced = false;                   // OTEL_EXPORTER_OTLP_ENDPOINT or _TRACES_ENDPOINT is set
  std::string service_name;              // OTEL_SERVICE_NAME
  std::string allow_origin;              // CAISSON_ALLOW_ORIGIN: origins of web pages that may call, comma-separated
  std::string allow_host;                // CAISSON_ALLOW_HOST: names under which we are called without a key, comma-separated
  http::Networks trusted_proxies;        // CAISSON_TRUSTED_PROXIES
  bool access_log = true;                // CAISSON_ACCESS_LOG
  std::int64_t requests_per_second = 0;  // CAISSON_REQUESTS_PER_SECOND, of one client address; 0: no limit
  std::string preview_hosts;             // CAISSON_PREVIEW_HOSTS: domains of names that stand for ports, comma-separated
  unsigned preview_seconds = 0;          // CAISSON_PREVIEW_SECONDS
  std::string user;                      // USER
  std::string workspace;                 // WORKSPACE; empty: the directory in the launcher's hello
  std::string timezone;                  // TZ
  std::chrono::milliseconds drain{0};    // CAISSON_DRAIN_MS
  unsigned shutdown_seconds = 0;         // CAISSON_SHUTDOWN_SECONDS: for shutdown hooks; the launcher waits as long
  bool restarted = false;                // CAISSON_RESTARTED: the operator's hooks have run
};

// Takes the key out of the environment. Fails without a key unless CAISSON_AUTH=none: open by accident is not possible.
[[nodiscard]] Result<Settings> settings_from_env();

}  // namespace caisson
