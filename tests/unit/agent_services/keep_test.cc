// The form of the memory that outlives the agent: what is found after a kill at any point, and what is made of forged contents.
#include "agent/services/common/keep.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "agent/services/common/output_buffer.h"
#include "launcher/common/base/sys.h"

namespace caisson::services {
namespace {

struct File {
  File() : fd(::memfd_create("keep", MFD_CLOEXEC)) {
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(Keep::file_bytes())), 0);
  }
  // As the next agent finds it: the one before is gone without a word.
  Keep& open() {
    keeps.push_back(Keep::open(fd).value());
    Keep::set_here(keeps.back().get());
    return *keeps.back();
  }
  ~File() { Keep::set_here(nullptr); }
  Fd fd;
  std::vector<std::unique_ptr<Keep>> keeps;
  std::vector<std::shared_ptr<void>> dead;  // writers that were killed: nothing of them runs until the test is over
};

std::shared_ptr<OutputBudget> budget() { return std::make_shared<OutputBudget>(64 << 20); }

// A record with a stream that is written as a pipe is drained.
struct Writer {
  explicit Writer(std::shared_ptr<OutputBudget> of, std::size_t cap = 8 << 20)
      : record(Keep::make("test", {{"name", "one"}})), out(std::move(of), cap) {
    out.keep_in(record, 0);
  }
  void land(std::string_view bytes, std::size_t expected) {
    bytes.copy(record.keep()->land(record, 0, expected), bytes.size());
    record.keep()->landed(bytes.size());
  }
  void write(std::string_view bytes) {
    land(bytes, bytes.size());
    out.append(bytes);
    record.advance({out.end(), 0});
  }
  Keep::Record record;
  OutputBuffer out;
};

Writer* killed_writer(File& file, std::size_t cap = 8 << 20) {
  auto made = std::make_shared<Writer>(budget(), cap);
  file.dead.push_back(made);
  return made.get();
}

struct Found {
  explicit Found(Keep& keep, std::size_t cap = 8 << 20) : out(budget(), cap) {
    auto all = keep.take_left();
    if (all.size() != 1) return;
    left = std::move(all.front());
    out.keep_in(left.record, 0, left.ends.first);
    out.append(left.landed);
  }
  std::string text() const { return out.read(0); }
  Keep::Left left;
  OutputBuffer out;
};

std::string numbers(std::size_t bytes) {
  std::string text;
  for (int i = 0; text.size() < bytes; ++i) text += std::to_string(i) + "\n";
  text.resize(bytes);
  return text;
}

TEST(Keep, WhatWasWrittenIsFoundAgain) {
  File file;
  file.open();
  Writer* const writer = killed_writer(file);
  const std::string text = numbers(300'000);
  for (std::size_t at = 0; at < text.size(); at += 7919) writer->write(std::string_view(text).substr(at, 7919));
  EXPECT_TRUE(writer->record.write({{"name", "two"}}, {writer->out.end(), 5}));
  Found found(file.open());
  EXPECT_EQ(found.left.kind, "test");
  EXPECT_EQ(found.left.body["name"], "two");
  EXPECT_EQ(found.left.ends.second, 5u);
  EXPECT_TRUE(found.left.landed.empty());
  EXPECT_EQ(found.text(), text);
}

TEST(Keep, WhatWasReadAndNotCountedIsThereOnce) {
  for (const std::size_t size : {1UL, 2UL, 100UL, 4096UL, Keep::kLandingBytes})
    for (const bool taking : {false, true}) {  // killed behind the read, or while it was taken in
      File file;
      file.open();
      Writer* const writer = killed_writer(file);
      writer->write("before ");
      const std::string text = numbers(size);
      writer->land(text, size);
      if (taking) writer->out.append(std::string_view(text).substr(0, size / 2));
      EXPECT_EQ(Found(file.open()).text(), "before " + text) << size << (taking ? " taken in" : "");
    }
}

TEST(Keep, WhatWasCountedIsNotThereTwice) {
  File file;
  file.open();
  Writer* const writer = killed_writer(file);
  writer->write("one ");
  writer->write("two");
  EXPECT_EQ(Found(file.open()).text(), "one two");
}

TEST(Keep, AReadThatDidNotHappenIsNothing) {
  File file;
  file.open();
  Writer* const writer = killed_writer(file);
  writer->write("some text that was there before");
  writer->land("", 4000);
  EXPECT_EQ(Found(file.open()).text(), "some text that was there before");
}

TEST(Keep, BytesThatNoUtf8HasCountByWhatWasThereToBeRead) {
  File file;
  Keep& keep = file.open();
  Writer* const writer = killed_writer(file);
  std::string text = "text";
  char* const landing = keep.land(writer->record, 0, 0);
  text += std::string(landing + 4, 2);  // as if the program had guessed
  writer->land(text, text.size());
  EXPECT_EQ(Found(file.open()).text(), text);
}

TEST(Keep, OldOutputMakesRoomAndTheHeadStays) {
  File file;
  file.open();
  Writer* const writer = killed_writer(file, 256 * 1024);
  const std::string text = numbers(1'000'000);
  for (std::size_t at = 0; at < text.size(); at += 60'000) writer->write(std::string_view(text).substr(at, 60'000));
  Found found(file.open(), 256 * 1024);
  EXPECT_EQ(found.out.end(), text.size());
  EXPECT_EQ(found.out.head(), std::string_view(text).substr(0, OutputBuffer::kHeadBytes));
  EXPECT_GE(found.out.begin(), text.size() - 256 * 1024 - Keep::kBlockBytes);
  EXPECT_EQ(found.text(), text.substr(found.out.begin()));
}

// Room that is short empties a buffer in the midst of a block. The next block may be one that another has had.
TEST(Keep, WhatAnotherHasLeftInABlockIsNobodysOutput) {
  File file;
  file.open();
  const auto all = std::make_shared<http::Budget>(std::size_t{8} << 20, 0);
  const auto of = std::make_shared<OutputBudget>(8 << 20, all);
  const auto writer = std::make_shared<Writer>(of);
  file.dead.push_back(writer);
  const auto another = [] { Writer(budget()).write(std::string(Keep::kBlockBytes, 'S')); };
  writer->write("begun ");
  another();
  EXPECT_TRUE(of->share_of((8 << 20) - 4));  // takes what its output has
  EXPECT_EQ(writer->out.read(0), "");
  another();
  writer->write("and ended");
  const Found found(file.open());
  EXPECT_FALSE(found.text().contains('S'));
  EXPECT_TRUE(found.text().ends_with("and ended")) << found.text();
  EXPECT_EQ(found.out.end(), 15u);
}

// The same where the block with the beginning was not found again: what comes is kept from the next block on.
TEST(Keep, AnOutputThatBeganInALostBlockIsKeptFromTheNextOn) {
  File file;
  file.open();
  Writer* const writer = killed_writer(file);
  {
    Writer(budget()).write(std::string(Keep::kBlockBytes, 'S'));
  }
  OutputBuffer lost(budget(), 8 << 20);
  lost.keep_in(writer->record, 1, Keep::kBlockBytes / 2);
  EXPECT_EQ(lost.begin(), Keep::kBlockBytes / 2);
  lost.append(std::string(Keep::kBlockBytes, 'm'));
  EXPECT_EQ(lost.read(0), std::string(Keep::kBlockBytes, 'm'));
  EXPECT_TRUE(writer->record.write({{"name", "one"}}, {0, lost.end()}));
  Keep& keep = file.open();
  auto left = keep.take_left();
  ASSERT_EQ(left.size(), 1u);
  OutputBuffer found(budget(), 8 << 20);
  found.keep_in(left.front().record, 1, left.front().ends.second);
  EXPECT_EQ(found.read(0), std::string(Keep::kBlockBytes / 2, 'm'));
}

// A buffer whose record has ended may hold blocks for a while: a new record finds none of them.
TEST(Keep, BlocksOfAnEndedRecordAreNoOthers) {
  File file;
  file.open();
  Writer* const ended = killed_writer(file);
  ended->write(std::string(2 * Keep::kBlockBytes, 'S'));
  ended->record.erase();
  Writer* const next = killed_writer(file);
  next->write("mine");
  EXPECT_NE(next->record.index(), ended->record.index());
  EXPECT_EQ(Found(file.open()).text(), "mine");
}

TEST(Keep, WhatHasEndedLeavesNothingAndNothingRunsOut) {
  File file;
  file.open();
  for (int round = 0; round < 3000; ++round) {
    Writer writer(budget());
    writer.write(numbers(200'000));
    ASSERT_NE(writer.record.keep(), nullptr) << round;
  }
  EXPECT_TRUE(file.open().take_left().empty());
}

TEST(Keep, WithoutRoomThingsAreNotKeptAndGoOn) {
  File file;
  file.open();
  std::vector<Keep::Record> many;
  for (std::uint32_t i = 0; i < Keep::kRecords + 10; ++i) many.push_back(Keep::make("many", {{"i", i}}));
  EXPECT_EQ(many.back().keep(), nullptr);
  Writer writer(budget());
  writer.out.append("kept by nobody");
  EXPECT_EQ(writer.out.read(0), "kept by nobody");
}

TEST(Keep, AnotherFormIsBegunAnew) {
  File file;
  file.open();
  killed_writer(file);
  ASSERT_EQ(::pwrite(file.fd.get(), "another", 7, 0), 7);
  EXPECT_TRUE(file.open().take_left().empty());
}

// A hostile agent was here: any bytes at all, where they hurt. Nothing is read or written outside of the file (ASan), the next
// agent starts, and what it makes then is kept as ever.
TEST(Keep, ForgedContentsAreBounded) {
  std::mt19937 random(20261);
  for (int round = 0; round < 60; ++round) {
    File file;
    Keep& keep = file.open();
    for (int i = 0; i < 4; ++i) killed_writer(file)->write(numbers(50'000));
    const auto any = [&](std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(random); };
    char* const base = keep.at(0) - (Keep::file_bytes() - std::size_t{Keep::kBlocks} * Keep::kBlockBytes);
    const auto tables = static_cast<std::size_t>(keep.at(0) - base);
    for (int i = 0; i < 400; ++i) {
      // The head but for its form, the rows of the first records, the entries of the last blocks, which are taken first.
      const std::size_t at = i % 3 == 0 ? 16 + any(48) : i % 3 == 1 ? 4096 + any(128 * 8) : tables - 1 - any(8 * 1024);
      const std::uint64_t value = i % 2 == 0 ? any(255) : any(3) == 0 ? ~std::uint64_t{0} : any(Keep::kBlocks * 8);
      std::memcpy(base + at, &value, std::min<std::size_t>(1 + any(7), tables - at));
    }
    Keep& next = file.open();
    for (Keep::Left& left : next.take_left()) {
      OutputBuffer one(budget(), 1 << 20), two(budget(), 1 << 20);
      one.keep_in(left.record, 0, left.ends.first);
      two.keep_in(left.record, 1, left.ends.second);
      one.append(left.landed);
      (void)one.read(0);
      (void)two.read(left.ends.second / 2);
      (void)left.record.write({{"again", round}}, left.ends);
    }
    Writer writer(budget());
    writer.write("after");
    EXPECT_EQ(writer.out.read(0), "after");
  }
}

TEST(Keep, ADeadlineIsNearWhateverTheFileSays) {
  using namespace std::chrono_literals;
  for (const std::int64_t past : {INT64_MIN, std::int64_t{-1}, std::int64_t{0}}) EXPECT_EQ(time_left(past), 0ns);
  EXPECT_EQ(time_left(INT64_MAX), 24h);
  const std::chrono::nanoseconds soon = time_left(sys::realtime_ns() + 10'000'000'000);
  EXPECT_GT(soon, 5s);
  EXPECT_LE(soon, 10s);
}

TEST(Keep, HexIsReadBackOrNothing) {
  const std::string all("\0\x1b]\xff\x7f", 5);
  EXPECT_EQ(unhex(hex(all)), all);
  EXPECT_EQ(unhex("abc"), "");
  EXPECT_EQ(unhex("zz"), "");
}

}  // namespace
}  // namespace caisson::services
