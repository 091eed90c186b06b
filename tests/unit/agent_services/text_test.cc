// Pure parts: output buffers, text, quoting, markers.
#include <gtest/gtest.h>

#include "agent/services/common/text.h"
#include "agent/services/shell/markers.h"
#include "agent/services/shell/shell_script.h"
#include "agent/services/shell/shell_words.h"

namespace caisson::services {
namespace {

std::shared_ptr<OutputBudget> plenty() { return std::make_shared<OutputBudget>(1u << 30); }

TEST(Text, WhatIsBrokenIsSaidAsPythonsCodecSaysIt) {
  struct Case {
    std::string_view bytes;
    std::size_t at, size;
    std::string_view reason;
  };
  constexpr std::string_view kStart = "invalid start byte", kNext = "invalid continuation byte", kEnd = "unexpected end of data";
  for (const Case& c : {Case{"ab\xff", 2, 1, kStart}, Case{"\x80", 0, 1, kStart}, Case{"\xc0\x80", 0, 1, kStart},
                        Case{"\xf5\x80\x80\x80", 0, 1, kStart}, Case{"\xc3(", 0, 1, kNext}, Case{"\xe0\x80\x80", 0, 1, kNext},
                        Case{"\xed\xa0\x80", 0, 1, kNext}, Case{"\xf4\x90\x80\x80", 0, 1, kNext}, Case{"\xe2\x82(", 0, 2, kNext},
                        Case{"\xf0\x9f\x98(", 0, 3, kNext}, Case{"\xc3", 0, 1, kEnd}, Case{"\xe2\x82", 0, 2, kEnd},
                        Case{"\xc3\xa4\xf0\x9f\x98", 2, 3, kEnd}}) {
    const auto broken = first_broken(c.bytes);
    ASSERT_TRUE(broken) << c.bytes;
    EXPECT_EQ(broken->at, c.at);
    EXPECT_EQ(broken->size, c.size);
    EXPECT_EQ(broken->reason, c.reason);
  }
  EXPECT_FALSE(first_broken("") || first_broken("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"));
}

TEST(OutputBuffer, OffsetsAreAbsoluteBytes) {
  OutputBuffer b(plenty(), 1 << 20);
  b.append("hello ");
  b.append("world");
  EXPECT_EQ(b.end(), 11u);
  EXPECT_EQ(b.read(6), "world");
  EXPECT_EQ(b.read(3, 4), "lo w");
  EXPECT_EQ(b.read(11), "");
  EXPECT_EQ(b.read(99), "");
}

TEST(OutputBuffer, DropsTheOldestBeyondItsCapAndKeepsOffsetsRight) {
  const auto budget = plenty();
  OutputBuffer b(budget, 100'000);
  std::string all;
  for (int i = 0; i < 30'000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    all += line;
    b.append(line);
  }
  EXPECT_EQ(b.end(), all.size());
  EXPECT_LE(b.end() - b.begin(), 100'000u);
  EXPECT_EQ(b.read(0), all.substr(b.begin()));
  EXPECT_EQ(b.head(), std::string_view(all).substr(0, OutputBuffer::kHeadBytes));
  EXPECT_EQ(budget->used(), b.end() - b.begin());
}

TEST(OutputBudget, TheLargestBufferPays) {
  const auto budget = std::make_shared<OutputBudget>(200'000);
  OutputBuffer small(budget, 1 << 20), flood(budget, 1 << 20);
  small.append("keep me");
  for (int i = 0; i < 100; ++i) flood.append(std::string(10'000, 'x'));
  EXPECT_LE(budget->used(), 200'000u);
  EXPECT_EQ(small.read(0), "keep me");
  EXPECT_EQ(flood.end(), 1'000'000u);
  EXPECT_EQ(budget->used(), 7 + flood.end() - flood.begin());
}

// Two workspaces and room for less than both want: the one that floods loses its oldest, the other nothing.
TEST(Flaw15Output, TheWorkspaceThatHoldsMostPays) {
  const auto all = std::make_shared<http::Budget>(400'000);
  const auto quiet = std::make_shared<OutputBudget>(400'000, all), loud = std::make_shared<OutputBudget>(400'000, all);
  OutputBuffer kept(quiet, 1 << 20);
  kept.append(std::string(50'000, 'k'));
  {
    OutputBuffer flood(loud, 1 << 20), second(loud, 1 << 20);
    for (int i = 0; i < 200; ++i) {
      flood.append(std::string(10'000, 'f'));
      second.append(std::string(10'000, 's'));
      ASSERT_LE(all->used(), 400'000u);
    }
    kept.append(std::string(50'000, 'm'));
    EXPECT_EQ(kept.begin(), 0u) << "what was written first is there";
    EXPECT_LE(all->used(), 400'000u);
  }
  EXPECT_EQ(all->used(), 100'000u + OutputBuffer::kHeadBytes) << "the excerpt of its beginning counts as well";
}

TEST(Flaw15Output, TextsAndInputCountAndAreRefusedWhenOutputCannotMakeRoom) {
  const auto all = std::make_shared<http::Budget>(200'000);
  const auto budget = std::make_shared<OutputBudget>(200'000, all);
  OutputBuffer output(budget, 1 << 20);
  output.append(std::string(150'000, 'x'));
  auto text = budget->share_of(180'000);
  ASSERT_TRUE(text) << "output's older half goes first";
  EXPECT_LE(output.end() - output.begin(), 20'000u);
  EXPECT_FALSE(budget->share_of(30'000));
  text->release();
  EXPECT_TRUE(budget->share_of(30'000));
}

TEST(OutputBudget, IsGivenBackByABufferThatEnds) {
  const auto budget = plenty();
  {
    OutputBuffer b(budget, 1000);
    b.append("12345");
  }
  EXPECT_EQ(budget->used(), 0u);
}

TEST(Utf8, InvalidBytesAreReplacedAndValidOnesKept) {
  EXPECT_EQ(to_utf8("a\xC3\xA9\xE2\x82\xACz"), "a\xC3\xA9\xE2\x82\xACz");
  EXPECT_EQ(to_utf8("a\xFFz"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(to_utf8("\xE2\x82"), "\xEF\xBF\xBD") << "one for a cut sequence";
  EXPECT_EQ(to_utf8("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD") << "a surrogate";
  EXPECT_EQ(to_utf8("\xC0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD") << "an overlong form";
}

TEST(Utf8, IncompleteTailIsOnlyAValidStart) {
  EXPECT_EQ(incomplete_tail("abc"), 0u);
  EXPECT_EQ(incomplete_tail("a\xC3"), 1u);
  EXPECT_EQ(incomplete_tail("a\xE2\x82"), 2u);
  EXPECT_EQ(incomplete_tail("a\xF0\x9F\x98"), 3u);
  EXPECT_EQ(incomplete_tail("a\xF0\x9F\x98\x80"), 0u);
  EXPECT_EQ(incomplete_tail("a\xFF"), 0u);
  EXPECT_EQ(incomplete_tail("\x80\x80\x80\x80"), 0u);
}

TEST(CutMiddle, CountsCharactersNotBytes) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "\xC3\xA9";
  EXPECT_EQ(cut_middle(text, 100), text);
  EXPECT_EQ(cut_middle(text, 0), text);
  text += std::string(1000, 'x');
  const std::string cut = cut_middle(text, 300);
  EXPECT_EQ(count_characters(cut), 300u);
  EXPECT_EQ(to_utf8(cut), cut) << "no character is split";
  EXPECT_TRUE(cut.starts_with("\xC3\xA9") && cut.ends_with("x"));
}

TEST(CutMiddle, KeepsBothEndsWhenTheLimitIsTiny) {
  const std::string cut = cut_middle("abcdefghij", 4);
  EXPECT_TRUE(cut.starts_with("ab") && cut.ends_with("ij")) << cut;
}

TEST(StripTerminal, RemovesControlSequencesAndCarriageReturns) {
  EXPECT_EQ(strip_terminal("\x1b[1;31mred\x1b[0m\r\nx"), "red\nx");
  EXPECT_EQ(strip_terminal("\x1b]0;title\atext\x1b]8;;u\x1b\\link"), "textlink");
  EXPECT_EQ(strip_terminal("a\x1b(B\x1b"
                           "7b"),
            "ab");
  EXPECT_EQ(strip_terminal("a\r\r\nb\rc"), "a\nb\rc");
  EXPECT_EQ(strip_terminal("\x1b]never ends"), "never ends");
  EXPECT_EQ(strip_terminal(std::string("a\0b\a\0", 5)), std::string("a\0b\0", 4)) << "NUL separates names";
}

std::string shown(const std::vector<StreamItem>& items) {
  std::string out;
  for (const StreamItem& item : items) {
    if (const auto* text = std::get_if<std::string>(&item)) out += *text;
    else out += "<" + std::to_string(std::get<Marker>(item).number) + std::get<Marker>(item).path + ">";
  }
  return out;
}

TEST(Markers, AreFoundHoweverTheStreamIsCut) {
  const std::string stream = "out\x1b[0m\x1b]7717;P;n0nce;42;/a;b\aafter";
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    MarkerParser parser;
    parser.expect("n0nce");
    std::string seen = shown(parser.feed(std::string_view(stream).substr(0, cut)));
    seen += shown(parser.feed(std::string_view(stream).substr(cut)));
    EXPECT_EQ(seen, "out\x1b[0m<42/a;b>after") << cut;
  }
}

TEST(Markers, WrongNonceOrShapeIsPlainOutput) {
  for (const std::string stream : {"\x1b]7717;P;other;0;/\a", "\x1b]7717;Q;n;0;/\a", "\x1b]7717;P;n;x;/\a", "\x1b]7717;P;n\a"}) {
    MarkerParser parser;
    parser.expect("n");
    EXPECT_EQ(shown(parser.feed(stream)), stream);
  }
}

TEST(Markers, AnEndlessOneIsNotHeldBack) {
  MarkerParser parser;
  parser.expect("n");
  const std::string stream = "\x1b]7717;P;n;0;" + std::string(100'000, 'x');
  EXPECT_EQ(shown(parser.feed(stream)), stream);
}

TEST(Markers, AnEmptyNonceMatchesNothing) {
  MarkerParser parser;
  EXPECT_EQ(shown(parser.feed("\x1b]7717;P;;0;/\a")), "\x1b]7717;P;;0;/\a");
}

TEST(ShellWords, QuotesEverythingThatATerminalOrBashWouldTake) {
  EXPECT_EQ(ansi_quote("a b"), "$'a b'");
  EXPECT_EQ(ansi_quote("'\\\n\t!\x7f\xC3"), "$'\\x27\\x5c\\n\\x09\\x21\\x7f\\xc3'");
  EXPECT_EQ(single_quote("it's"), "'it'\\''s'");
}

TEST(ShellScript, LinesFitATerminalsInputLine) {
  FeedParams feed{.nonce = "n", .command = std::string(50'000, '\x01'), .exec_dir = std::string(4000, 'd')};
  for (const std::string& lines :
       {feed_lines(feed), bootstrap_lines({.nonce = "n", .cwd = std::string(4000, '/'), .user = "gem"})}) {
    std::size_t start = 0;
    for (std::size_t end; (end = lines.find('\n', start)) != std::string::npos; start = end + 1) EXPECT_LT(end - start, 4095u);
    for (const char c : lines) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7F));
  }
}

}  // namespace
}  // namespace caisson::services
