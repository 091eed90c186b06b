#include "agent/services/desktop/watcher_filter.h"

#include <gtest/gtest.h>

namespace caisson::services {
namespace {

using namespace std::string_literals;

const std::string kHello = "RFB 003.008\n\1\1";
// SetEncodings with the extended clipboard, and its capability to announce.
const std::string kManners = "\2\0\0\1\xc0\xa1\xe5\xce"s + "\6\0\0\0\xff\xff\xff\xf8\x09\0\0\1\0\0\0\0"s;
const std::string kRequest = "\3\0\0\0\0\0\5\0\4\0"s;

std::string passed(WatcherFilter& filter, const std::string& bytes) {
  auto out = filter.pass(bytes);
  EXPECT_TRUE(out) << (out ? "" : out.error().what);
  return out ? *out : "";
}

WatcherFilter greeted() {
  WatcherFilter filter;
  EXPECT_EQ(passed(filter, kHello), kHello + kManners);
  return filter;
}

TEST(WatcherFilter, TheGreetingPassesWithoutTheWishToBeAlone) {
  WatcherFilter filter;
  EXPECT_EQ(passed(filter, "RFB 003.008\n\1\0"s), kHello + kManners);
}

TEST(WatcherFilter, RequestsForPicturesPass) {
  WatcherFilter filter = greeted();
  const std::string format = "\0\0\0\0"s + std::string(16, '\7'), updates = "\x96\1\0\0\0\0\5\0\4\0"s,
                    fence = "\xf8\0\0\0\x80\0\0\0\4abcd"s;
  for (const std::string& one : {format, kRequest, updates, fence}) EXPECT_EQ(passed(filter, one), one);
}

struct Dropped {
  const char* name;
  std::string bytes;
};
class WatcherDrops : public testing::TestWithParam<Dropped> {};

TEST_P(WatcherDrops, AndWhatFollowsIsUnderstood) {
  WatcherFilter filter = greeted();
  EXPECT_EQ(passed(filter, GetParam().bytes + kRequest), kRequest);
}

TEST_P(WatcherDrops, InPiecesOfOneByteToo) {
  WatcherFilter filter = greeted();
  std::string out;
  for (const char c : GetParam().bytes + kRequest) out += passed(filter, std::string(1, c));
  EXPECT_EQ(out, kRequest);
}

INSTANTIATE_TEST_SUITE_P(
    Messages, WatcherDrops,
    testing::Values(Dropped{"key", "\4\1\0\0\0\0\0a"s}, Dropped{"pointer", "\5\1\0\x10\0\x10"s},
                    // Bit 7 of the mask makes it longer, where the encoding for it was agreed on; here it never is.
                    Dropped{"pointer_with_eight_buttons", "\5\x80\0\x10\0\x10"s},
                    Dropped{"cut_text", "\6\0\0\0\0\0\0\4\4\1\0\0"s},
                    Dropped{"extended_cut_text", "\6\0\0\0\xff\xff\xff\xfc\x10\0\0\1"s},
                    Dropped{"desktop_size", "\xfb\0\5\0\4\0\1\0"s + std::string(16, '\4')},
                    Dropped{"desktop_size_without_screens", "\xfb\0\5\0\4\0\0\0"s},
                    Dropped{"qemu_key", "\xff\0\0\1\0\0\0a\0\0\0\x1e"s}, Dropped{"xvp", "\xfa\0\1\2"s}),
    [](const auto& test) { return test.param.name; });

TEST(WatcherFilter, EncodingsHaveTheClipboardsMannersAndNoOtherPointer) {
  WatcherFilter filter = greeted();
  EXPECT_EQ(passed(filter, "\2\0\0\2\0\0\0\7\xff\xff\xfe\xc4"s + kRequest),
            "\2\0\0\3\xc0\xa1\xe5\xce\0\0\0\7\xc0\xa1\xe5\xce"s + kRequest);
  EXPECT_EQ(passed(filter, "\2\0\0\0"s + kRequest), "\2\0\0\1\xc0\xa1\xe5\xce"s + kRequest);
}

TEST(WatcherFilter, ALongCutTextIsDroppedAsItComes) {
  WatcherFilter filter = greeted();
  EXPECT_EQ(passed(filter, "\6\0\0\0\x7f\xff\xff\xff"s), "");
  std::uint64_t left = 0x7fffffff;
  for (const std::string piece(1 << 20, '\4'); left > piece.size(); left -= piece.size()) EXPECT_EQ(passed(filter, piece), "");
  EXPECT_EQ(passed(filter, std::string(left, '\4') + kRequest), kRequest);
}

struct Refused {
  const char* name;
  std::string bytes, why;
};
class WatcherRefuses : public testing::TestWithParam<Refused> {};

TEST_P(WatcherRefuses, AndNothingPassesFromThenOn) {
  WatcherFilter filter;
  const auto out = filter.pass(GetParam().bytes);
  ASSERT_FALSE(out);
  EXPECT_TRUE(out.error().what.contains(GetParam().why)) << out.error().what;
  EXPECT_FALSE(filter.pass(kRequest));
}

INSTANTIATE_TEST_SUITE_P(Bytes, WatcherRefuses,
                         testing::Values(Refused{"http", "GET / HTTP/1.1\r\n", "3.8"}, Refused{"old", "RFB 003.003\n", "3.8"},
                                         Refused{"security", "RFB 003.008\n\2", "security"},
                                         Refused{"type", kHello + "\x63", "99"},
                                         Refused{"fence", kHello + "\xf8\0\0\0\0\0\0\0\x41"s, "fence"},
                                         Refused{"encodings", kHello + "\2\0\xff\xff"s, "encodings"},
                                         Refused{"qemu", kHello + "\xff\1\0\1"s + std::string(8, '\0'), "QEMU"}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace caisson::services
