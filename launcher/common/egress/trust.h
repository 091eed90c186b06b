// Whose certificates are believed, and where: by the opener of servers, by sessions of the opener.
#pragma once

namespace caisson::egress {

// The system's authorities, where Debian's programs look; and those that an operator has put into a directory, as *.pem or *.crt.
inline constexpr const char* kSystemAuthorities = "/etc/ssl/certs/ca-certificates.crt";
inline constexpr const char* kOperatorsAuthorities = "/etc/caisson/ca";

// Below the launcher's own directory: all of them, and the opener's, for sessions of domains that bind a secret. caisson-options
// makes the file, so that it is there when plans are made; caisson-gate writes it.
inline constexpr const char *kTrustFolder = "/trust", *kTrustFile = "/trust/ca-certificates.crt";
// Variables that lead programs to it which do not look where the system's is.
inline constexpr const char* kTrustNames[] = {"SSL_CERT_FILE",       "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
                                              "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "npm_config_cafile"};

}  // namespace caisson::egress
