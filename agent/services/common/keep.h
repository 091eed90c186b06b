// Keep: memory that outlives the agent. One file, held by the launcher and mapped by the agent that runs, in which is written
// what an agent would otherwise know alone. A kill between any two instructions leaves it as it was before or after a change:
//  - A Record has a body (JSON, replaced as a whole) and two streams of bytes, of which so many count as its ends say. Body and
//    ends change together, by one store.
//  - What a program wrote is read into the landing, with a note of whose it is. It counts when the record's turn has advanced; a
//    later agent takes what has landed and did not count. The landing is filled beforehand with random bytes that UTF-8 never
//    has, which tell how far a read got. Residual: output of at most three bytes that are just these does not count.
// An agent may have been taken over before it died: all that is found is bounds-checked, and gives no rights of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/fd.h"
#include "launcher/base/json.h"
#include "launcher/base/result.h"

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

  // One thing that is kept, until this ends. A record of no Keep keeps nothing, and all its functions do nothing.
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
    // The streams have these ends, and what has landed for it is in them.
    void advance(Ends ends);
    // Nothing of it is found any more. Its index stays taken until this ends: blocks that are still held under it must not be
    // found as another's.
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

  // Found in the file: `record` owns it, so what is not taken over is forgotten.
  struct Left {
    std::string kind;
    json::Value body;
    Ends ends;
    Record record;
    std::string landed;   // read for it, and not counted: to be taken in before anything is read
    bool second = false;  // of the second stream
  };

  // The file of the launcher's; anything that is not a Keep of this form is made an empty one. Errors: it cannot be mapped.
  [[nodiscard]] static Result<std::unique_ptr<Keep>> open(const Fd& file);
  ~Keep();
  Keep(const Keep&) = delete;
  Keep& operator=(const Keep&) = delete;

  // The Keep of this process, or nullptr if it has none; nothing outlives the agent then.
  [[nodiscard]] static Keep* here() { return here_; }
  static void set_here(Keep* keep) { here_ = keep; }
  // Whether an agent before this one has served: what is not kept was lost with it.
  [[nodiscard]] static bool successor() { return here_ != nullptr && here_->successor_; }

  // kind: at most 15 bytes. Without room, or without a Keep: a Record that keeps nothing.
  [[nodiscard]] static Record make(std::string_view kind, const json::Value& body);
  // All that an agent before has left, once.
  [[nodiscard]] std::vector<Left> take_left();

  // Blocks of a record's stream (0 or 1), by number. nullopt: none is free.
  [[nodiscard]] std::optional<std::uint32_t> take_block(std::uint32_t record, int stream, std::uint32_t number);
  void free_block(std::uint32_t block);
  [[nodiscard]] char* at(std::uint32_t block) const;
  // Those of a stream that was left, by number; once.
  [[nodiscard]] std::map<std::uint32_t, std::uint32_t> blocks_of(std::uint32_t record, int stream);

  // Where to read to, for this stream of this record: what was there is overwritten. expected: bytes that are there to be read,
  // as far as known. To be followed by the record's advance(), or by nothing_landed().
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
  bool own_pattern_ = false;  // not until now: what an agent before has read is known by its own
  std::vector<std::uint32_t> free_blocks_, free_records_;
  std::size_t touched_ = 0;                                     // at the end of free_blocks_: those that still have memory
  std::map<std::uint32_t, std::vector<std::uint32_t>> bodies_;  // blocks by owner
  std::map<std::uint32_t, std::map<std::uint32_t, std::uint32_t>> found_;
  std::vector<Left> left_;
};

// Until a deadline that was kept, as the real time in ns: at least 0, at most a day, whatever the file says.
[[nodiscard]] std::chrono::nanoseconds time_left(std::int64_t until_ns);

// Encodes bytes for a JSON body. unhex() returns "" for text that is not hexadecimal.
[[nodiscard]] std::string hex(std::string_view bytes);
[[nodiscard]] std::string unhex(std::string_view text);

}  // namespace caisson::services
