#include "launcher/egress/parse/http_answer.h"

#include <algorithm>

namespace caisson::egress {
namespace {

Outcome read_status_line(std::string_view line, AnswerHead& head) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool shaped = line.size() >= 12 && line.starts_with("HTTP/1.") && (line[7] == '0' || line[7] == '1') && line[8] == ' ' &&
                      std::ranges::all_of(line.substr(9, 3), is_digit) && (line.size() == 12 || line[12] == ' ');
  if (!shaped) return refuse(Refusal::framing, "its status line is malformed");
  head.minor = line[7] - '0';
  for (const char c : line.substr(9, 3)) head.status = head.status * 10 + (c - '0');
  if (head.status < 100 || head.status > 599) return refuse(Refusal::framing, "its status is none of HTTP's");
  if (line.size() > 13) head.reason = line.substr(13);
  return done(0);
}

}  // namespace

Outcome read_answer_head(std::string_view bytes, bool to_head, HeadScan& scan, AnswerHead& head) {
  const Outcome found = find_head_end(bytes, scan);
  if (!found.done()) return found;
  head = {};
  std::string_view line;
  if (const Outcome read = read_lines(bytes.substr(0, found.size), line, head.fields); read.refused()) return read;
  if (const Outcome read = read_status_line(line, head); read.refused()) return read;
  if (const Outcome read = read_framing(head.fields, head.minor, head.body); read.refused()) return read;
  head.switches = head.status == 101;
  head.interim = head.status < 200 && !head.switches;
  // RFC 9112 6.3: these have no body, whatever their fields say. RFC 9110 6.4.1: 1xx and 204 must not even say so.
  const bool bodiless = head.status < 200 || head.status == 204;
  if (bodiless && (head.body.kind == BodyKind::chunked || head.body.length > 0))
    return refuse(Refusal::framing, "it tells of a body that its status does not have");
  if (bodiless || to_head || head.status == 304) head.body = {};
  else if (head.body.kind == BodyKind::none) head.body.kind = BodyKind::until_close;
  head.keep_alive = head.minor == 1 && head.body.kind != BodyKind::until_close && !head.switches &&
                    !list_has(head.fields, "connection", "close");
  return found;
}

}  // namespace caisson::egress
