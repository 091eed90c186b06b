// The agent has one thread: what it makes of a session's output must grow with the output, and not with its square.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <functional>

#include "agent/services/code/code_report.h"
#include "agent/services/common/text.h"
#include "agent/services/notebook/kernel_outputs.h"
#include "agent/services/program/fd_stream.h"
#include "agent/services/shell/markers.h"
#include "launcher/common/base/sys.h"

namespace caisson::services {
namespace {

double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

constexpr double kMost = 9;

// Processor time for four times as much, in that of once as much: 4 where the work is linear, 16 where it is quadratic. Each is
// the least of several; a busy machine, whose caches others share, is given more of them, for the least only falls.
double growth(std::size_t n, const std::function<void(std::size_t)>& work) {
  double once = 1e9, fourfold = 1e9;
  const auto measure = [&work](std::size_t size, double& least) {
    const double before = thread_seconds();
    work(size);
    least = std::min(least, thread_seconds() - before);
  };
  for (int i = 0; i < 3 || (i < 20 && fourfold >= kMost * once); ++i) {
    measure(n, once);
    measure(4 * n, fourfold);
  }
  return fourfold / once;
}

const std::string kNonce(32, 'a');
std::string mark(std::size_t size) { return "\x1e" + kNonce + " " + std::to_string(size) + "\n"; }

std::string repeated(std::string_view piece, std::size_t bytes) {
  std::string out;
  while (out.size() < bytes) out += piece;
  return out;
}

std::shared_ptr<OutputBudget> plenty() { return std::make_shared<OutputBudget>(1u << 30); }

TEST(Flaw09Linear, ForgedReportMarksAreReadOnceEach) {
  // Each claims more than there is, and then all that follows it.
  EXPECT_LT(growth(4000, [](std::size_t n) { EXPECT_FALSE(find_report(repeated(mark(8'000'000) + "{", 40 * n), kNonce)); }),
            kMost);
  EXPECT_LT(growth(2000,
                   [](std::size_t n) {
                     const std::string bytes = repeated(mark(50 * n) + "{\"a\":", 50 * n) + std::string(50 * n, '}');
                     EXPECT_FALSE(find_report(bytes, kNonce));
                   }),
            kMost);
}

TEST(Flaw09Linear, NoReportReachesOverAMark) {
  // The outer one's JSON would be whole, were a raw RS allowed in a string; the inner one's is.
  const std::string inner = mark(2) + "{}";
  const std::string outer = "{\"a\":\"" + inner + "\"}";
  const auto found = find_report(mark(outer.size()) + outer, kNonce);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->value, json::Value::object());
}

TEST(Flaw09Linear, AStreamThatIsAskedForEachPieceIsReadOnce) {
  // One mark that claims more than ever comes, and then a little at a time.
  EXPECT_LT(growth(4000,
                   [](std::size_t n) {
                     OutputBuffer buffer(plenty(), 1 << 24);
                     ReportSearch search(buffer, kNonce, 0);
                     buffer.append(mark(8'000'000));
                     for (std::size_t i = 0; i < n; ++i) {
                       buffer.append("sixteen bytes of");
                       EXPECT_FALSE(search.found());
                     }
                   }),
            kMost);
  // As many marks, each of which claims what is there.
  EXPECT_LT(growth(2000,
                   [](std::size_t n) {
                     OutputBuffer buffer(plenty(), 1 << 24);
                     ReportSearch search(buffer, kNonce, 0);
                     for (std::size_t i = 0; i < n; ++i) {
                       buffer.append(mark(n * 10) + "{");
                       EXPECT_FALSE(search.found());
                     }
                     buffer.append(std::string(n * 10, '}'));
                     EXPECT_FALSE(search.found());
                   }),
            kMost);
  // Nothing but the first byte of a mark.
  EXPECT_LT(growth(20'000,
                   [](std::size_t n) {
                     OutputBuffer buffer(plenty(), 1 << 24);
                     ReportSearch search(buffer, kNonce, 0);
                     buffer.append(std::string(n, '\x1e'));
                     EXPECT_FALSE(search.found());
                   }),
            kMost);
}

TEST(Flaw09Linear, AReportIsFoundHoweverItComesAndBehindForgedOnes) {
  const std::string report = "{\"exit_code\":3}";
  for (const std::string& before : {std::string(), std::string("text"), mark(8'000'000), mark(3) + "{x}",
                                    mark(2) + "[]" + mark(1), std::string("\x1e\x1e")}) {
    const std::string bytes = before + mark(report.size()) + report;
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, bytes.size()}) {
      OutputBuffer buffer(plenty(), 1 << 20);
      ReportSearch search(buffer, kNonce, 0);
      for (std::size_t at = 0; at < bytes.size(); at += step) {
        EXPECT_FALSE(search.found()) << before;
        buffer.append(std::string_view(bytes).substr(at, step));
      }
      ASSERT_TRUE(search.found()) << before;
      EXPECT_EQ(search.value(), json::Value({{"exit_code", 3}}));
      EXPECT_EQ(search.begin(), before.size());
      EXPECT_EQ(search.end(), bytes.size());
    }
  }
  // Found too when the oldest bytes, and a mark with them, were dropped.
  OutputBuffer small(plenty(), 64 * 1024);
  ReportSearch search(small, kNonce, 0);
  small.append(mark(1'000'000));
  EXPECT_FALSE(search.found());
  small.append(std::string(200'000, 'x'));
  EXPECT_FALSE(search.found());
  small.append(mark(report.size()) + report);
  ASSERT_TRUE(search.found());
  EXPECT_EQ(search.begin(), mark(1'000'000).size() + 200'000);
}

TEST(Flaw09Linear, TerminalTextIsStrippedInOnePass) {
  for (const char* piece : {"\r", "\r\r\x1b", "\x1b]", "\x1b[0", "\x1bP\x1b", "\x1b   ", "\x1b]x\r"})
    EXPECT_LT(growth(100'000, [piece](std::size_t n) { (void)strip_terminal(repeated(piece, n)); }), kMost) << piece;
  EXPECT_EQ(strip_terminal("a\r\r\rb\r\r\nc\r"), "a\r\r\rb\nc\r");
}

TEST(Flaw09Linear, ShellMarkersAreLookedForOnce) {
  for (const char* piece : {"\x1b]7717;", "\x1b", "\x1b]7717;P;\a", "\x1b]7717;P;"}) {
    const auto whole = [piece](std::size_t n) {
      MarkerParser parser;
      parser.expect(kNonce);
      (void)parser.feed(repeated(piece, n));
    };
    EXPECT_LT(growth(100'000, whole), kMost) << piece;
    const auto in_pieces = [piece](std::size_t n) {
      MarkerParser parser;
      parser.expect(kNonce);
      std::size_t given = 0, got = 0;
      for (; given < n; given += std::string_view(piece).size())
        for (const StreamItem& item : parser.feed(piece)) got += std::get<std::string>(item).size();
      EXPECT_EQ(got + parser.take_rest().size(), given);
    };
    EXPECT_LT(growth(50'000, in_pieces), kMost) << piece;
  }
}

TEST(Flaw09Linear, AnUpdateOfManyDisplaysCostsItsOwnBytes) {
  const json::Value shown = {{"event", "output"}, {"display", "d"}}, update = {{"event", "update"}, {"display", "d"}};
  const auto body = [](const std::string& text) {
    return json::dump({{"output_type", "display_data"}, {"data", {{"text/plain", text}}}, {"metadata", json::Value::object()}});
  };
  EXPECT_LT(growth(300,
                   [&](std::size_t n) {
                     KernelOutputs outputs(1 << 30, 1 << 20);
                     for (std::size_t i = 0; i < n; ++i) outputs.take(shown, body("one"));
                     for (std::size_t i = 0; i < n; ++i) outputs.take(update, body("two"));
                     const auto all = outputs.release();
                     EXPECT_EQ(all.size(), n);
                     EXPECT_EQ((*all.back().data)["text/plain"], "two");
                   }),
            kMost);
  KernelOutputs outputs(1000, 10);
  outputs.take(shown, body("one"));
  outputs.take(update, body("two"));
  outputs.take(shown, body("three"));
  const auto all = outputs.release();
  EXPECT_EQ((*all[0].data)["text/plain"], "two");
  EXPECT_EQ((*all[1].data)["text/plain"], "three") << "an update is of what was there";
}

TEST(Flaw09Linear, InputForASlowReaderIsNotMovedForEachOfItsReads) {
  EXPECT_LT(growth(4 << 20,
                   [](std::size_t n) {
                     int ends[2];
                     ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
                     const Fd from(ends[0]);
                     asio::io_context io(1);
                     WriteQueue queue(io.get_executor(), Fd(ends[1]));
                     ASSERT_TRUE(queue.push(std::string(n, 'x'), n));
                     std::array<char, 4096> page;
                     std::size_t got = 0;
                     while (got < n) {
                       const ssize_t some = ::read(from.get(), page.data(), page.size());
                       ASSERT_GT(some, 0);
                       got += static_cast<std::size_t>(some);
                       (void)queue.flush();
                     }
                     EXPECT_TRUE(queue.empty());
                   }),
            kMost);
}

TEST(Flaw09Linear, ReadingABufferFromAnOffsetStartsThere) {
  OutputBuffer buffer(plenty(), 300'000);
  std::string all;
  for (int i = 0; i < 60'000; ++i) {
    const std::string piece = std::to_string(i) + " ";
    buffer.append(piece);
    all += piece;
    const std::uint64_t from = buffer.begin() + (buffer.end() - buffer.begin()) * static_cast<unsigned>(i % 17) / 16;
    if (from < buffer.end()) EXPECT_EQ(buffer.read(from, 20), all.substr(static_cast<std::size_t>(from), 20)) << i;
  }
  EXPECT_TRUE(buffer.dropped());
}

}  // namespace
}  // namespace caisson::services
