#include <gtest/gtest.h>

#include <random>

#include "launcher/egress/parse/dns_answer.h"
#include "launcher/egress/parse/dns_question.h"
#include "tests/unit/egress_parse/split.h"

namespace caisson::egress {
namespace {

using namespace std::string_literals;

const Name kName{"example.org"};
const std::string kWire =
    "\x07"
    "example\x03org\0"s;

std::string number(std::uint32_t value, std::size_t width) {
  std::string out;
  put_number(out, value, width);
  return out;
}
std::string head(std::uint32_t flags, std::uint32_t questions, std::uint32_t answers = 0, std::uint32_t authorities = 0,
                 std::uint32_t additional = 0) {
  std::string out = number(0x1234, 2);
  for (const std::uint32_t value : {flags, questions, answers, authorities, additional}) out += number(value, 2);
  return out;
}
std::string asked(std::string_view wire, std::uint32_t type = kTypeA, std::uint32_t in_class = kClassIn) {
  return std::string(wire) + number(type, 2) + number(in_class, 2);
}
std::string record(std::string_view owner, std::uint32_t type, std::string_view data, std::uint32_t ttl = 60,
                   std::uint32_t in_class = kClassIn) {
  return asked(owner, type, in_class) + number(ttl, 4) + number(static_cast<std::uint32_t>(data.size()), 2) + std::string(data);
}
std::string opt(std::uint32_t size, std::uint32_t version = 0, std::string_view options = "") {
  return "\0"s + number(kTypeOpt, 2) + number(size, 2) + number(version << 16, 4) +
         number(static_cast<std::uint32_t>(options.size()), 2) + std::string(options);
}
// "done", or what a refused question is answered with.
std::string question(std::string_view message, DnsQuestion& read) {
  const Outcome outcome = read_dns_question(message, read);
  if (outcome.done()) return outcome.size == message.size() ? "done" : "part";
  return read.code ? std::to_string(static_cast<int>(*read.code)) : "silence";
}
std::string question(std::string_view message) {
  DnsQuestion read;
  return question(message, read);
}

TEST(DnsQuestion, OfAName) {
  DnsQuestion read;
  EXPECT_EQ(question(head(0x0100, 1) + asked("\x07"
                                             "eXample\x03ORG\0"s,
                                             kTypeAaaa),
                     read),
            "done");
  EXPECT_TRUE(read.id == 0x1234 && read.recursion_desired && read.type == kTypeAaaa && !read.edns && read.most == 512);
  EXPECT_EQ(host_text(*read.host), "example.org");
  EXPECT_EQ(read.wire, kWire);
  EXPECT_EQ(read.question, asked("\x07"
                                 "eXample\x03ORG\0"s,
                                 kTypeAaaa));
  EXPECT_EQ(question(head(0x0120, 1, 0, 0, 1) + asked(kWire) + opt(4096, 0, "\x00\x0a\x00\x01x"s), read), "done");
  EXPECT_TRUE(read.edns && read.most == kEdnsSize);
  EXPECT_EQ(question(head(0, 1, 0, 0, 1) + asked(kWire) + opt(0), read), "done");
  EXPECT_EQ(read.most, 512U);
}

TEST(DnsQuestion, NamesThatAreNoHosts) {
  DnsQuestion read;
  for (const std::string& wire : {"\0"s,
                                  "\x0b"
                                  "example.org\0"s,
                                  "\x03"
                                  "a b\x03org\0"s,
                                  "\x02\xc3\xbc\x03org\0"s, "\x01*\x03org\0"s,
                                  "\x02"
                                  "a\0\x03org\0"s}) {
    EXPECT_EQ(question(head(0, 1) + asked(wire), read), "done");
    EXPECT_FALSE(read.host) << wire;
  }
  EXPECT_EQ(question(head(0, 1) + asked("\x03"
                                        "169\x03"
                                        "254\x03"
                                        "169\x03"
                                        "254\0"s),
                     read),
            "done");
  EXPECT_TRUE(std::holds_alternative<Address>(*read.host));
}

TEST(DnsQuestion, EverythingElseIsRefused) {
  EXPECT_EQ(question(""), "silence");
  EXPECT_EQ(question("\x12\x34\x00"s), "silence");
  EXPECT_EQ(question(head(0x8000, 1) + asked(kWire)), "silence");
  EXPECT_EQ(question(head(0x2800, 1) + asked(kWire)), "5");   // update
  EXPECT_EQ(question(head(0x2000, 1) + asked(kWire)), "5");   // notify
  EXPECT_EQ(question(head(0, 1) + asked(kWire, 1, 3)), "5");  // CHAOS
  EXPECT_EQ(question(head(0, 1) + asked(kWire, 1, 255)), "5");
  EXPECT_EQ(question(head(0, 0)), "1");
  EXPECT_EQ(question(head(0, 2) + asked(kWire) + asked(kWire)), "1");
  EXPECT_EQ(question(head(0, 1, 1) + asked(kWire) + record(kWire, 1, "abcd")), "1");
  EXPECT_EQ(question(head(0, 1, 0, 1) + asked(kWire) + record(kWire, 1, "abcd")), "1");
  EXPECT_EQ(question(head(0, 1, 0, 0, 2) + asked(kWire) + opt(512) + opt(512)), "1");
  EXPECT_EQ(question(head(0, 1, 0, 0, 1) + asked(kWire) + record(kWire, 1, "abcd")), "1");
  EXPECT_EQ(question(head(0, 1, 0, 0, 1) + asked(kWire) + opt(512, 1)), "16");
  EXPECT_EQ(question(head(0, 1) + asked(kWire) + "x"), "1");
  EXPECT_EQ(question(head(0, 1) + asked("\xc0\x0c"s)), "1");  // a pointer to itself
  EXPECT_EQ(question(head(0, 1) + asked("\x40" + std::string(64, 'a') + "\0"s)), "1");
  std::string longest;
  for (int i = 0; i < 127; ++i)
    longest +=
        "\x01"
        "a";
  EXPECT_EQ(question(head(0, 1) + asked(longest + "\0"s)), "done");
  EXPECT_EQ(question(head(0, 1) + asked(longest + "\x01"
                                                  "a\0"s)),
            "1");
  const std::string whole = head(0, 1, 0, 0, 1) + asked(kWire) + opt(512, 0, "abcdef");
  for (std::size_t size = 12; size < whole.size(); ++size) EXPECT_EQ(question(whole.substr(0, size)), "1") << size;
}

TEST(DnsQuestion, ByTcpHasItsSizeInFront) {
  const std::string message = head(0, 1) + asked(kWire);
  expect_exact(number(static_cast<std::uint32_t>(message.size()), 2) + message,
               [] { return [](std::string_view bytes) { return find_dns_message(bytes); }; });
  EXPECT_TRUE(find_dns_message("\x00\x0b"s).refused());
}

TEST(DnsReply, IsReadByTheOtherSide) {
  DnsQuestion read;
  (void)question(head(0x0100, 1, 0, 0, 1) + asked(kWire) + opt(1232), read);
  const Address address{{198, 18, 0, 7}, false};
  const DnsRecord records[] = {address_record(address, 30)};
  const std::string reply = dns_reply(read, DnsCode::no_error, records, read.most);
  DnsAnswer answer;
  ASSERT_TRUE(read_dns_answer(reply, 0x1234, kName, kTypeA, answer).done());
  EXPECT_EQ(answer.addresses, std::vector{address});
  EXPECT_EQ(answer.ttl, 30U);
  EXPECT_EQ(reply.substr(2, 2), "\x81\x80"s);  // no AA, no AD
  EXPECT_EQ(reply.substr(10, 2), "\x00\x01"s);
  EXPECT_TRUE(reply.ends_with(opt(1232)));
  const std::string none = dns_reply(read, DnsCode::no_such_name, {}, 512);
  ASSERT_TRUE(read_dns_answer(none, 0x1234, kName, kTypeA, answer).done());
  EXPECT_TRUE(answer.code == DnsCode::no_such_name && answer.addresses.empty());
}

TEST(DnsReply, WhatDoesNotFitIsTruncated) {
  DnsQuestion read;
  (void)question(head(0, 1) + asked(kWire), read);
  const std::vector<DnsRecord> many(40, address_record({{1, 2, 3, 4}, false}, 1));
  const std::string reply = dns_reply(read, DnsCode::no_error, many, 512);
  EXPECT_EQ(reply.size(), kDnsHead + read.question.size());
  DnsAnswer answer;
  ASSERT_TRUE(read_dns_answer(reply, 0x1234, kName, kTypeA, answer).done());
  EXPECT_TRUE(answer.truncated && answer.addresses.empty());
  ASSERT_TRUE(read_dns_answer(dns_reply(read, DnsCode::no_error, many, 65535), 0x1234, kName, kTypeA, answer).done());
  EXPECT_EQ(answer.addresses.size(), 40U);
}

TEST(DnsReply, ToWhatIsRefused) {
  DnsQuestion read;
  (void)question(head(0, 1) + "\xc0\x0c"s, read);
  EXPECT_EQ(dns_reply(read, *read.code, {}, 512), head(0x8081, 0));
  (void)question(head(0, 1, 0, 0, 1) + asked(kWire) + opt(512, 1), read);
  const std::string reply = dns_reply(read, *read.code, {}, 512);
  EXPECT_EQ(reply.substr(0, 12), head(0x8080, 1, 0, 0, 1));
  EXPECT_TRUE(reply.ends_with(std::string("\0\0\x29\x04\xd0\x01\0\0\0\0\0"s)));  // the code's upper bits
}

Outcome answer_of(std::string_view message, DnsAnswer& answer, std::uint16_t type = kTypeA) {
  return read_dns_answer(message, 0x1234, kName, type, answer);
}

TEST(DnsAnswer, AddressesOfTheEndOfTheChain) {
  const std::string cdn =
                        "\x01"
                        "c\x03"
                        "cdn\x03net\0"s,
                    other = "\x05other\0"s;
  DnsAnswer answer;
  ASSERT_TRUE(answer_of(head(0x8180, 1, 5) + asked(kWire) + record(other, 1, "\x0a\0\0\x01"s) +
                            record("\x01"
                                   "b\xc0\x0c"s,
                                   kTypeCname, cdn, 20) +
                            record("\xc0\x0c", kTypeCname,
                                   "\x01"
                                   "B\xc0\x0c"s,
                                   50) +
                            record(cdn, 1, "\x01\x02\x03\x04") + record("\xc0\x0c", 1, "\x09\x09\x09\x09"),
                        answer)
                  .done());
  ASSERT_EQ(answer.addresses.size(), 1U);
  EXPECT_EQ(answer.addresses[0].text(), "1.2.3.4");
  EXPECT_EQ(answer.ttl, 20U);
  ASSERT_TRUE(answer_of(head(0x8180, 1, 2) + asked(kWire, kTypeAaaa) +
                            record("\xc0\x0c", kTypeAaaa, std::string(15, '\0') + "\x01") +
                            record("\xc0\x0c", 1, "\x01\x02\x03\x04"),
                        answer, kTypeAaaa)
                  .done());
  ASSERT_EQ(answer.addresses.size(), 1U);
  EXPECT_EQ(answer.addresses[0].text(), "::1");
}

TEST(DnsAnswer, ChainsAndPointersEnd) {
  DnsAnswer answer;
  const std::string a =
      "\x01"
      "a\0"s;
  EXPECT_TRUE(answer_of(head(0x8180, 1, 3) + asked(kWire) + record("\xc0\x0c", kTypeCname, a) + record(a, kTypeCname, kWire) +
                            record(a, 1, "abcd"),
                        answer)
                  .done());
  EXPECT_LE(answer.addresses.size(), 1U);
  for (const std::string& owner : {"\xc0\x1d"s, "\xc0\xff"s, "\xff\xff"s, "\xc0\x02"s, "\xc0"s, "\x80"s,
                                   "\x01"
                                   "a\xc0\x1d"s})
    EXPECT_TRUE(answer_of(head(0x8180, 1, 1) + asked(kWire) + record(owner, 1, "abcd"), answer).refused()) << owner;
  std::string chain = head(0x8180, 1, 200) + asked(kWire);  // each owner is a pointer to the one before
  std::size_t before = 12;
  for (int i = 0; i < 200; ++i) {
    const std::size_t here = chain.size();
    chain += record(number(0xc000 | static_cast<std::uint32_t>(before), 2), 1, "\x01\x02\x03\x04");
    before = here;
  }
  ASSERT_TRUE(answer_of(chain, answer).done());
  EXPECT_EQ(answer.addresses.size(), kMaxAddresses);
}

TEST(DnsAnswer, OnlyTheAnswerToTheQuestionIsTaken) {
  const std::string right = head(0x8180, 1, 1) + asked(kWire) + record("\xc0\x0c", 1, "abcd");
  DnsAnswer answer;
  ASSERT_TRUE(answer_of(right, answer).done());
  EXPECT_TRUE(read_dns_answer(right, 0x1235, kName, kTypeA, answer).refused());
  EXPECT_TRUE(read_dns_answer(right, 0x1234, {"example.com"}, kTypeA, answer).refused());
  EXPECT_TRUE(read_dns_answer(right, 0x1234, kName, kTypeAaaa, answer).refused());
  EXPECT_TRUE(answer_of(head(0x0180, 1, 1) + right.substr(12), answer).refused());
  EXPECT_TRUE(answer_of(head(0x8180, 0, 1) + record(kWire, 1, "abcd"), answer).refused());
  EXPECT_TRUE(answer_of(head(0x9180, 1, 1) + right.substr(12), answer).refused());
  EXPECT_TRUE(answer_of(head(0x8180, 1, 1) + asked(kWire, 1, 3) + record("\xc0\x0c", 1, "abcd"), answer).refused());
  EXPECT_TRUE(answer_of(head(0x8180, 1, 1) + asked(kWire) + record("\xc0\x0c", 1, "abc"), answer).refused());
  EXPECT_TRUE(answer_of(head(0x8180, 1, 1) + asked(kWire) + record("\xc0\x0c", kTypeCname, "\xc0\x0cx"), answer).refused());
  EXPECT_TRUE(answer_of(head(0x8180, 1, 257) + right.substr(12), answer).refusal == Refusal::limit);
  for (std::size_t size = 0; size < right.size(); ++size) EXPECT_TRUE(answer_of(right.substr(0, size), answer).refused()) << size;
  ASSERT_TRUE(answer_of(head(0x8180, 1, 1) + asked(kWire) + record("\xc0\x0c", 1, "abcd", 60, 3), answer).done());
  EXPECT_TRUE(answer.addresses.empty());
  ASSERT_TRUE(answer_of(head(0x8183, 1) + asked(kWire), answer).done());
  EXPECT_TRUE(answer.code == DnsCode::no_such_name);
  ASSERT_TRUE(answer_of(head(0x8380, 1, 1) + asked(kWire), answer).done());
  EXPECT_TRUE(answer.truncated);
}

TEST(DnsQuery, IsAQuestionThatWeWouldTake) {
  DnsQuestion read;
  EXPECT_EQ(question(dns_query(7, kName, kTypeAaaa), read), "done");
  EXPECT_TRUE(read.id == 7 && read.recursion_desired && read.edns && read.most == kEdnsSize && read.type == kTypeAaaa &&
              read.wire == kWire);
}

TEST(Dns, AnyBytesEnd) {
  std::mt19937 random(3);
  const std::string whole = head(0x8180, 1, 2) + asked(kWire) +
                            record("\xc0\x0c", kTypeCname,
                                   "\x01"
                                   "a\xc0\x14"s) +
                            record(
                                "\x01"
                                "a\xc0\x14"s,
                                1, "abcd");
  int taken = 0;
  for (int round = 0; round < 50000; ++round) {
    std::string bytes = whole;
    for (unsigned i = random() % 4; i > 0; --i) bytes[random() % bytes.size()] = static_cast<char>(random());
    DnsAnswer answer;
    DnsQuestion read;
    taken += answer_of(bytes, answer).done();
    bytes[2] = static_cast<char>(bytes[2] & 0x7f);
    if (read_dns_question(bytes, read).refused() && read.code)
      EXPECT_LE(dns_reply(read, *read.code, {}, read.most).size(), 12U + 259 + 11);
  }
  EXPECT_GT(taken, 5000);
}

}  // namespace
}  // namespace caisson::egress
