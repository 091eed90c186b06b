// OneOf<Ts...>: a value that is of one of several types; only for the description.
#pragma once

#include <string>

#include "agent/routes/schema.h"

namespace caisson::routes {

template <class... Ts>
struct OneOf {};

template <class... Ts>
struct Codec<OneOf<Ts...>> {
  static json::Value describe(const Bounds&, Components& c) {
    return {{"anyOf", json::Value::array({Codec<Ts>::describe({}, c)...})}};
  }
  static json::Value encode(const OneOf<Ts...>&) { return nullptr; }
  // "Union_A__B_"
  static std::string type_name() {
    std::string out = "Union";
    ((out += "_" + Codec<Ts>::type_name() + "_"), ...);
    return out;
  }
};

}  // namespace caisson::routes
