#include "launcher/egress/parse/client_hello.h"

#include <gtest/gtest.h>

#include "launcher/egress/parse/dns_wire.h"
#include "tests/unit/egress_parse/split.h"

namespace caisson::egress {
namespace {

using namespace std::string_literals;

std::string sized(std::string_view bytes, std::size_t width) {
  std::string out;
  put_number(out, static_cast<std::uint32_t>(bytes.size()), width);
  return out.append(bytes);
}
std::string extension(std::uint32_t kind, std::string_view body) {
  std::string out;
  put_number(out, kind, 2);
  return out + sized(body, 2);
}
std::string server_name(std::string_view name) { return extension(0, sized("\0"s + sized(name, 2), 2)); }
std::string message(std::string_view extensions, std::string_view ciphers = "\x13\x01") {
  return "\x01" + sized("\x03\x03" + std::string(32, 'r') + sized(std::string(32, 's'), 1) + sized(ciphers, 2) + sized("\0"s, 1) +
                            sized(extensions, 2),
                        3);
}
std::string records(std::string_view message, std::size_t size = 16384) {
  std::string out;
  for (std::size_t at = 0; at < message.size(); at += size) out += "\x16\x03\x01" + sized(message.substr(at, size), 2);
  return out;
}

auto reader(ClientHello& hello) {
  return [&hello] {
    return [&hello, reader = HelloReader()](std::string_view bytes) mutable {
      const Outcome outcome = reader.read(bytes);
      hello = reader.hello();
      return outcome;
    };
  };
}
std::string outcome(std::string_view bytes, ClientHello& hello) {
  const Outcome read = in_every_cut(bytes, reader(hello));
  if (read.done()) return "done";
  return read.refused() ? std::string(word(words(read.refusal), static_cast<std::size_t>(read.refusal))) : "need_more";
}
std::string outcome(std::string_view bytes) {
  ClientHello hello;
  return outcome(bytes, hello);
}
std::string with(std::string_view extensions) { return outcome(records(message(extensions))); }

TEST(ClientHello, NamesItsServer) {
  const std::string protocols = extension(16, sized(sized("h2", 1) + sized("http/1.1", 1), 2));
  const std::string bytes =
      records(message(extension(43, "\x02\x03\x04") + server_name("API.Example.org") + protocols + extension(0xfe0d, "ech")));
  ClientHello hello;
  expect_exact(bytes, reader(hello));
  ASSERT_TRUE(hello.server);
  EXPECT_EQ(hello.server->text, "api.example.org");
  EXPECT_EQ(hello.protocols, (std::vector<std::string>{"h2", "http/1.1"}));
  EXPECT_TRUE(hello.ech);
}

TEST(ClientHello, MayNameNone) {
  ClientHello hello;
  EXPECT_EQ(outcome(records(message(extension(43, "\x02\x03\x04"))), hello), "done");
  EXPECT_FALSE(hello.server || hello.ech);
  std::string old = message("");
  old = "\x01" + sized(old.substr(4, old.size() - 6), 3);  // without a list of extensions
  EXPECT_EQ(outcome(records(old), hello), "done");
  EXPECT_FALSE(hello.server);
}

TEST(ClientHello, InAnyRecords) {
  const std::string one = message(server_name("example.org") + extension(21, std::string(1800, '\0')));
  for (const std::size_t size : {1U, 2U, 3U, 4U, 5U, 100U, 1500U}) {
    HelloReader reader;
    const std::string bytes = records(one, size);
    Outcome read = need_more();
    for (std::size_t came = 1; came <= bytes.size(); ++came) {
      read = reader.read(std::string_view(bytes).substr(0, came));
      EXPECT_EQ(read.done(), came == bytes.size());
      ASSERT_FALSE(read.refused()) << read.why;
    }
    EXPECT_EQ(reader.hello().server->text, "example.org");
  }
}

TEST(ClientHello, WhatIsNoTlsIsToldAtTheFirstByteThatCannotBe) {
  const std::string good = records(message(server_name("a.b")));
  for (const auto& [at, wrong] :
       {std::pair{0, '\x15'}, {0, 'G'}, {0, '\x17'}, {0, '\x80'}, {1, '\x10'}, {3, '\x41'}, {5, '\x02'}}) {
    std::string bytes = good;
    bytes[static_cast<std::size_t>(at)] = wrong;
    EXPECT_EQ(outcome(bytes), "not_tls") << at;
    EXPECT_EQ(outcome(bytes.substr(0, static_cast<std::size_t>(at) + 1)), "not_tls") << at;
    EXPECT_EQ(outcome(bytes.substr(0, static_cast<std::size_t>(at))), "need_more") << at;
  }
  for (const char* version : {"\x03\x09", "\x02\x01", "\x0f\x01"})  // not every server minds
    EXPECT_EQ(outcome(std::string(good).replace(1, 2, version)), "done") << version;
  EXPECT_EQ(outcome("\x16\x03\x01\x00\x00"s), "not_tls");  // an empty record
  EXPECT_EQ(outcome("\x16\x03\x01\x40\x01"s), "not_tls");  // one above 2^14
}

TEST(ClientHello, MalformedOnesAreRefused) {
  const std::string good = message(server_name("a.b"));
  EXPECT_EQ(outcome(records(good + "x")), "not_tls");
  EXPECT_EQ(outcome(records(message("", ""))), "not_tls");
  EXPECT_EQ(outcome(records(message("", "\x13\x01\x13"))), "not_tls");
  EXPECT_EQ(outcome(records("\x01" + sized(good.substr(4) + "x", 3))), "not_tls");
  for (std::size_t size = 4; size < good.size(); ++size) {
    if (size == good.size() - server_name("a.b").size() - 2) continue;  // a ClientHello without extensions
    EXPECT_EQ(outcome(records("\x01" + sized(good.substr(4, size - 4), 3))), "not_tls") << size;
  }
  EXPECT_EQ(with(server_name("a.b") + server_name("c.d")), "not_tls");
  EXPECT_EQ(with(extension(5, "a") + extension(6, "b") + extension(5, "a")), "not_tls");
  EXPECT_EQ(with(extension(16, "")), "not_tls");
  EXPECT_EQ(with(extension(16, sized("", 2))), "not_tls");
  EXPECT_EQ(with(extension(16, sized(sized("", 1), 2))), "not_tls");
  EXPECT_EQ(with(extension(16, sized("\x05"
                                     "h2",
                                     2))),
            "not_tls");
  EXPECT_EQ(with("\x00\x05\x00"s), "not_tls");
}

TEST(ClientHello, ServerNamesThatAreNoneAreRefused) {
  for (const std::string& name :
       {""s, "1.2.3.4"s, "0x7f.1"s, "::1"s, "a b"s, "a\0.b"s, "a..b"s, "*.b"s, "b\xc3\xbc"s, std::string(254, 'a')})
    EXPECT_EQ(with(server_name(name)), "sni") << name;
  EXPECT_EQ(with(extension(0, "")), "sni");
  EXPECT_EQ(with(extension(0, sized("", 2))), "sni");
  EXPECT_EQ(with(extension(0, sized("\x01"s + sized("a.b", 2), 2))), "sni");
  EXPECT_EQ(with(extension(0, sized("\0"s + sized("a.b", 2) + "\0"s + sized("c.d", 2), 2))), "sni");
  EXPECT_EQ(with(extension(0, sized("\0"s + sized("a.b", 2), 2) + "x")), "sni");
}

TEST(ClientHello, IsBounded) {
  HelloReader reader;
  EXPECT_TRUE(reader.read(records(message(server_name("a.b") + extension(21, std::string(16000, '\0'))))).done());
  reader = {};
  EXPECT_TRUE(reader.read(records(message(server_name("a.b") + extension(21, std::string(17000, '\0'))))).refusal ==
              Refusal::limit);
  reader = {};  // small, but in too many records
  EXPECT_TRUE(reader.read(records(message(extension(21, std::string(4000, '\0'))), 1)).refusal == Refusal::limit);
  reader = {};
  EXPECT_TRUE(reader.read("\x16\x03\x01\x00\x04\x01\xff\xff\xff"s).refusal == Refusal::limit);
}

}  // namespace
}  // namespace caisson::egress
