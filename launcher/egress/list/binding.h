// A secret that sessions use and never have: what they hold is a placeholder, and where one stands in a request that the binding
// permits, the opener puts the secret. The list has all of a binding but the secret.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/result.h"
#include "launcher/egress/list/host.h"

namespace caisson::egress {

inline constexpr std::size_t kMaxBindings = 16, kMaxMethods = 8, kMaxBindingText = 255;
// A placeholder that is shorter stands in requests by chance; a secret that is shorter is found in answers by chance.
inline constexpr std::size_t kLeastSecret = 12, kMaxSecret = 1024;
inline constexpr std::size_t kMaxCommand = 1000;  // bytes of a command that prints a secret
inline constexpr std::uint32_t kLeastRefresh = 10, kMostRefresh = 86'400, kUsualRefresh = 3600;  // seconds

struct Binding {
  std::string name;         // for records
  std::string placeholder;  // printable ASCII
  std::string host;         // a canonical name
  std::uint16_t port = 443;
  std::vector<std::string> methods;  // none: every method
  std::string path = "/";            // what the request's path begins with; whole segments
  std::string field;  // the field it stands in, in lower case, and is all of. In "authorization" it may be a token after Bearer
                      // or token, or, of Basic, user or password
  // Where caisson-gate has the secret from: a file, or what a command of /bin/sh prints. Neither: the operator hands it over.
  std::string file, command;
  std::uint32_t refresh_seconds = kUsualRefresh;  // after which the command of a secret that is used runs again
  std::string env;                                // the variable in which sessions find the placeholder; empty: in none
  std::string why;                                // the reason, for whoever reads the policy
  bool operator==(const Binding&) const = default;
};

// Nothing, or what is wrong with it: a binding that is no binding is refused by whoever compiles it and by whoever reads it.
[[nodiscard]] std::string_view fault_of(const Binding& binding);
// What a secret may be: 12 to 1,024 bytes of printable ASCII. Anything else could end the field that it stands in.
[[nodiscard]] bool is_secret(std::string_view text);
// One line of text, of at most kMaxCommand bytes.
[[nodiscard]] bool is_command(std::string_view text);

}  // namespace caisson::egress
