#include "launcher/compiler/mechanism_names.h"

namespace caisson {

std::optional<Mechanism> mechanism_from(std::string_view text) {
  for (int i = 0; i < kMechanismCount; ++i)
    if (mechanism_name(static_cast<Mechanism>(i)) == text) return static_cast<Mechanism>(i);
  return std::nullopt;
}

}  // namespace caisson
