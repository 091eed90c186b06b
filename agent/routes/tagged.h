// Tagged<Ts...>: a body that is one of several objects, told apart by the value of one member, as Pydantic's discriminated unions
// are. The first field of each Schema is that member, and its default the value that names the alternative.
#pragma once

#include <string>
#include <tuple>
#include <variant>

#include "agent/routes/schema.h"

namespace caisson::routes {

template <HasSchema... Ts>
struct Tagged {
  std::variant<Ts...> value;
};

template <HasSchema... Ts>
struct Codec<Tagged<Ts...>> {
  using First = std::tuple_element_t<0, std::tuple<Ts...>>;
  static constexpr std::string_view member() { return std::get<0>(Schema<First>::fields).name; }
  template <class T>
  static std::string tag() {
    return T{}.*std::get<0>(Schema<T>::fields).member;
  }

  static void decode(const json::Value& in, const Bounds&, const json::Value& loc, Tagged<Ts...>& out, const Decode& how) {
    if (!in.is_object())
      return how.issues.add(loc, "model_attributes_type", "Input should be a valid dictionary or object to extract fields from");
    const std::string name = quote(member());
    const auto given = in.find(member());
    if (given == in.end()) return how.issues.add(loc, "union_tag_not_found", "Unable to extract tag using discriminator " + name);
    const std::string text = given->is_string() ? given->template get<std::string>() : json::dump(*given);
    if (given->is_string() && (decode_as<Ts>(text, in, loc, out, how) || ...)) return;
    std::string known;
    ((known += (known.empty() ? "" : ", ") + quote(tag<Ts>())), ...);
    how.issues.add(
        loc, "union_tag_invalid",
        "Input tag " + quote(text, 64) + " found using " + name + " does not match any of the expected tags: " + known);
  }
  static json::Value encode(const Tagged<Ts...>& v) {
    return std::visit([]<class T>(const T& one) { return Codec<T>::encode(one); }, v.value);
  }
  static json::Value describe(const Bounds&, Components& c) {
    json::Value options = json::Value::array(), mapping = json::Value::object();
    const auto add = [&]<class T>(std::type_identity<T>) {
      json::Value option = Codec<T>::describe({}, c);
      mapping[tag<T>()] = option["$ref"];
      options.push_back(std::move(option));
    };
    (add(std::type_identity<Ts>()), ...);
    return {{"oneOf", std::move(options)}, {"discriminator", {{"propertyName", member()}, {"mapping", std::move(mapping)}}}};
  }
  static constexpr bool all_optional() { return false; }

 private:
  template <class T>
  static bool decode_as(const std::string& text, const json::Value& in, const json::Value& loc, Tagged<Ts...>& out,
                        const Decode& how) {
    if (text != tag<T>()) return false;
    Codec<T>::decode(in, {}, schema::below(loc, text), out.value.template emplace<T>(), how);
    return true;
  }
};

}  // namespace caisson::routes
