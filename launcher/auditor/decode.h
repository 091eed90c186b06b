// The arguments of a refused call in words, from its registers alone: what lies behind a pointer may be anything by the time that
// somebody reads it.
#pragma once

#include <cstdint>
#include <string>

namespace caisson::auditor {

// A JSON object, "{}" for a call of which nothing is known but its numbers:
// {"family":"AF_PACKET","type":"SOCK_RAW","protocol":"768"}.
[[nodiscard]] std::string decode(int nr, const unsigned long long (&args)[6]);

}  // namespace caisson::auditor
