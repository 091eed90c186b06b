#include "launcher/egress/secret/replace.h"

#include <algorithm>

#include "launcher/egress/list/path.h"
#include "launcher/egress/parse/base64.h"

namespace caisson::egress {
namespace {

constexpr std::string_view kAuthorization = "authorization";
// What the head that goes out has anew, or not at all, where a secret is bound to the host: an answer that is compressed, in
// parts or in other characters could not be searched for it.
constexpr std::string_view kDropped[] = {"accept-encoding", "accept-charset", "range", "if-range", "request-range"};

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::any_of(names, [name](std::string_view one) { return same_word(name, one); });
}

bool permits(const Binding& binding, const RequestHead& head, const HostPort& place) {
  const auto* name = std::get_if<Name>(&place.host);
  if (name == nullptr || name->text != binding.host || place.port != binding.port) return false;
  const bool any = binding.methods.empty() && binding.path == "/";
  if (!any && has_override(head)) return false;
  if (!binding.methods.empty() && std::ranges::find(binding.methods, head.method) == binding.methods.end()) return false;
  return binding.path == "/" || is_at_path(head.target, binding.path);
}

// Scheme and the rest of an Authorization field.
std::pair<std::string_view, std::string_view> credentials(std::string_view value) {
  const std::size_t space = value.find(' ');
  if (space == std::string_view::npos) return {value, {}};
  const std::size_t rest = value.find_first_not_of(' ', space);
  return {value.substr(0, space), rest == std::string_view::npos ? std::string_view() : value.substr(rest)};
}

class Replacer {
 public:
  Replacer(const RequestHead& head, const HostPort& place, std::span<const Bound> bounds)
      : head_(head), place_(place), bounds_(bounds) {
    out_.searched = std::ranges::any_of(bounds, [&place](const Bound& one) {
      const auto* name = std::get_if<Name>(&place.host);
      return name != nullptr && name->text == one.binding.host;
    });
  }

  Replaced all() {
    if (!clean(head_.target) || !clean(head_.method)) return std::move(out_);
    out_.text.assign(head_.method);
    ((out_.text += " ") += head_.target) += " HTTP/1.1\r\nHost: ";
    out_.text += host_text(place_.host);
    if (place_.port != 443) out_.text += ":" + std::to_string(place_.port);
    out_.text += "\r\n";
    for (const Field& field : head_.fields)
      if (!put(field)) return std::move(out_);
    if (out_.searched) out_.text += "Accept-Encoding: identity\r\n";
    if (head_.body.kind == BodyKind::chunked) out_.text += "Transfer-Encoding: chunked\r\n";
    if (head_.websocket) out_.text += "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    out_.text += "\r\n";
    return std::move(out_);
  }

 private:
  bool refuse(Refusal refusal, std::string_view detail, const Bound* whose) {
    out_.refusal = refusal, out_.detail = detail;
    out_.used.assign(1, whose);
    out_.text.clear();
    return false;
  }
  bool elsewhere(const Bound& whose, std::string_view detail) { return refuse(Refusal::placeholder_elsewhere, detail, &whose); }

  // Whether no placeholder stands in it.
  bool clean(std::string_view text) {
    for (const Bound& one : bounds_)
      if (text.contains(one.binding.placeholder)) return elsewhere(one, "a placeholder stands where no secret may");
    return true;
  }

  const Bound* whose(std::string_view text) const {
    const auto one =
        std::ranges::find(bounds_, text, [](const Bound& bound) { return std::string_view(bound.binding.placeholder); });
    return one == bounds_.end() ? nullptr : &*one;
  }

  // The secret in the place of a placeholder that is all of `text`; nullptr: refused.
  const std::string* secret_for(const Bound& one, std::string_view field) {
    if (!same_word(field, one.binding.field))
      return elsewhere(one, "a placeholder stands in another field than its own"), nullptr;
    if (!permits(one.binding, head_, place_))
      return elsewhere(one, "a placeholder goes to another host, method or path than its own"), nullptr;
    if (one.secret.empty()) return refuse(Refusal::placeholder_unbound, "the secret has not come", &one), nullptr;
    if (std::ranges::find(out_.used, &one) == out_.used.end()) out_.used.push_back(&one);
    return &one.secret;
  }

  bool put(const Field& field) {
    if (!clean(field.name)) return false;
    const bool dropped = field.hop_by_hop || same_word(field.name, "host") || (out_.searched && is_one_of(field.name, kDropped));
    std::string value(field.value);
    if (const Bound* one = whose(value)) {
      const std::string* secret = dropped ? nullptr : secret_for(*one, field.name);
      if (secret == nullptr)
        return out_.refusal != Refusal::none ? false : elsewhere(*one, "a placeholder stands where no secret may");
      value = *secret;
    } else if (same_word(field.name, kAuthorization)) {
      if (!authorize(value)) return false;
    } else if (!clean(value)) {
      return false;
    }
    if (!dropped) ((out_.text += field.name) += ": ").append(value) += "\r\n";
    return true;
  }

  bool authorize(std::string& value) {
    const auto [scheme, rest] = credentials(value);
    if (same_word(scheme, "basic")) return basic(value, rest);
    const Bound* one = whose(rest);
    if (one == nullptr || (!same_word(scheme, "bearer") && !same_word(scheme, "token"))) return clean(value);
    const std::string* secret = secret_for(*one, kAuthorization);
    if (secret == nullptr) return false;
    value = std::string(scheme) + " " + *secret;
    return true;
  }

  bool basic(std::string& value, std::string_view encoded) {
    const auto text = from_base64(encoded);
    if (!text) return clean(value);
    const std::size_t colon = text->find(':');
    const std::string_view all = *text;
    std::string_view parts[] = {all.substr(0, colon), colon == std::string::npos ? std::string_view() : all.substr(colon + 1)};
    bool replaced = false;
    for (std::string_view& part : parts) {
      if (const Bound* one = whose(part)) {
        const std::string* secret = secret_for(*one, kAuthorization);
        if (secret == nullptr) return false;
        part = *secret, replaced = true;
      } else if (!clean(part)) {
        return false;
      }
    }
    if (!replaced) return clean(value);
    value = "Basic " + base64(std::string(parts[0]) + ":" + std::string(parts[1]));
    return true;
  }

  const RequestHead& head_;
  const HostPort& place_;
  const std::span<const Bound> bounds_;
  Replaced out_;
};

}  // namespace

Replaced replace(const RequestHead& head, const HostPort& place, std::span<const Bound> bounds) {
  return Replacer(head, place, bounds).all();
}

}  // namespace caisson::egress
