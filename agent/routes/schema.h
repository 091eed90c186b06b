// Schema<T>: the fields of a request or response struct, written once. Validation (422 in FastAPI's shape, all errors at
// once), encoding and the OpenAPI description all derive from it.
//
//   struct BashExec { std::string command; std::optional<double> timeout; bool async_mode = false; };
//   template <> struct Schema<BashExec> {
//     static constexpr std::string_view name = "BashExecRequest";
//     static constexpr auto fields = std::tuple{
//         field("command", &BashExec::command, "Bash command to execute"),
//         field("timeout", &BashExec::timeout, "Seconds to wait").min(0),
//         field("async_mode", &BashExec::async_mode, "Return at once").defaulted()};
//   };
//
// A field is required unless its type is std::optional or it is .defaulted() (the default is the member's initializer).
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "launcher/common/base/json.h"

namespace caisson::routes {

enum class Unknown { ignore, reject };

template <class T>
struct Schema;

template <class T>
concept HasSchema = requires { Schema<T>::fields; };

// Conditions on a value besides its type.
struct Bounds {
  std::optional<double> min, max, above;  // above: and not equal
  std::optional<std::size_t> min_length, max_length;
  std::span<const std::string_view> one_of;
  std::string_view format, pattern;  // "date-time": for the description only
  bool defaulted = false;
  bool unlisted = false;  // checked, but not in the description: a client made from the contract may send more
  bool object = false;    // of an arbitrary JSON value, for the description
};

template <class T, class M>
struct Field {
  std::string_view name;
  M T::* member;
  std::string_view doc;
  Bounds bounds{};

  constexpr Field min(double v) const {
    Field f = *this;
    f.bounds.min = v;
    return f;
  }
  constexpr Field above(double v) const {
    Field f = *this;
    f.bounds.above = v;
    return f;
  }
  constexpr Field max(double v) const {
    Field f = *this;
    f.bounds.max = v;
    return f;
  }
  constexpr Field min_length(std::size_t v) const {
    Field f = *this;
    f.bounds.min_length = v;
    return f;
  }
  constexpr Field max_length(std::size_t v) const {
    Field f = *this;
    f.bounds.max_length = v;
    return f;
  }
  constexpr Field one_of(std::span<const std::string_view> v) const {
    Field f = *this;
    f.bounds.one_of = v;
    return f;
  }
  constexpr Field format(std::string_view v) const {
    Field f = *this;
    f.bounds.format = v;
    return f;
  }
  constexpr Field pattern(std::string_view v) const {
    Field f = *this;
    f.bounds.pattern = v;
    return f;
  }
  constexpr Field unlisted() const {
    Field f = *this;
    f.bounds.unlisted = true;
    return f;
  }
  constexpr Field object() const {
    Field f = *this;
    f.bounds.object = true;
    return f;
  }
  constexpr Field defaulted() const {
    Field f = *this;
    f.bounds.defaulted = true;
    return f;
  }
};

template <class T, class M>
constexpr Field<T, M> field(std::string_view name, M T::* member, std::string_view doc) {
  return {name, member, doc};
}

// Collects validation errors; detail() is the value of "detail" in the 422.
class Issues {
 public:
  void add(const json::Value& loc, std::string_view type, std::string_view msg);
  // A number below the minimum.
  void add_below(const json::Value& loc, double least);
  [[nodiscard]] bool empty() const { return detail_.empty(); }
  [[nodiscard]] const json::Value& detail() const { return detail_; }

 private:
  json::Value detail_ = json::Value::array();
};

// The schemas of the OpenAPI document that descriptions refer to, by name.
using Components = std::map<std::string, json::Value>;

struct Decode {
  Unknown unknown = Unknown::ignore;
  Issues& issues;
};

namespace schema {

[[nodiscard]] json::Value below(const json::Value& loc, json::Value step);
[[nodiscard]] std::string title_of(std::string_view field_name);
void decode_string(const json::Value& in, const Bounds& bounds, const json::Value& loc, std::string& out, Issues& issues);
void decode_bool(const json::Value& in, const json::Value& loc, bool& out, Issues& issues);
void decode_int(const json::Value& in, const Bounds& bounds, std::int64_t lowest, std::int64_t highest, const json::Value& loc,
                std::int64_t& out, Issues& issues);
void decode_double(const json::Value& in, const Bounds& bounds, const json::Value& loc, double& out, Issues& issues);
[[nodiscard]] json::Value describe_scalar(std::string_view type, const Bounds& bounds);
// Adds `extra_forbidden` for every key that is not in `known`.
void check_unknown(const json::Value& object, std::span<const std::string_view> known, const json::Value& loc, Issues& issues);

}  // namespace schema

// Codec<M>: how one member type is read, written, described and named ("list_BashSessionInfo_").
template <class M>
struct Codec;

template <>
struct Codec<std::string> {
  static void decode(const json::Value& in, const Bounds& b, const json::Value& loc, std::string& out, const Decode& how) {
    schema::decode_string(in, b, loc, out, how.issues);
  }
  static json::Value encode(const std::string& v) { return v; }
  static json::Value describe(const Bounds& b, Components&) { return schema::describe_scalar("string", b); }
  static std::string type_name() { return "str"; }
};

template <>
struct Codec<bool> {
  static void decode(const json::Value& in, const Bounds&, const json::Value& loc, bool& out, const Decode& how) {
    schema::decode_bool(in, loc, out, how.issues);
  }
  static json::Value encode(bool v) { return v; }
  static json::Value describe(const Bounds& b, Components&) { return schema::describe_scalar("boolean", b); }
  static std::string type_name() { return "bool"; }
};

template <std::integral M>
struct Codec<M> {
  static void decode(const json::Value& in, const Bounds& b, const json::Value& loc, M& out, const Decode& how) {
    constexpr auto lowest = static_cast<std::int64_t>(std::numeric_limits<M>::min());
    constexpr auto highest =
        sizeof(M) == 8 ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(std::numeric_limits<M>::max());
    std::int64_t wide = 0;
    schema::decode_int(in, b, lowest, highest, loc, wide, how.issues);
    out = static_cast<M>(wide);
  }
  static json::Value encode(M v) { return v; }
  static json::Value describe(const Bounds& b, Components&) { return schema::describe_scalar("integer", b); }
  static std::string type_name() { return "int"; }
};

template <>
struct Codec<double> {
  static void decode(const json::Value& in, const Bounds& b, const json::Value& loc, double& out, const Decode& how) {
    schema::decode_double(in, b, loc, out, how.issues);
  }
  static json::Value encode(double v) { return v; }
  static json::Value describe(const Bounds& b, Components&) { return schema::describe_scalar("number", b); }
  static std::string type_name() { return "float"; }
};

// Any JSON value.
template <>
struct Codec<json::Value> {
  static void decode(const json::Value& in, const Bounds&, const json::Value&, json::Value& out, const Decode&) { out = in; }
  static json::Value encode(const json::Value& v) { return v; }
  static json::Value describe(const Bounds& b, Components&) {
    if (!b.object) return json::Value::object();
    return {{"type", "object"}, {"additionalProperties", true}};
  }
  static std::string type_name() { return "Any"; }
};

template <class M>
struct Codec<std::optional<M>> {
  static void decode(const json::Value& in, const Bounds& b, const json::Value& loc, std::optional<M>& out, const Decode& how) {
    if (in.is_null()) return;
    Codec<M>::decode(in, b, loc, out.emplace(), how);
  }
  static json::Value encode(const std::optional<M>& v) { return v ? Codec<M>::encode(*v) : json::Value(nullptr); }
  static json::Value describe(const Bounds& b, Components& c) {
    return {{"anyOf", json::Value::array({Codec<M>::describe(b, c), {{"type", "null"}}})}};
  }
  static std::string type_name() { return "Optional_" + Codec<M>::type_name() + "_"; }
  static constexpr bool all_optional() { return true; }
};

template <class M>
struct Codec<std::vector<M>> {
  static void decode(const json::Value& in, const Bounds& b, const json::Value& loc, std::vector<M>& out, const Decode& how) {
    if (!in.is_array()) return how.issues.add(loc, "list_type", "Input should be a valid list");
    out.clear();  // the default, or that of an earlier answer
    for (std::size_t i = 0; i < in.size(); ++i)
      Codec<M>::decode(in[i], element(b), schema::below(loc, i), out.emplace_back(), how);
  }
  static json::Value encode(const std::vector<M>& v) {
    json::Value out = json::Value::array();
    for (const M& item : v) out.push_back(Codec<M>::encode(item));
    return out;
  }
  static json::Value describe(const Bounds& b, Components& c) {
    return {{"type", "array"}, {"items", Codec<M>::describe(element(b), c)}};
  }
  // The conditions for each element.
  static Bounds element(const Bounds& of_list) {
    Bounds out;
    out.one_of = of_list.one_of;
    out.object = of_list.object;
    return out;
  }
  static std::string type_name() { return "list_" + Codec<M>::type_name() + "_"; }
};

template <class M>
struct Codec<std::map<std::string, M>> {
  using Map = std::map<std::string, M>;
  static void decode(const json::Value& in, const Bounds&, const json::Value& loc, Map& out, const Decode& how) {
    if (!in.is_object()) return how.issues.add(loc, "dict_type", "Input should be a valid dictionary");
    for (const auto& [key, value] : in.items()) Codec<M>::decode(value, {}, schema::below(loc, key), out[key], how);
  }
  static json::Value encode(const Map& v) {
    json::Value out = json::Value::object();
    for (const auto& [key, value] : v) out[key] = Codec<M>::encode(value);
    return out;
  }
  static json::Value describe(const Bounds&, Components& c) {
    return {{"type", "object"}, {"additionalProperties", Codec<M>::describe({}, c)}};
  }
  static std::string type_name() { return "dict_str_" + Codec<M>::type_name() + "_"; }
};

template <class M>
inline constexpr bool kIsOptional = false;
template <class M>
inline constexpr bool kIsOptional<std::optional<M>> = true;

template <HasSchema T>
struct Codec<T> {
  static void decode(const json::Value& in, const Bounds&, const json::Value& loc, T& out, const Decode& how) {
    if (!in.is_object())
      return how.issues.add(loc, "model_attributes_type", "Input should be a valid dictionary or object to extract fields from");
    std::vector<std::string_view> known;
    std::apply([&](const auto&... f) { (decode_field(in, f, loc, out, how, known), ...); }, Schema<T>::fields);
    if (how.unknown == Unknown::reject) schema::check_unknown(in, known, loc, how.issues);
  }
  static json::Value encode(const T& v) {
    json::Value out = json::Value::object();
    std::apply([&](const auto&... f) { (encode_field(v, f, out), ...); }, Schema<T>::fields);
    return out;
  }
  // A $ref; the schema itself goes into `c` once.
  static json::Value describe(const Bounds&, Components& c) {
    const std::string name(Schema<T>::name);
    if (!c.contains(name)) {
      c[name] = nullptr;  // placed first, so that a recursive type terminates
      json::Value properties = json::Value::object(), required = json::Value::array();
      std::apply([&](const auto&... f) { (describe_field(f, c, properties, required), ...); }, Schema<T>::fields);
      json::Value object = {{"type", "object"}, {"title", name}, {"properties", std::move(properties)}};
      if (!required.empty()) object["required"] = std::move(required);
      c[name] = std::move(object);
    }
    return {{"$ref", "#/components/schemas/" + name}};
  }
  static std::string type_name() { return std::string(Schema<T>::name); }

  template <class F>
  static constexpr bool is_required(const F& f) {
    return !kIsOptional<std::remove_cvref_t<decltype(std::declval<T&>().*f.member)>> && !f.bounds.defaulted;
  }
  // True when an empty object is valid, and so an empty body.
  static constexpr bool all_optional() {
    return std::apply([](const auto&... f) { return (!is_required(f) && ...); }, Schema<T>::fields);
  }

 private:
  template <class M>
  static void decode_field(const json::Value& in, const Field<T, M>& f, const json::Value& loc, T& out, const Decode& how,
                           std::vector<std::string_view>& known) {
    known.push_back(f.name);
    const auto it = in.find(f.name);
    if (it != in.end() && !it->is_null())  // null means absent: SDKs send it for arguments that were not given
      Codec<M>::decode(*it, f.bounds, schema::below(loc, f.name), out.*f.member, how);
    else if (is_required(f)) how.issues.add(schema::below(loc, f.name), "missing", "Field required");
  }
  template <class M>
  static void encode_field(const T& v, const Field<T, M>& f, json::Value& out) {
    out[std::string(f.name)] = Codec<M>::encode(v.*f.member);
  }
  template <class M>
  static void describe_field(const Field<T, M>& f, Components& c, json::Value& properties, json::Value& required) {
    json::Value d = Codec<M>::describe(f.bounds, c);
    if (!d.contains("$ref")) d["title"] = schema::title_of(f.name);
    if (!f.doc.empty()) d["description"] = f.doc;
    if (f.bounds.defaulted) d["default"] = Codec<M>::encode(T{}.*f.member);
    properties[std::string(f.name)] = std::move(d);
    if (is_required(f)) required.push_back(f.name);
  }
};

// What can be the whole of a body.
template <class T>
concept IsBody = requires { Codec<T>::all_optional(); };

// Reads a body. Empty text counts as {} when every field is optional (SDKs send no body at all then).
template <IsBody T>
[[nodiscard]] T decode_body(std::string_view text, Unknown unknown, std::size_t max_bytes, Issues& issues);

template <class T>
[[nodiscard]] json::Value encode(const T& value) {
  return Codec<T>::encode(value);
}

namespace schema {
// The parsed body, or nullopt with the issue added.
[[nodiscard]] std::optional<json::Value> parse_body(std::string_view text, bool may_be_empty, std::size_t max_bytes,
                                                    Issues& issues);
}  // namespace schema

template <IsBody T>
T decode_body(std::string_view text, Unknown unknown, std::size_t max_bytes, Issues& issues) {
  T out{};
  const auto value = schema::parse_body(text, Codec<T>::all_optional(), max_bytes, issues);
  if (value) Codec<T>::decode(*value, {}, json::Value::array({"body"}), out, Decode{unknown, issues});
  return out;
}

}  // namespace caisson::routes
