// Keep: memory that outlives the agent. The launcher holds one file; the running agent maps it and writes there what only it
// knows. A kill between any two instructions leaves the file as it was before or after a change:
// - A Record has a body (JSON, replaced as a whole) and two streams of bytes, whose valid lengths are its ends. Body and ends
//   change together, by one store.
// - Output is read into the landing, with a note of its stream. It counts once the record has advanced; a later agent takes over
//   landed bytes that do not count yet. The landing is filled beforehand with random bytes that UTF-8 never has, which show how
//   far a read got. Residual: up to three bytes of output that equal these are lost.
// An attacker may have controlled the agent before it died: everything found is bounds-checked and confers no rights.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/json.h"
#include "launcher/common/base/result.h"

namespace caisson::services {

class Keep {
 public:
  static constexpr std::size_t kBlockBytes = 16 * 1024;
  static constexpr std::size_t kLandingBytes = 64 * 1024;
  static constexpr std::uint32_t kRecords = 16 * 1024, kBlocks = 28 * 1024;
  [[nodiscard]] static std::size_t file_bytes();

  struct Ends {
    std::uint64_t first = 0, second = 0;
  };

  // One kept object, for as long as this Record lives. The functions of a record without a Keep do nothing.
  class Record {
   public:
    Record() = default;
    Record(Record&& other) noexcept
        : keep_(std::exchange(other.keep_, nullptr)), taken_(std::exchange(other.taken_, nullptr)), index_(other.index_) {}
    Record& operator=(Record&& other) noexcept;
    Record(const Record&) = delete;
    Record& operator=(const Record&) = delete;
    ~Record() { give_back(); }

    // Returns false if no block is free; the previous body then stays.
    bool write(const json::Value& body, Ends ends);
    // Sets the ends of the streams: bytes that have landed are now part of them.
    void advance(Ends ends);
    // Erases it from the file. Its index stays reserved while this Record lives, because blocks still held under it must not be
    // attributed to another record.
    void erase();
    [[nodiscard]] Ends ends() const;
    [[nodiscard]] Keep* keep() const { return keep_; }
    [[nodiscard]] std::uint32_t index() const { return index_; }

   private:
    friend class Keep;
    Record(Keep* keep, std::uint32_t index) : keep_(keep), taken_(keep), index_(index) {}
    void give_back();
    Keep* keep_ = nullptr;
    Keep* taken_ = nullptr;  // whose index it has
    std::uint32_t index_ = 0;
  };

  // A record found in the file. `record` owns it, so a record that is not taken over is erased.
  struct Left {
    std::string kind;
    json::Value body;
    Ends ends;
    Record record;
    std::string landed;   // read but not counted; append it before the next read
    bool second = false;  // of the second stream
  };

  // Maps the launcher's file. A file that is not a Keep of this form becomes an empty one. Errors: it cannot be mapped.
  [[nodiscard]] static Result<std::unique_ptr<Keep>> open(const Fd& file);
  ~Keep();
  Keep(const Keep&) = delete;
  Keep& operator=(const Keep&) = delete;

  // The Keep of this process; nullptr: this process keeps nothing, and nothing outlives the agent.
  [[nodiscard]] static Keep* here() { return here_; }
  static void set_here(Keep* keep) { here_ = keep; }
  // Whether another agent served before this one. State that is not kept was lost with it.
  [[nodiscard]] static bool successor() { return here_ != nullptr && here_->successor_; }

  // kind: at most 15 bytes. Without a Keep, or without room in it, the Record keeps nothing.
  [[nodiscard]] static Record make(std::string_view kind, const json::Value& body);
  // Every record that the previous agent left. Returns them once.
  [[nodiscard]] std::vector<Left> take_left();

  // Blocks of a record's stream (0 or 1), by number. nullopt: none is free.
  [[nodiscard]] std::optional<std::uint32_t> take_block(std::uint32_t record, int stream, std::uint32_t number);
  void free_block(std::uint32_t block);
  [[nodiscard]] char* at(std::uint32_t block) const;
  // The blocks of a stream that was left, by number. Returns them once.
  [[nodiscard]] std::map<std::uint32_t, std::uint32_t> blocks_of(std::uint32_t record, int stream);

  // The buffer for the next read of this stream of this record; its content is overwritten. expected: bytes ready to be read, if
  // known. The record's advance() or nothing_landed() must follow.
  [[nodiscard]] char* land(const Record& record, int stream, std::size_t expected);
  void landed(std::size_t bytes) { dirty_ = std::max(dirty_, bytes); }
  void nothing_landed();

 private:
  struct Slot;
  struct Row;
  struct Head;
  explicit Keep(char* base) : base_(base) {}
  void reset();
  void recover();
  [[nodiscard]] bool usable() const;
  [[nodiscard]] Head& head() const;
  [[nodiscard]] Row& row(std::uint32_t index) const;
  [[nodiscard]] std::uint64_t& entry(std::uint32_t block) const;
  [[nodiscard]] char* landing() const;
  [[nodiscard]] const char* pattern() const;
  void fill_pattern();
  [[nodiscard]] std::string what_landed() const;
  [[nodiscard]] std::optional<json::Value> body_of(std::uint32_t index);
  [[nodiscard]] bool put_body(std::uint32_t record, int which, std::string_view text);
  void free_stream(std::uint32_t record, int which);
  void erase(std::uint32_t record);

  inline static Keep* here_ = nullptr;
  char* const base_;
  std::size_t dirty_ = kLandingBytes;  // of the landing
  bool successor_ = false;
  bool own_pattern_ = false;  // set last: bytes that the previous agent read are found by that agent's pattern
  std::vector<std::uint32_t> free_blocks_, free_records_;
  std::size_t touched_ = 0;                                     // at the end of free_blocks_: blocks that still have memory
  std::map<std::uint32_t, std::vector<std::uint32_t>> bodies_;  // blocks by owner
  std::map<std::uint32_t, std::map<std::uint32_t, std::uint32_t>> found_;
  std::vector<Left> left_;
};

// The time until a kept deadline (real time in ns), clamped to 0 to one day, because the file is not trusted.
[[nodiscard]] std::chrono::nanoseconds time_left(std::int64_t until_ns);

// Encodes bytes for a JSON body. unhex() returns "" for text that is not hexadecimal.
[[nodiscard]] std::string hex(std::string_view bytes);
[[nodiscard]] std::string unhex(std::string_view text);

}  // namespace caisson::services
