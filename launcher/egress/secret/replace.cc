#include "launcher/egress/secret/replace.h"

#include <algorithm>

#include "launcher/egress/secret/base64.h"

namespace caisson::egress {
namespace {

constexpr std::string_view kAuthorization = "authorization";

bool path_begins(std::string_view target, std::string_view prefix) {
  const std::string_view path = target.substr(0, target.find('?'));
  if (!path.starts_with(prefix)) return false;
  return prefix.ends_with('/') || path.size() == prefix.size() || path[prefix.size()] == '/';
}

bool permits(const Binding& binding, const RequestHead& head, const HostPort& place) {
  const auto* name = std::get_if<Name>(&place.host);
  if (name == nullptr || name->text != binding.host || place.port != binding.port) return false;
  if (!binding.methods.empty() && std::ranges::find(binding.methods, head.method) == binding.methods.end()) return false;
  return binding.path == "/" || (is_plain_path(head.target) && path_begins(head.target, binding.path));
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
      : head_(head), place_(place), bounds_(bounds) {}

  Replaced all() {
    if (!clean(head_.target) || !clean(head_.method)) return std::move(out_);
    out_.text.assign(head_.method);
    ((out_.text += " ") += head_.target) += " HTTP/1.1\r\nHost: ";
    out_.text += host_text(place_.host);
    if (place_.port != 443) out_.text += ":" + std::to_string(place_.port);
    out_.text += "\r\n";
    for (const Field& field : head_.fields)
      if (!put(field)) return std::move(out_);
    // What is compressed could not be searched for the secret.
    out_.text += "Accept-Encoding: identity\r\n";
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
    const bool dropped = field.hop_by_hop || same_word(field.name, "host") || same_word(field.name, "accept-encoding");
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

bool is_plain_path(std::string_view target) {
  const std::string_view path = target.substr(0, target.find('?'));
  if (!path.starts_with('/') || path.find_first_of("\\;#") != std::string_view::npos) return false;
  for (std::size_t at = path.find('%'); at != std::string_view::npos; at = path.find('%', at + 1)) {
    const std::string_view digits = path.substr(at + 1, 2);
    // '.', '/', '\', '%', ';' and control characters, which some server decodes before it looks where the path leads.
    for (const std::string_view hidden : {"2e", "2f", "5c", "25", "3b"})
      if (same_word(digits, hidden)) return false;
    if (digits.size() < 2 || digits[0] == '0' || digits[0] == '1') return false;
  }
  std::string_view left = path.substr(1);
  while (!left.empty()) {
    const std::size_t slash = std::min(left.find('/'), left.size());
    const std::string_view segment = left.substr(0, slash);
    if (segment.empty() || segment == "." || segment == "..") return false;
    left.remove_prefix(std::min(slash + 1, left.size()));
  }
  return true;
}

Replaced replace(const RequestHead& head, const HostPort& place, std::span<const Bound> bounds) {
  return Replacer(head, place, bounds).all();
}

}  // namespace caisson::egress
