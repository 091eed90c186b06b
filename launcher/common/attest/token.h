// Statements as signed tokens: JWS compact (RFC 7515) with EdDSA (RFC 8037), claims as an Entity Attestation Token
// (RFC 9711): eat_nonce is the caller's, eat_profile names the statement's format, which statement.schema.json describes.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "launcher/common/attest/key.h"

namespace caisson::attest {

inline constexpr std::string_view kProfile = "urn:caisson:attestation:1";

// 8 to 88 characters of [A-Za-z0-9._~+/=-] (RFC 9711 §4.1 allows 8 to 88 in JSON).
[[nodiscard]] Status check_nonce(std::string_view nonce);

// statement: becomes the claim "caisson". nonce: empty, or checked before.
[[nodiscard]] Result<std::string> make_token(const Key& key, nlohmann::json statement, std::string_view nonce,
                                             std::int64_t now_s);

}  // namespace caisson::attest
