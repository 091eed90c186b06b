#include "agent/services/desktop/key_scanner.h"

#include <gtest/gtest.h>

namespace caisson::services {
namespace {

using namespace std::string_literals;
using Keys = std::vector<std::uint32_t>;

const std::string kHello = "RFB 003.008\n\1\1", kEncodings = "\2\0\0\2\0\0\0\7\xff\xff\xfe\xc4"s;  // the second: long pointers

std::string key(std::uint32_t keysym, bool down = true) {
  std::string out{4, static_cast<char>(down), 0, 0};
  for (const int shift : {24, 16, 8, 0}) out.push_back(static_cast<char>(keysym >> shift & 0xff));
  return out;
}

Keys scanned(const std::string& bytes, std::size_t piece = std::string::npos) {
  KeyScanner scanner;
  Keys out;
  for (std::size_t at = 0; at < bytes.size(); at += std::min(piece, bytes.size() - at))
    for (const std::uint32_t one : scanner.scan(std::string_view(bytes).substr(at, piece))) out.push_back(one);
  return out;
}

TEST(KeyScanner, LettersThatNotEveryLayoutHasAreNamedWhenTheyArePressed) {
  const std::string bytes = kHello + key('a') + key(0xfc) + key(0xfc, false) + key(0xff0d) + key(0x7e1) + key(0x1000416) +
                            "\xff\0\0\1\0\0\0\xdf\0\0\0\x1e"s;  // QEMU's message for a key
  EXPECT_EQ(scanned(bytes), (Keys{0xfc, 0x7e1, 0x1000416, 0xdf}));
  for (std::size_t piece = 1; piece < 20; ++piece) EXPECT_EQ(scanned(bytes, piece), scanned(bytes)) << piece;
}

struct Between {
  const char* name;
  std::string bytes;
};
class ScannerSkips : public testing::TestWithParam<Between> {};

TEST_P(ScannerSkips, AndWhatFollowsIsUnderstood) {
  const std::string bytes = kHello + GetParam().bytes + key(0xe4);
  EXPECT_EQ(scanned(bytes), Keys{0xe4});
  EXPECT_EQ(scanned(bytes, 1), Keys{0xe4});
}

INSTANTIATE_TEST_SUITE_P(Messages, ScannerSkips,
                         testing::Values(Between{"format", "\0\0\0\0"s + std::string(16, '\4')}, Between{"encodings", kEncodings},
                                         Between{"no_encodings", "\2\0\0\0"s}, Between{"request", "\3\0\0\0\0\0\5\0\4\0"s},
                                         Between{"pointer", "\5\1\0\x10\0\x10"s}, Between{"eight_buttons", "\5\x80\0\x10\0\x10"s},
                                         Between{"long_pointer", kEncodings + "\5\x80\0\x10\0\x10\1"s},
                                         Between{"short_pointer_again", kEncodings + "\2\0\0\1\0\0\0\7\5\x80\0\x10\0\x10"s},
                                         Between{"cut_text", "\6\0\0\0\0\0\0\4\4\1\0\0"s},
                                         Between{"extended_cut_text", "\6\0\0\0\xff\xff\xff\xfc\x10\0\0\1"s},
                                         Between{"continuous_updates", "\x96\1\0\0\0\0\5\0\4\0"s},
                                         Between{"fence", "\xf8\0\0\0\x80\0\0\0\4abcd"s},
                                         Between{"desktop_size", "\xfb\0\5\0\4\0\1\0"s + std::string(16, '\4')},
                                         Between{"xvp", "\xfa\0\1\2"s}),
                         [](const auto& test) { return test.param.name; });

TEST(KeyScanner, WhatIsNotUnderstoodEndsTheLooking) {
  for (const std::string& bytes :
       {"RFB 003.003\n\1"s, "RFB 003.008\n\2"s, kHello + "\x63"s, kHello + "\xff\1" + std::string(10, 0)}) {
    KeyScanner scanner;
    EXPECT_EQ(scanner.scan(bytes), Keys{});
    EXPECT_EQ(scanner.scan(key(0xe4)), Keys{});
  }
}

TEST(KeyScanner, APieceNamesSoManyKeysAtMost) {
  std::string bytes = kHello;
  for (std::uint32_t i = 0; i < 1000; ++i) bytes += key(0x1004e00 + i);
  EXPECT_EQ(scanned(bytes).size(), KeyScanner::kMostKeys);
}

}  // namespace
}  // namespace caisson::services
