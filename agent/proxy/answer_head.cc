#include "agent/proxy/answer_head.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <openssl/evp.h>

#include "agent/http/base64.h"
#include "agent/http/token.h"
#include "agent/proxy/fields.h"

namespace caisson::proxy {
namespace {

std::unexpected<Error> malformed(std::string_view why) { return fail(Code::protocol, std::string(why)); }

bool is_plain(char c) { return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f); }
bool is_decimal(char c) { return c >= '0' && c <= '9'; }

Status read_status_line(std::string_view line, AnswerHead& head) {
  const bool shaped = line.size() >= 12 && line.starts_with("HTTP/1.") && (line[7] == '0' || line[7] == '1') && line[8] == ' ' &&
                      std::ranges::all_of(line.substr(9, 3), is_decimal) && (line.size() == 12 || line[12] == ' ');
  if (!shaped) return malformed("its status line is malformed");
  head.minor_version = line[7] - '0';
  std::from_chars(line.data() + 9, line.data() + 12, head.status);
  if (head.status < 100 || head.status > 599) return malformed("its status is none of HTTP's");
  if (line.size() > 13) head.reason = line.substr(13);
  return {};
}

Status read_field(std::string_view line, http::Pairs& headers) {
  if (line.front() == ' ' || line.front() == '\t') return malformed("a header of it is folded");
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !http::is_token(line.substr(0, colon)))
    return malformed("a header of it has no proper name");
  headers.emplace_back(http::lower(line.substr(0, colon)), http::trim(line.substr(colon + 1)));
  return {};
}

Result<std::optional<std::string_view>> only(const http::Pairs& headers, std::string_view name) {
  std::optional<std::string_view> found;
  for (const auto& [key, value] : headers) {
    if (key != name) continue;
    if (found) return malformed("it has more than one " + std::string(name));
    found = value;
  }
  return found;
}

// RFC 9112, section 6.3, without the leniency that it allows.
Status read_framing(AnswerHead& head, bool to_head) {
  TRY_ASSIGN(const auto encoding, only(head.headers, "transfer-encoding"));
  TRY_ASSIGN(const auto length, only(head.headers, "content-length"));
  if (encoding && length) return malformed("it has both a length and a transfer encoding");
  if (encoding && (head.minor_version == 0 || http::lower(*encoding) != "chunked"))
    return malformed("its transfer encoding is not chunked");
  if (length) {
    if (length->empty() || length->size() > 18 || !std::ranges::all_of(*length, is_decimal))
      return malformed("its length is malformed");
    std::from_chars(length->data(), length->data() + length->size(), head.length);
    head.has_length = true;
  }
  const bool bodiless = to_head || head.status < 200 || head.status == 204 || head.status == 304;
  if (bodiless) head.framing = Framing::none;
  else head.framing = encoding ? Framing::chunked : length ? Framing::length : Framing::until_end;
  return {};
}

}  // namespace

Result<std::size_t> find_answer_end(std::string_view bytes, std::size_t& scanned) {
  for (; scanned < bytes.size(); ++scanned) {
    if (scanned >= kAnswerHeadBytes) return malformed("its head is too large");
    if (bytes[scanned] != '\n') continue;
    if (scanned == 0 || bytes[scanned - 1] != '\r') return malformed("its head has a line feed without carriage return");
    if (scanned >= 3 && bytes[scanned - 2] == '\n') return ++scanned;
  }
  return std::size_t{0};
}

Result<AnswerHead> read_answer_head(std::string_view bytes, bool to_head) {
  AnswerHead head;
  bool first = true;
  bytes.remove_suffix(2);
  while (!bytes.empty()) {
    const std::size_t end = bytes.find("\r\n");
    const std::string_view line = bytes.substr(0, end);
    if (line.empty() || !std::ranges::all_of(line, is_plain)) return malformed("its head has a control character");
    if (first) TRY(read_status_line(line, head));
    else TRY(read_field(line, head.headers));
    if (head.headers.size() > kAnswerHeaders) return malformed("it has too many headers");
    first = false;
    bytes.remove_prefix(end + 2);
  }
  if (first) return malformed("its status line is malformed");
  TRY(read_framing(head, to_head));
  return head;
}

bool leaves_connection(const AnswerHead& head) {
  const bool ends = head.framing == Framing::chunked || head.framing == Framing::length;
  return ends && head.minor_version == 1 && !list_has(head.headers, "connection", "close");
}

bool accepts_websocket(const AnswerHead& head, std::string_view key) {
  const std::string text = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) != 1) return false;
  const std::string wanted = http::base64_encode(std::string(digest.begin(), digest.begin() + size));
  const auto given = only(head.headers, "sec-websocket-accept");
  return head.status == 101 && given && *given == wanted && list_has(head.headers, "upgrade", "websocket") &&
         list_has(head.headers, "connection", "upgrade");
}

}  // namespace caisson::proxy
