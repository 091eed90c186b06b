// The field `secrets` of policy files: what sessions may use at a host without having it. Of each a session gets a placeholder,
// and of the authority that certifies these hosts to it the certificate (launcher/egress/README.md).
#pragma once

#include "launcher/common/base/json.h"
#include "launcher/common/policy/in_force.h"
#include "launcher/compiler/fields.h"

namespace caisson::policy {

// Of one file, valid by the table of fields: bindings that are none, and names that stand twice.
void check_secrets(const Source& source, Problems& problems);
// Binds them in the policy's list, and gives its sessions placeholders. With a secret, an egress rule that inspects, or where the
// operator has `authorities` of their own, they have a store of certificates below `run`, the launcher's directory, in the place
// of the system's (common/egress/trust.h). Nothing where the policy has no way out.
void bind_secrets(Policy& policy, const json::Value& secrets, const std::string& run, bool authorities);
// What only the whole shows: a host that the policy does not permit, a variable that it sets otherwise, hosts whose TLS is opened
// and whose certificates sessions could not believe.
void check_opened(const Policy& policy, const Source& source, Problems& problems);
// A file with a secret that sessions of some domain could read, as text; empty: there is none.
[[nodiscard]] std::string shown_secret(const Policy& policy, const PolicySet& all);
// What is wrong with the domain `credentials`, in whose sessions commands that print secrets run, or that it is missing; empty:
// nothing.
[[nodiscard]] std::string fault_of_credentials(const PolicySet& all);
// The store of certificates that its sessions have; empty: the system's.
[[nodiscard]] std::string trust_of(const Policy& policy);
// Where nothing can be mounted, sessions read that store where it is.
void trust_in_place(Policy& policy);
// The bindings back, as canonical JSON and for explain; an empty list where there are none.
[[nodiscard]] json::Value secrets_json(std::string_view list);

}  // namespace caisson::policy
