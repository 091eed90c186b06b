// Keys of P-256, which every client of TLS knows.
#pragma once

#include <openssl/evp.h>

#include <string_view>

#include "launcher/egress/opener/tls.h"

namespace caisson::egress {

using AuthorityKey = OpensslPtr<EVP_PKEY, EVP_PKEY_free>;

// nullptr: OpenSSL failed.
[[nodiscard]] AuthorityKey new_key();
// Always the same of one seed, which has kSeedBytes (common/egress/protocol.h): the key is as hard to guess as that.
[[nodiscard]] AuthorityKey key_of(std::string_view seed);

}  // namespace caisson::egress
