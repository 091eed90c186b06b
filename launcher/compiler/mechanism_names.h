// Names as mechanisms: only what reads policies needs that.
#pragma once

#include <optional>
#include <string_view>

#include "launcher/common/policy/mechanisms.h"

namespace caisson {

[[nodiscard]] std::optional<Mechanism> mechanism_from(std::string_view name);

}  // namespace caisson
