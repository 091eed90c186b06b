// Whose certificates are believed, and where: by the opener of servers, by sessions of servers and of the opener.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace caisson::egress {

// The system's authorities, where Debian's programs look: a directory that OpenSSL searches by a hash of the name, and in it all
// of them in one file. And those that an operator has put into a directory, as *.pem or *.crt.
inline constexpr const char *kSystemStore = "/etc/ssl/certs", *kSystemAuthorities = "/etc/ssl/certs/ca-certificates.crt";
inline constexpr const char* kOperatorsAuthorities = "/etc/caisson/ca";

inline std::vector<std::string> operators_authorities(const std::string& folder = kOperatorsAuthorities) {
  std::vector<std::string> out;
  std::error_code none;
  for (std::filesystem::directory_iterator at(folder, none), end; !none && at != end; at.increment(none))
    if (at->is_regular_file(none) && (at->path().extension() == ".pem" || at->path().extension() == ".crt"))
      out.push_back(at->path());
  std::ranges::sort(out);
  return out;
}

// Stores that sessions have in the place of the system's, below the launcher's own directory: with the operator's authorities as
// well, and, for domains that open TLS somewhere, with the opener's. caisson-options makes the directories, so that they are
// there when plans are made; caisson-gate fills them (gate/trust.h).
inline constexpr const char *kTrustFolder = "/trust", *kSystemsTrust = "/trust/system", *kOpenersTrust = "/trust/opened";
// Where the sessions of a domain with system_packages have it: nothing may be mounted in their copy of the system.
inline constexpr const char* kApart = "/caisson-authorities";
// In a store: all in one file, what a JVM reads (Debian's looks there by itself), and what Chromium believes besides its own, to
// which a link leads from its folder of policies.
inline constexpr const char *kBundle = "/ca-certificates.crt", *kJavaStore = "/java/cacerts", *kChromiumPolicy = "/chromium.json";
inline constexpr const char* kChromiumLink = "/etc/chromium/policies/managed/caisson-authorities.json";

// Variables that lead programs into the store which do not look where the system's is.
struct TrustName {
  const char *name, *below;
};
inline constexpr TrustName kTrustNames[] = {
    {"SSL_CERT_FILE", kBundle},       {"SSL_CERT_DIR", ""},        {"CURL_CA_BUNDLE", kBundle},   {"REQUESTS_CA_BUNDLE", kBundle},
    {"NODE_EXTRA_CA_CERTS", kBundle}, {"GIT_SSL_CAINFO", kBundle}, {"npm_config_cafile", kBundle}};
// Where nothing is mounted over the system's it leads a JVM, which says on stderr that it has read it.
inline constexpr const char *kJavaName = "JAVA_TOOL_OPTIONS", *kJavaOption = "-Djavax.net.ssl.trustStore=";

}  // namespace caisson::egress
