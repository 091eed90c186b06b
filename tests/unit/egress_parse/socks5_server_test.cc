#include "launcher/egress/parse/socks5_server.h"

#include <gtest/gtest.h>

#include "launcher/common/base/word.h"
#include "tests/unit/egress_parse/split.h"

namespace caisson::egress {
namespace {

using namespace std::string_literals;

Outcome method(std::string_view bytes, SocksMethod& chosen) {
  return in_every_cut(bytes, [&] { return [&](std::string_view part) { return read_socks_method(part, chosen); }; });
}
Outcome login(std::string_view bytes, bool& taken) {
  return in_every_cut(bytes, [&] { return [&](std::string_view part) { return read_socks_login(part, taken); }; });
}
Outcome reply(std::string_view bytes, std::uint8_t& said) {
  return in_every_cut(bytes, [&] { return [&](std::string_view part) { return read_socks_reply(part, said); }; });
}

TEST(Socks5Server, Method) {
  SocksMethod chosen{};
  EXPECT_EQ(method("\x05\x00more"s, chosen).size, 2U);
  EXPECT_TRUE(chosen == SocksMethod::none);
  EXPECT_TRUE(method("\x05\x02"s, chosen).done() && chosen == SocksMethod::password);
  EXPECT_TRUE(method("\x05\xff"s, chosen).done() && chosen == SocksMethod::refused);
  EXPECT_TRUE(method("\x05\x01"s, chosen).refused());  // GSSAPI, which nobody offered
  EXPECT_TRUE(method("HTTP/1.1 400 Bad Request\r\n", chosen).refused());
  EXPECT_TRUE(method("\x05"s, chosen).step == Outcome::Step::need_more);
}

TEST(Socks5Server, Login) {
  bool taken = false;
  EXPECT_TRUE(login("\x01\x00"s, taken).done() && taken);
  EXPECT_TRUE(login("\x01\x01"s, taken).done() && !taken);
  EXPECT_TRUE(login("\x01\xff"s, taken).done() && !taken);
  EXPECT_TRUE(login("\x05\x00"s, taken).refused());
}

TEST(Socks5Server, Reply) {
  std::uint8_t said = 99;
  EXPECT_EQ(reply("\x05\x00\x00\x01\x01\x02\x03\x04\x00\x50more"s, said).size, 10U);
  EXPECT_EQ(said, 0);
  EXPECT_EQ(reply("\x05\x00\x00\x03\x04name\x00\x50more"s, said).size, 11U);
  EXPECT_EQ(reply("\x05\x00\x00\x03\x00\x00\x50more"s, said).size, 7U);
  EXPECT_EQ(reply("\x05\x00\x00\x04"s + std::string(18, 'x') + "more", said).size, 22U);
  EXPECT_TRUE(reply("\x05\x00\x00\x03\xff\x00"s, said).step == Outcome::Step::need_more);
  EXPECT_TRUE(reply("\x05\x02"s, said).done() && said == 2);  // many close behind it
  EXPECT_TRUE(reply("\x05\xee\x00\x01"s, said).done() && said == 0xee);
  EXPECT_TRUE(reply("\x05\x00\x01\x01\x00"s, said).refused());
  EXPECT_TRUE(reply("\x05\x00\x00\x02\x00"s, said).refused());
  EXPECT_TRUE(reply("\x04\x5a"s, said).refused());
}

}  // namespace
}  // namespace caisson::egress
