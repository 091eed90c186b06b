// What reaches door, dialer and opener, mutated: heads and bodies of HTTP, SOCKS both ways, ClientHello, DNS both ways, hosts,
// lists, upstream proxies, placeholders in requests, secrets in answers. The first byte says which of them the rest is. A broken
// promise aborts.
#include <cstdio>
#include <cstdlib>

#include "launcher/egress/list/list.h"
#include "launcher/egress/list/upstream.h"
#include "launcher/egress/parse/client_hello.h"
#include "launcher/egress/parse/dns_answer.h"
#include "launcher/egress/parse/dns_question.h"
#include "launcher/egress/parse/http_answer.h"
#include "launcher/egress/parse/http_body.h"
#include "launcher/egress/parse/http_head.h"
#include "launcher/egress/parse/socks5.h"
#include "launcher/egress/parse/socks5_server.h"
#include "launcher/egress/secret/replace.h"
#include "launcher/egress/secret/scrub.h"

namespace caisson::egress {
namespace {

void promise(bool kept, const char* what) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

// make() gives a function that is called with ever more of the bytes.
Outcome check_cuts(std::string_view bytes, const auto& make) {
  const Outcome whole = make()(bytes);
  auto read = make();
  Outcome last = need_more();
  for (std::size_t size = 0; size <= bytes.size() && last.step == Outcome::Step::need_more; ++size)
    last = read(bytes.substr(0, size));
  promise(last.step == whole.step && last.size == whole.size && last.refusal == whole.refusal && last.why == whole.why,
          "a parser says the same however the bytes were cut");
  promise(whole.size <= bytes.size(), "what is done is of the bytes that came");
  promise(whole.refused() == (whole.refusal != Refusal::none) && whole.refused() == !whole.why.empty(), "a refusal has a reason");
  return whole;
}

void check_host(const Host& host) {
  const std::string text = host_text(host);
  const auto again = read_host(text);
  promise(again && *again == host, "a canonical host is read as itself");
  for (const char c : text) promise(c > 0x20 && c < 0x7f && (c < 'A' || c > 'Z'), "a canonical host is lower-case ASCII");
  if (const auto* address = std::get_if<Address>(&host)) (void)class_of(*address);
}

void check_request(std::string_view bytes) {
  RequestHead head;
  const Outcome read = check_cuts(bytes, [&] {
    return [&, scan = HeadScan()](std::string_view part) mutable { return read_request_head(part, scan, head); };
  });
  if (!read.done()) return;
  promise(read.size <= kMaxHead && head.fields.size() <= kMaxFields, "a head is bounded");
  promise(head.host || (head.minor == 0 && head.form == RequestHead::Form::origin), "a request has a host");
  if (head.host) check_host(*head.host), promise(head.port != 0, "and a port");
  promise(head.form == RequestHead::Form::authority ? head.target.empty() : head.target == "*" || head.target.starts_with('/'),
          "what is sent on is in origin form");
  promise(head.body.kind != BodyKind::until_close, "a request's body ends");
}

void check_answer(std::string_view bytes) {
  for (const bool to_head : {false, true}) {
    AnswerHead head;
    const Outcome read = check_cuts(bytes, [&] {
      return [&, scan = HeadScan()](std::string_view part) mutable { return read_answer_head(part, to_head, scan, head); };
    });
    if (read.done())
      promise(!head.keep_alive || head.body.kind != BodyKind::until_close, "a connection that is kept has bodies that end");
  }
}

void check_body(std::string_view bytes) {
  BodyEnd whole({BodyKind::chunked}), cut({BodyKind::chunked});
  const Outcome one = whole.take(bytes);
  std::size_t at = 0;
  Outcome many = need_more();
  for (; at < bytes.size() && many.step == Outcome::Step::need_more; ++at) many = cut.take(bytes.substr(at, 1));
  promise(many.step == one.step && many.why == one.why && (!one.done() || one.size == at), "a body ends in one place");
  promise(whole.ended() == one.done() && (!whole.ended() || whole.certain() == 0), "and then has nothing to come");
}

void check_socks(std::string_view bytes) {
  (void)check_cuts(bytes, [] { return [](std::string_view part) { return read_socks_greeting(part); }; });
  SocksRequest request;
  const Outcome read =
      check_cuts(bytes, [&] { return [&](std::string_view part) { return read_socks_request(part, request); }; });
  if (read.done()) check_host(*request.host), promise(request.port != 0, "a request has a port");
}

// What a proxy says to us.
void check_socks_server(std::string_view bytes) {
  SocksMethod method{};
  bool taken = false;
  std::uint8_t reply = 0;
  (void)check_cuts(bytes, [&] { return [&](std::string_view part) { return read_socks_method(part, method); }; });
  (void)check_cuts(bytes, [&] { return [&](std::string_view part) { return read_socks_login(part, taken); }; });
  const Outcome read = check_cuts(bytes, [&] { return [&](std::string_view part) { return read_socks_reply(part, reply); }; });
  if (read.done()) promise(read.size <= 262, "a reply is bounded");
}

void check_server(std::string_view text) {
  if (const auto pattern = read_pattern(text)) {
    const auto again = read_pattern(pattern->text);
    promise(again && again->text == pattern->text, "a pattern has one form");
  }
  const auto upstream = read_server(text);
  if (!upstream) return;
  check_host(upstream->host);
  const std::string bytes = upstream_bytes(*upstream);
  const auto again = read_upstream(bytes);
  promise(again && upstream_bytes(*again) == bytes && again->password == upstream->password,
          "an upstream is read as it was written");
}

void check_hello(std::string_view bytes) {
  ClientHello hello;
  const Outcome read = check_cuts(bytes, [&] {
    return [&, reader = HelloReader()](std::string_view part) mutable {
      const Outcome outcome = reader.read(part);
      hello = reader.hello();
      return outcome;
    };
  });
  if (read.done() && hello.server) check_host(*hello.server);
}

void check_question(std::string_view message) {
  (void)check_cuts(message, [] { return [](std::string_view part) { return find_dns_message(part); }; });
  DnsQuestion question;
  const Outcome read = read_dns_question(message, question);
  if (question.host) check_host(*question.host);
  const DnsRecord records[] = {address_record({{198, 18, 0, 1}, false}, 30)};
  if (read.done()) {
    promise(question.wire.size() <= 255 && question.most >= 512 && question.most <= kEdnsSize, "a question is bounded");
    promise(dns_reply(question, DnsCode::no_error, records, question.most).size() <= question.most, "an answer fits");
    DnsAnswer answer;
    const auto* name = question.host ? std::get_if<Name>(&*question.host) : nullptr;
    if (name == nullptr || question.type != kTypeA) return;
    const std::string reply = dns_reply(question, DnsCode::no_error, records, question.most);
    promise(read_dns_answer(reply, question.id, *name, kTypeA, answer).done() && answer.addresses.size() == 1,
            "an answer is read by its asker");
  } else if (question.code) {
    promise(dns_reply(question, *question.code, {}, 512).size() <= 512, "a refusal fits");
  }
}

void check_resolver(std::string_view message) {
  for (const std::uint16_t type : {kTypeA, kTypeAaaa}) {
    DnsAnswer answer;
    if (read_dns_answer(message, 0x1234, {"example.org"}, type, answer).refused()) continue;
    promise(answer.addresses.size() <= kMaxAddresses, "addresses are bounded");
    for (const Address& address : answer.addresses)
      promise(address.v6 == (type == kTypeAaaa), "of the family that was asked"), (void)class_of(address);
  }
}

void check_replace(std::string_view bytes) {
  static const Binding token{
      .name = "token", .placeholder = "PLACEHOLDER-0001", .host = "a.test", .path = "/a", .field = "authorization", .file = "/t"};
  static const Binding key{
      .name = "key", .placeholder = "placeholder-0002", .host = "a.test", .field = "x-api-key", .file = "/k"};
  static const std::vector<Bound> bounds = {{token, "SECRET-SECRET-01"}, {key, "secret-secret-02"}};
  HeadScan scan, again;
  RequestHead head, sent;
  if (!read_request_head(bytes, scan, head).done() || head.form != RequestHead::Form::origin) return;
  const Replaced out = replace(head, {*read_host("a.test"), 443}, bounds);
  if (out.refusal != Refusal::none) return promise(out.text.empty() && out.used.size() == 1, "a refusal sends nothing");
  const Outcome read = read_request_head(out.text, again, sent);
  // A secret may be longer than its placeholder: only then is what goes out larger than what may come.
  if (read.refused())
    return promise(out.text.size() > kMaxHead || sent.fields.size() > kMaxFields || read.refusal == Refusal::limit,
                   "what is sent on is a request");
  promise(read.done() && read.size == out.text.size(), "and all of it is its head");
  promise(sent.method == head.method && sent.target == head.target && sent.body.kind == head.body.kind, "and it is the same one");
  for (const Bound& one : bounds) {
    promise(!out.text.contains(one.binding.placeholder), "no placeholder goes out");
    const bool has = out.text.contains(one.secret), had = bytes.contains(one.secret);
    promise(!has || had || !out.used.empty(), "a secret that goes out is on record");
  }
}

void check_scrub(std::string_view bytes) {
  static const std::vector<std::string> secrets = {"abcabcabcabc", "bcabcabcabca", "AAAAAAAAAAAAAAAA"};
  static const Forms forms(secrets);
  std::string whole, parts;
  Scrubber one(forms), many(forms);
  one.take(bytes, whole);
  one.end(whole);
  for (const char c : bytes) many.take({&c, 1}, parts), promise(parts.size() <= bytes.size(), "nothing is added");
  many.end(parts);
  promise(whole == parts && whole.size() == bytes.size(), "an answer is the same however it was cut, and as long as it was");
  for (const std::string& secret : secrets) promise(!whole.contains(secret), "and no secret is in it");
}

void check_list(std::string_view bytes) {
  const auto list = read_list(bytes);
  if (!list) return;
  promise(list_bytes(*list) == bytes, "a list has one form in bytes");
  for (const std::string_view asked : {"a.example.org", "10.0.0.1", "64:ff9b::a00:1"}) {
    const Host host = *read_host(asked);
    const Verdict verdict = decide(*list, host, 443);
    promise(verdict.rule < static_cast<int>(list->rules.size()), "the rule that decides is there");
    promise(!address_permitted(*list, verdict, host, {{127, 0, 0, 1}, false}, 443), "no list leads to the machine itself");
  }
}

}  // namespace
}  // namespace caisson::egress

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace caisson::egress;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.empty()) return 0;
  const std::string_view rest = input.substr(1);
  switch (input[0]) {
    case 'r':
      check_request(rest);
      break;
    case 'a':
      check_answer(rest);
      break;
    case 'b':
      check_body(rest);
      break;
    case 's':
      check_socks(rest);
      break;
    case 'p':
      check_socks_server(rest);
      break;
    case 'u':
      check_server(rest);
      if (const auto read = read_upstream(rest)) (void)goes_through(*read, *read_host("a.example.org"));
      break;
    case 't':
      check_hello(rest);
      break;
    case 'q':
      check_question(rest);
      break;
    case 'd':
      check_resolver(rest);
      break;
    case 'l':
      check_list(rest);
      break;
    case 'e':
      check_replace(rest);
      break;
    case 'c':
      check_scrub(rest);
      break;
    case 'h':
      if (const auto host = caisson::egress::read_host(rest)) check_host(*host);
      break;
    default:
      break;
  }
  return 0;
}
