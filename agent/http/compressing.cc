#include "agent/http/compressing.h"

#include <algorithm>
#include <array>
#include <optional>

#include "agent/http/connection_impl.h"
#include "agent/http/token.h"

namespace caisson::http {
namespace {

constexpr std::size_t kCompressPiece = 16 * 1024;  // a fraction of a millisecond
constexpr int kFast = 1;

// "0", "0.5", "1.000" in thousandths; nullopt: malformed.
std::optional<int> quality(std::string_view text) {
  if (text.empty() || text.size() > 5 || (text[0] != '0' && text[0] != '1') || (text.size() > 1 && text[1] != '.'))
    return std::nullopt;
  int value = (text[0] - '0') * 1000, unit = 100;
  for (const char c : text.substr(std::min<std::size_t>(2, text.size()))) {
    if (c < '0' || c > '9') return std::nullopt;
    value += (c - '0') * unit;
    unit /= 10;
  }
  return value <= 1000 ? std::optional(value) : std::nullopt;
}

// The quality that one element gives to its coding. A malformed one gives none.
int quality_of(std::string_view element) {
  const std::size_t semicolon = element.find(';');
  if (semicolon == std::string_view::npos) return 1000;
  const std::string_view parameter = trim(element.substr(semicolon + 1));
  if (parameter.size() < 2 || lower(parameter[0]) != 'q' || parameter[1] != '=') return 0;
  return quality(parameter.substr(2)).value_or(0);
}

}  // namespace

bool accepts_gzip(const Pairs& headers) {
  std::optional<int> gzip, any, identity;
  for (const auto& [name, value] : headers) {
    if (name == "cookie") return false;
    if (name != "accept-encoding") continue;
    for (std::string_view rest = value; !rest.empty();) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      const std::string_view element = trim(rest.substr(0, comma));
      const std::string coding = lower(trim(element.substr(0, element.find(';'))));
      if (coding == "gzip" || coding == "x-gzip") gzip = quality_of(element);
      else if (coding == "identity") identity = quality_of(element);
      else if (coding == "*") any = quality_of(element);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  const int wanted = gzip.value_or(any.value_or(0));
  return wanted > 0 && wanted >= identity.value_or(0);
}

bool is_compressible(const Response& response) {
  static constexpr std::array<std::string_view, 6> kTypes{
      "application/json", "application/javascript", "text/javascript", "text/html", "text/plain", "text/css"};
  if (response.body.size() < kLeastToCompress || response.body.size() > kMostToCompress) return false;
  if (response.status == 206) return false;
  const auto bars = [](const auto& header) {
    return header.first == "content-encoding" || header.first == "content-range" || header.first == "etag" ||
           header.first == "set-cookie";
  };
  if (std::ranges::any_of(response.headers, bars)) return false;
  const std::string type = lower(trim(std::string_view(response.content_type).substr(0, response.content_type.find(';'))));
  return std::ranges::find(kTypes, type) != kTypes.end();
}

// Small answers at once. Larger ones as long work, and only if there is room for both texts.
asio::awaitable<void> Connection::compress(Response* response) {
  if (!is_compressible(*response)) co_return;
  response->headers.emplace_back("vary", "Accept-Encoding");
  if (!takes_gzip_) co_return;
  std::string packed;
  if (response->body.size() <= limits_.uncounted_bytes) {
    state_->gzip.append(response->body);
    packed = state_->gzip.finish();
  } else {
    const Lane::Turn turn = co_await Lane::take(state_->lane, payer_, workspace_);
    Gzip gzip(kFast);
    for (std::string_view rest = response->body; !rest.empty();) {
      if (hold(response->body.capacity() + gzip.size() + kCompressPiece) != Room::granted) co_return;
      gzip.append(rest.substr(0, kCompressPiece));
      rest.remove_prefix(std::min(kCompressPiece, rest.size()));
      co_await pause();
    }
    packed = gzip.finish();
  }
  if (packed.size() >= response->body.size()) co_return;
  packed.shrink_to_fit();
  response->body = std::move(packed);
  response->headers.emplace_back("content-encoding", "gzip");
}

}  // namespace caisson::http
