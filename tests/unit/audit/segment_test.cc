// Logs of several segments: the chain runs through, what was removed or went to stderr is on record, and everything else that
// is missing, added, changed or moved is found.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>

#include "launcher/cli/audit/verify.h"
#include "launcher/common/audit_lines/lines.h"
#include "launcher/logs/store.h"
#include "tests/unit/audit/log_dir.h"

namespace caisson::audit {
namespace {

constexpr Bounds kSmall{2'000, 8'000, false};

// A session of `records` commands, in segments of 2,000 bytes, at most four of them.
Log long_log(const LogDir& dir, int records, Bounds bounds = kSmall, const std::string& name = "s-0123456789abcdef") {
  auto log = Log::create(dir.path(), name, bounds);
  EXPECT_TRUE(log->append(Event::session_request, {{"domain", "bash"}}));
  for (int i = 0; i < records; ++i) EXPECT_TRUE(log->append(Event::exec_request, {{"argv", {"echo", i}}, {"cwd", "/home/gem"}}));
  EXPECT_TRUE(log->append(Event::session_end, {{"reason", "destroyed"}}));
  return std::move(*log);
}

std::vector<std::string> files(const LogDir& dir) { return logs_of(dir.path())->at("s-0123456789abcdef.ndjson"); }
Verification check(const LogDir& dir, const std::optional<Expected>& expected = std::nullopt) {
  return verify_log(files(dir), expected).value();
}
std::string text_of(const std::string& path) { return sys::read_file(path, 64 << 20).value(); }
void overwrite(const std::string& path, std::string_view text) {
  const Fd fd = sys::open(path, O_WRONLY | O_TRUNC).value();
  ASSERT_TRUE(sys::write_all(fd.get(), text));
}

TEST(Segments, TheChainRunsThroughThem) {
  const LogDir dir;
  const Log log = long_log(dir, 12);
  ASSERT_GE(files(dir).size(), 3U);
  EXPECT_TRUE(files(dir)[0].ends_with("s-0123456789abcdef-000001.ndjson"));
  EXPECT_TRUE(files(dir).back().ends_with("s-0123456789abcdef.ndjson"));
  for (const std::string& path : files(dir)) EXPECT_LE(text_of(path).size(), kSmall.segment_bytes);
  const Verification v = check(dir, Expected{log.count(), log.head(), "", "", ""});
  EXPECT_EQ(v.verdict, Verdict::intact) << (v.findings.empty() ? "" : v.findings[0].what);
  EXPECT_EQ(v.records, log.count());
  EXPECT_TRUE(v.expected_checked);
}

TEST(Segments, TheirSumIsBoundedAndWhatWentIsOnRecord) {
  const LogDir dir;
  const Log log = long_log(dir, 200);
  std::uint64_t bytes = 0;
  for (const std::string& path : files(dir)) bytes += text_of(path).size();
  EXPECT_LE(bytes, kSmall.max_bytes);
  EXPECT_EQ(bytes, log.bytes());
  EXPECT_TRUE(text_of(files(dir)[0]).starts_with("{\"seq\":1,")) << "the first one stays";
  const Verification v = check(dir, Expected{log.count(), log.head(), "", "", ""});
  EXPECT_EQ(v.verdict, Verdict::intact) << (v.findings.empty() ? "" : v.findings[0].what);
  EXPECT_GT(v.removed, 100U);
  EXPECT_EQ(v.records + v.removed, log.count());
}

TEST(Segments, EveryFileThatIsMissingIsFound) {
  for (const int records : {12, 200}) {
    const LogDir dir;
    const Log log = long_log(dir, records);
    const Expected expected{log.count(), log.head(), "", "", ""};
    for (const std::string& path : files(dir)) {
      const std::string text = text_of(path);
      ASSERT_TRUE(std::filesystem::remove(path));
      EXPECT_EQ(check(dir).verdict, Verdict::broken) << path << " of " << records;
      EXPECT_EQ(check(dir, expected).verdict, Verdict::broken) << path;
      const Fd fd = sys::open(path, O_WRONLY | O_CREAT, 0600).value();
      ASSERT_TRUE(sys::write_all(fd.get(), text));
    }
    EXPECT_EQ(check(dir, expected).verdict, Verdict::intact);
  }
}

TEST(Segments, EveryByteAndLineOfEveryFileIsUnderTheChain) {
  const LogDir dir;
  const Log log = long_log(dir, 30);
  ASSERT_GT(check(dir).removed, 0U);
  for (const std::string& path : files(dir)) {
    const std::string text = text_of(path);
    for (std::size_t i = 0; i < text.size(); i += 3) {
      std::string bad = text;
      bad[i] = static_cast<char>(bad[i] ^ 1);
      overwrite(path, bad);
      const Verification v = check(dir);
      ASSERT_EQ(v.verdict, Verdict::broken) << path << " byte " << i;
      EXPECT_TRUE(std::ranges::any_of(v.findings, [&](const Finding& f) { return path.ends_with(f.file); }));
    }
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at) + 1;
      std::string removed = text, repeated = text;
      removed.erase(at, end - at);
      repeated.insert(end, text.substr(at, end - at));
      overwrite(path, repeated);
      ASSERT_EQ(check(dir).verdict, Verdict::broken) << path << " line repeated at " << at;
      overwrite(path, removed);
      const Verification v = check(dir, Expected{log.count(), log.head(), "", "", ""});
      ASSERT_EQ(v.verdict, Verdict::broken) << path << " line removed at " << at;
      at = end;
    }
    overwrite(path, text);
  }
  EXPECT_EQ(check(dir).verdict, Verdict::intact);
}

TEST(Segments, SwappedFilesAreFound) {
  const LogDir dir;
  const Log log = long_log(dir, 30);
  const auto all = files(dir);
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      auto moved = all;
      std::swap(moved[i], moved[j]);
      EXPECT_EQ(verify_log(moved)->verdict, Verdict::broken) << i << " and " << j;
    }
}

TEST(Segments, ARecordFitsHoweverLongItIs) {
  const LogDir dir;
  auto log = Log::create(dir.path(), "s-1", bounded(1 << 20, false));
  for (int i = 0; i < 60; ++i)
    ASSERT_TRUE(log->append(Event::exec_request, {{"argv", std::vector<std::string>(9, std::string(8000, 'x'))}}));
  EXPECT_LE(log->bytes(), 1U << 20);
  EXPECT_EQ(verify_log(logs_of(dir.path())->at("s-1.ndjson"))->verdict, Verdict::open);
}

// The launcher's own log.

TEST(Segments, TheLaunchersBootsNameEachOther) {
  const LogDir dir;
  std::vector<std::string> all;
  for (int boot = 0; boot < 3; ++boot) {
    const Tail before = tail_of(sys::open(dir.file("launcher"), O_RDONLY));
    auto log = Log::create_rotated(dir.path(), "launcher", {2'000, 0, true});
    ASSERT_TRUE(log->append(Event::boot, {{"previous", {{"count", before.count}, {"head", before.head}}}}));
    for (int i = 0; i < 12; ++i) ASSERT_TRUE(log->append(Event::agent_start, {{"pid", i}}));
  }
  all = logs_of(dir.path())->at("launcher.ndjson");
  ASSERT_GT(all.size(), 5U);
  const auto whole = verify_log(all);
  EXPECT_EQ(whole->verdict, Verdict::open) << (whole->findings.empty() ? "" : whole->findings[0].what);
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    auto fewer = all;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_EQ(verify_log(fewer)->verdict, Verdict::broken) << all[i];
  }
}

TEST(Tails, SayNumberAndHashWithoutParsing) {
  const LogDir dir;
  const Log log = small_log(dir);
  EXPECT_EQ(tail_of(sys::open(dir.file("s-1"), O_RDONLY)).count, 4U);
  EXPECT_EQ(tail_of(sys::open(dir.file("s-1"), O_RDONLY)).head, log.head());
  overwrite(dir.file("s-1"), dir.read("s-1") + "{\"seq\":5,\"ti");
  EXPECT_EQ(tail_of(sys::open(dir.file("s-1"), O_RDONLY)).head, log.head()) << "a record that was cut is none";
  overwrite(dir.file("s-1"), "junk\n");
  EXPECT_EQ(tail_of(sys::open(dir.file("s-1"), O_RDONLY)).count, 0U);
  EXPECT_EQ(tail_of(sys::open(dir.file("none"), O_RDONLY)).count, 0U);
}

// A disk that is full.

class FullDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0 || ::mount("tmpfs", dir_.path().c_str(), "tmpfs", 0, "size=64k") != 0)
      GTEST_SKIP() << "cannot mount a tmpfs";
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) ::umount2(dir_.path().c_str(), MNT_DETACH);
  }
  void fill() {
    const Fd fd = sys::open(dir_.path() + "/filler", O_WRONLY | O_CREAT | O_APPEND, 0600).value();
    while (sys::write_all(fd.get(), std::string(512, 'x'))) continue;
  }
  LogDir dir_;
  bool mounted_ = false;
};

TEST_F(FullDisk, RecordsGoToStderrAndTheLogSaysHowMany) {
  auto log = Log::create(dir_.path(), "s-0123456789abcdef", bounded(1 << 20, true));
  ASSERT_TRUE(log->append(Event::session_request, {{"domain", "bash"}}));
  fill();
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(log->append(Event::exec_request, {{"argv", {std::string(300, 'y')}}}));
  const std::string said = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(std::filesystem::remove(dir_.path() + "/filler"));
  ASSERT_TRUE(log->append(Event::session_end, {{"reason", "destroyed"}}));  // the end is tried at once
  const Verification v = check(dir_, Expected{log->count(), log->head(), "", "", ""});
  EXPECT_EQ(v.verdict, Verdict::intact) << (v.findings.empty() ? "" : v.findings[0].what);
  EXPECT_GT(v.spilled, 0U);
  EXPECT_EQ(v.records + v.spilled, log->count());
  EXPECT_EQ(static_cast<std::uint64_t>(std::ranges::count(said, '\n')), v.spilled + 1) << said;
  EXPECT_TRUE(said.contains("{\"log\":\"s-0123456789abcdef\",\"record\":{\"seq\":"));
}

TEST_F(FullDisk, ALogThatCannotEvenBeMadeBeginsLater) {
  fill();
  ::testing::internal::CaptureStderr();
  auto log = Log::create(dir_.path(), "s-0123456789abcdef", bounded(1 << 20, true));
  ASSERT_TRUE(log);
  ASSERT_TRUE(log->append(Event::session_request, {{"domain", "bash"}}));
  ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(std::filesystem::remove(dir_.path() + "/filler"));
  ASSERT_TRUE(log->append(Event::session_end, {{"reason", "destroyed"}}));
  const Verification v = check(dir_, Expected{log->count(), log->head(), "", "", ""});
  EXPECT_EQ(v.verdict, Verdict::intact) << (v.findings.empty() ? "" : v.findings[0].what);
  EXPECT_EQ(v.spilled, 1U);
}

// Readers of standard error may stop reading. A pipe that has room for a part of a record says that it is ready.
TEST_F(FullDisk, AStderrThatTakesAPartOfARecordHoldsNobodyUp) {
  auto log = Log::create(dir_.path(), "s-0123456789abcdef", bounded(1 << 20, true));
  ASSERT_TRUE(log->append(Event::session_request, {{"domain", "bash"}}));
  fill();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Fd reader(ends[0]), writer(ends[1]), saved(::dup(STDERR_FILENO));
  ASSERT_TRUE(sys::write_all(writer.get(), std::string(60 * 1024, 'x')));
  ::dup2(writer.get(), STDERR_FILENO);
  ::alarm(120);  // ends the test where it would wait for ever
  const Status done = log->append(Event::exec_request, {{"argv", {std::string(39'000, 'y')}}});
  ::alarm(0);
  ::dup2(saved.get(), STDERR_FILENO);
  EXPECT_FALSE(done);
}

TEST_F(FullDisk, WithoutTheStatementAGapIsFound) {
  auto log = Log::create(dir_.path(), "s-0123456789abcdef", bounded(1 << 20, true));
  ASSERT_TRUE(log->append(Event::session_request, {{"domain", "bash"}}));
  fill();
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(log->append(Event::exec_request, {{"argv", {std::string(300, 'y')}}}));
  ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(std::filesystem::remove(dir_.path() + "/filler"));
  ASSERT_TRUE(log->append(Event::session_end, {}));
  const auto all = files(dir_);
  ASSERT_EQ(all.size(), 2U);
  std::string first = text_of(all[0]);
  first.resize(first.find('\n') + 1);  // one record more is missing than was said
  overwrite(all[0], first);
  EXPECT_EQ(check(dir_).verdict, Verdict::broken);
  EXPECT_EQ(verify_log({all[1]})->verdict, Verdict::broken);
}

}  // namespace
}  // namespace caisson::audit
