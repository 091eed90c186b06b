#include "launcher/egress/list/grant.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace caisson::egress {
namespace {

constexpr std::string_view kNobody = "-", kKinds = "always once used";
constexpr std::size_t kMaxWord = 255;

std::unexpected<Error> malformed() { return fail(Code::protocol, "grants are malformed"); }

template <class T>
bool read_number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out != 0;
}

Result<Grant> read_grant(std::string_view line) {
  std::array<std::string_view, 6> words;  // id, kind, domain, session, host, port
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t end = i + 1 < words.size() ? line.find(' ') : line.size();
    if (end == std::string_view::npos || end == 0 || end > kMaxWord) return malformed();
    words[i] = line.substr(0, end);
    line.remove_prefix(i + 1 < words.size() ? end + 1 : end);
  }
  Grant out;
  out.domain = words[2];
  if (words[3] != kNobody) out.session = words[3];
  auto host = read_host(words[4]);
  if (!host || host_text(*host) != words[4] || !read_number(words[0], out.id) || !read_number(words[5], out.port))
    return malformed();
  out.host = std::move(*host);
  out.used = words[1] == word(kKinds, 2), out.once = out.used || words[1] == word(kKinds, 1);
  if (!out.once && words[1] != word(kKinds, 0)) return malformed();
  return out;
}

}  // namespace

Grant* find_grant(Grants& grants, const Asker& asker, const Host& host, std::uint16_t port, std::uint32_t using_) {
  const auto rank = [using_](const Grant& one) { return one.id == using_ ? 3 : !one.once ? 2 : !one.used ? 1 : 0; };
  Grant* best = nullptr;
  for (Grant& one : grants) {
    const bool theirs =
        one.domain == asker.domain && (one.session.empty() || asker.session.empty() || one.session == asker.session);
    if (theirs && one.port == port && one.host == host && (best == nullptr || rank(one) > rank(*best))) best = &one;
  }
  return best;
}

std::string grant_bytes(const Grants& grants) {
  std::string out;
  for (const Grant& one : grants) {
    out += std::to_string(one.id) + ' ';
    out += word(kKinds, one.used ? 2 : one.once ? 1 : 0);
    out += ' ' + one.domain + ' ' + (one.session.empty() ? std::string(kNobody) : one.session) + ' ' + host_text(one.host) + ' ' +
           std::to_string(one.port) + '\n';
  }
  return out;
}

Result<Grants> read_grants(std::string_view bytes) {
  Grants out;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos || out.size() == kMaxGrants) return malformed();
    TRY_ASSIGN(Grant one, read_grant(bytes.substr(0, end)));
    out.push_back(std::move(one));
    bytes.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace caisson::egress
