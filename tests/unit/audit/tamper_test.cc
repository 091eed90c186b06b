// Each kind of tampering with a finished log is found. Property tests: over every byte, every line, every cut.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <vector>

#include "launcher/cli/audit/verify.h"
#include "launcher/common/base/hash.h"
#include "tests/unit/audit/log_dir.h"

namespace caisson::audit {
namespace {

class Tamper : public ::testing::Test {
 protected:
  void SetUp() override {
    const Log log = small_log(dir_);
    text_ = dir_.read("s-1");
    expected_ = {log.count(), log.head()};
    for (std::size_t at = 0; at < text_.size();) {
      const std::size_t end = text_.find('\n', at) + 1;
      lines_.push_back(text_.substr(at, end - at));
      at = end;
    }
  }
  Verification check(std::string_view content, bool with_index = false) {
    // In memory: the properties below verify tens of thousands of files.
    EXPECT_EQ(::ftruncate(memory_.get(), 0), 0);
    EXPECT_EQ(::pwrite(memory_.get(), content.data(), content.size(), 0), static_cast<ssize_t>(content.size()));
    const std::string path = "/proc/self/fd/" + std::to_string(memory_.get());
    return verify_file(path, with_index ? std::optional(expected_) : std::nullopt).value();
  }
  static std::string join(const std::vector<std::string>& lines) {
    std::string out;
    for (const std::string& line : lines) out += line;
    return out;
  }

  LogDir dir_;
  Fd memory_{::memfd_create("log", MFD_CLOEXEC)};
  std::string text_;
  std::vector<std::string> lines_;
  Expected expected_;
};

TEST_F(Tamper, AnUntouchedLogIsIntact) {
  const Verification v = check(text_, true);
  EXPECT_EQ(v.verdict, Verdict::intact);
  EXPECT_EQ(v.records, 4U);
  EXPECT_EQ(v.head, expected_.head);
  EXPECT_TRUE(v.expected_checked);
}

TEST_F(Tamper, EveryFlippedBitIsFound) {
  for (std::size_t i = 0; i < text_.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = text_;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      ASSERT_EQ(check(bad).verdict, Verdict::broken) << "byte " << i << " bit " << bit;
    }
  }
}

TEST_F(Tamper, EveryRemovedOrAddedByteIsFound) {
  for (std::size_t i = 0; i <= text_.size(); ++i) {
    for (const char c : {' ', '\n', 'x', '\0'}) {
      std::string bad = text_;
      bad.insert(i, 1, c);
      ASSERT_EQ(check(bad).verdict, Verdict::broken) << "byte " << i;
    }
    if (i == text_.size()) break;
    std::string bad = text_;
    bad.erase(i, 1);
    ASSERT_EQ(check(bad).verdict, Verdict::broken) << "byte " << i;
  }
}

TEST_F(Tamper, EveryCutIsFoundOrOpenAndBrokenByTheIndex) {
  for (std::size_t i = 0; i < text_.size(); ++i) {
    const bool between = i > 0 && text_[i - 1] == '\n';
    ASSERT_EQ(check(text_.substr(0, i)).verdict, between ? Verdict::open : Verdict::broken) << i;
    ASSERT_EQ(check(text_.substr(0, i), true).verdict, Verdict::broken) << i;
  }
}

TEST_F(Tamper, EveryRemovedRepeatedOrMovedLineIsFoundWhereItIs) {
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    auto removed = lines_, repeated = lines_;
    removed.erase(removed.begin() + static_cast<std::ptrdiff_t>(i));
    repeated.insert(repeated.begin() + static_cast<std::ptrdiff_t>(i), lines_[i]);
    if (i + 1 < lines_.size()) {
      const Verification v = check(join(removed));
      ASSERT_EQ(v.verdict, Verdict::broken);
      EXPECT_EQ(v.findings[0].line, i + 1);
    }
    EXPECT_EQ(check(join(repeated)).findings.at(0).line, i + 2);
    for (std::size_t j = i + 1; j < lines_.size(); ++j) {
      auto moved = lines_;
      std::swap(moved[i], moved[j]);
      EXPECT_EQ(check(join(moved)).findings.at(0).line, i + 1);
    }
  }
}

TEST_F(Tamper, AChangedRecordIsOneFindingWithItsPlace) {
  std::string bad = text_;
  bad.replace(bad.find("/home/gem"), 9, "/home/bad");
  const Verification v = check(bad);
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].line, 3U);
  EXPECT_EQ(v.findings[0].offset, lines_[0].size() + lines_[1].size());
  EXPECT_TRUE(v.findings[0].what.starts_with("changed")) << v.findings[0].what;
}

TEST_F(Tamper, ARehashedRecordBreaksTheLinkOfTheNext) {
  std::string line = lines_[1];
  line.replace(line.find("\"T3\""), 4, "\"T1\"");
  const std::size_t at = line.rfind(",\"hash\":\"");
  line.replace(at + 9, 64, sha256_hex(line.substr(0, at) + "}"));
  const Verification v = check(lines_[0] + line + lines_[2] + lines_[3]);
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].line, 3U);
}

TEST_F(Tamper, ALogRewrittenFromTheStartIsFoundByTheIndex) {
  const Log other = small_log(dir_, "other");
  EXPECT_EQ(check(dir_.read("other")).verdict, Verdict::intact);
  const Verification v = check(dir_.read("other"), true);
  ASSERT_EQ(v.verdict, Verdict::broken);
  EXPECT_TRUE(v.findings[0].what.starts_with("rewritten")) << v.findings[0].what;
}

TEST_F(Tamper, RecordsBehindTheEndAreFound) {
  Log log = small_log(dir_, "more");
  ASSERT_TRUE(log.append(Event::exec_exit, {}));
  EXPECT_EQ(verify_file(dir_.file("more"))->findings.at(0).line, 5U);
}

TEST_F(Tamper, JunkIsBoundedAndFound) {
  EXPECT_EQ(check("").verdict, Verdict::broken);
  EXPECT_EQ(check(std::string(3'000'000, 'x')).verdict, Verdict::broken);
  EXPECT_EQ(check(std::string(300'000, 'x') + "\n" + text_).findings.at(0).line, 1U);
  EXPECT_EQ(check(std::string(100'000, '\n')).findings.size(), kMaxFindings);
}

TEST_F(Tamper, TheIndexComesFromAllOfTheLaunchersLogs) {
  auto first = Log::create(dir_.path(), "launcher");
  ASSERT_TRUE(first->append(Event::session_end, {{"file", "s-1.ndjson"}, {"count", expected_.count}, {"head", expected_.head}}));
  auto second = Log::create_rotated(dir_.path(), "launcher");
  ASSERT_TRUE(second->append(Event::session_end, {{"file", "s-2.ndjson"}, {"count", 7}, {"head", "x"}}));
  const auto index = read_index(dir_.path());
  ASSERT_TRUE(index);
  ASSERT_EQ(index->ended.size(), 2U);
  EXPECT_EQ(index->ended.at("s-1.ndjson").head, expected_.head);
  EXPECT_EQ(verify_file(dir_.file("launcher"))->verdict, Verdict::open) << "an index record ends nothing";
}

}  // namespace
}  // namespace caisson::audit
