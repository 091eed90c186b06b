#include "launcher/egress/secret/replace.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "launcher/egress/parse/base64.h"

namespace caisson::egress {
namespace {

constexpr std::string_view kAuthorization = "authorization";
// What the head that goes out has anew, or not at all: an answer that is compressed, in parts or in other characters could not be
// searched for the secret.
constexpr std::string_view kDropped[] = {"host", "accept-encoding", "accept-charset", "range", "if-range", "request-range"};
// By which some servers take a request for one with another method or path.
constexpr std::string_view kOverrides[] = {"x-http-method", "x-http-method-override", "x-method-override", "x-original-url",
                                           "x-rewrite-url"};

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::any_of(names, [name](std::string_view one) { return same_word(name, one); });
}

bool path_begins(std::string_view target, std::string_view prefix) {
  const std::string_view path = target.substr(0, target.find('?'));
  if (!path.starts_with(prefix)) return false;
  return prefix.ends_with('/') || path.size() == prefix.size() || path[prefix.size()] == '/';
}

bool permits(const Binding& binding, const RequestHead& head, const HostPort& place) {
  const auto* name = std::get_if<Name>(&place.host);
  if (name == nullptr || name->text != binding.host || place.port != binding.port) return false;
  const bool any = binding.methods.empty() && binding.path == "/";
  const auto overrides = [](const Field& field) { return is_one_of(field.name, kOverrides); };
  if (!any && std::ranges::any_of(head.fields, overrides)) return false;
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

// -1: these are no two digits.
int byte_of(std::string_view hex) {
  int byte = -1;
  const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), byte, 16);
  return error == std::errc() && hex.size() == 2 && end == hex.data() + 2 && hex[0] != '-' ? byte : -1;
}

// No byte that starts nothing, and no character in more bytes than it needs: "%c0%ae" is a '.' to some.
bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const std::size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    if (size == 0 || size > text.size()) return false;
    std::uint32_t code = size == 1 ? first : first & (0x7fU >> size);
    for (const char c : text.substr(1, size - 1)) {
      const auto next = static_cast<unsigned char>(c);
      if (next >> 6 != 2) return false;
      code = code << 6 | (next & 0x3fU);
    }
    const bool longer = (size == 3 && code < 0x800) || (size == 4 && (code < 0x10000 || code > 0x10ffff));
    if (longer || (code >= 0xd800 && code < 0xe000)) return false;
    text.remove_prefix(size);
  }
  return true;
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
    const bool dropped = field.hop_by_hop || is_one_of(field.name, kDropped);
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
  std::string decoded;
  for (std::size_t at = 0; at < path.size(); ++at) {
    const bool escaped = path[at] == '%';
    const int code = escaped ? byte_of(path.substr(at + 1, 2)) : static_cast<unsigned char>(path[at]);
    // No escape, as %u002e; or one of what some server decodes before it looks where the path leads.
    if (code < 0x20 || code == 0x7f || (escaped && std::string_view("./\\%;").contains(static_cast<char>(code)))) return false;
    decoded += static_cast<char>(code);
    if (escaped) at += 2;
  }
  if (!is_utf8(decoded)) return false;
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
