#include "agent/services/common/keep.h"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "launcher/common/base/sys.h"

namespace caisson::services {
namespace {

constexpr char kForm[16] = "caisson-keep 1";  // changes with the layout; a file of another number is begun anew
constexpr std::size_t kPage = 4096, kMaxBody = 48 * 1024 * 1024, kMaxTouched = 256;
constexpr int kStreams = 4;  // of a record: two bodies, one of them valid, and its two streams
constexpr std::size_t kUnsure = 4;
// In no UTF-8.
constexpr unsigned char kStrange[] = {0xC0, 0xC1, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF};

// Where a kill may come in between: all earlier stores have reached the memory.
template <class T>
void publish(T& where, T value) {
  std::atomic_ref<T>(where).store(value, std::memory_order_release);
}

constexpr std::uint64_t entry_of(std::uint32_t record, int which, std::uint32_t number) {
  return (static_cast<std::uint64_t>(record * kStreams + static_cast<std::uint32_t>(which) + 1) << 32) | number;
}

}  // namespace

struct Keep::Slot {
  std::uint64_t turn;
  Ends ends;
  std::uint64_t body_bytes;
  std::uint64_t body;  // 0 or 1
};

struct Keep::Row {
  std::uint32_t used;
  std::uint32_t current;  // which slot counts
  char kind[16];
  Slot slots[2];
};

struct Keep::Head {
  char form[16];
  std::uint32_t records, blocks;
  // The read in progress and the stream that it belongs to.
  std::uint32_t landing;  // 0: no read is in progress
  std::uint32_t owner;    // record * 2 + stream
  std::uint64_t turn, expected;
};

namespace {
constexpr std::size_t kRowBytes = 128, kRowsAt = kPage;
constexpr std::size_t kLandingAt = kRowsAt + Keep::kRecords * kRowBytes, kPatternAt = kLandingAt + Keep::kLandingBytes;
constexpr std::size_t kEntriesAt = kPatternAt + Keep::kLandingBytes;
constexpr std::size_t kBlocksAt = kEntriesAt + (Keep::kBlocks * sizeof(std::uint64_t) + kPage - 1) / kPage * kPage;
}  // namespace

std::size_t Keep::file_bytes() { return kBlocksAt + kBlocks * kBlockBytes; }

Keep::Head& Keep::head() const { return *reinterpret_cast<Head*>(base_); }
Keep::Row& Keep::row(std::uint32_t index) const {
  static_assert(sizeof(Row) <= kRowBytes && sizeof(Head) <= kPage);
  return *reinterpret_cast<Row*>(base_ + kRowsAt + index * kRowBytes);
}
std::uint64_t& Keep::entry(std::uint32_t block) const {
  return *reinterpret_cast<std::uint64_t*>(base_ + kEntriesAt + block * sizeof(std::uint64_t));
}
char* Keep::landing() const { return base_ + kLandingAt; }
const char* Keep::pattern() const { return base_ + kPatternAt; }
char* Keep::at(std::uint32_t block) const { return base_ + kBlocksAt + std::size_t{block} * kBlockBytes; }

Result<std::unique_ptr<Keep>> Keep::open(const Fd& file) {
  struct stat st{};
  if (::fstat(file.get(), &st) != 0) return sys_error("the memory file");
  if (static_cast<std::size_t>(st.st_size) < file_bytes()) return fail(Code::io, "the memory file is too small");
  void* base = ::mmap(nullptr, file_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (base == MAP_FAILED) return sys_error("map the memory file");
  std::unique_ptr<Keep> keep(new Keep(static_cast<char*>(base)));
  keep->successor_ = keep->usable();
  if (keep->successor_) keep->recover();
  else keep->reset();
  return keep;
}

Keep::~Keep() {
  if (here_ == this) here_ = nullptr;
  left_.clear();
  ::munmap(base_, file_bytes());
}

bool Keep::usable() const {
  const Head& h = head();
  return std::memcmp(h.form, kForm, sizeof kForm) == 0 && h.records == kRecords && h.blocks == kBlocks;
}

void Keep::reset() {
  ::madvise(base_, file_bytes(), MADV_REMOVE);
  std::memset(base_, 0, kBlocksAt);
  head().records = kRecords;
  head().blocks = kBlocks;
  for (std::uint32_t i = kBlocks; i-- > 0;) free_blocks_.push_back(i);
  for (std::uint32_t i = kRecords; i-- > 0;) free_records_.push_back(i);
  std::memcpy(head().form, kForm, sizeof kForm);
}

// New for each agent: no program in a session can know it.
void Keep::fill_pattern() {
  auto* bytes = reinterpret_cast<unsigned char*>(base_ + kPatternAt);
  for (std::size_t at = 0; at < kLandingBytes; at += 256) (void)!::getrandom(bytes + at, 256, 0);
  for (std::size_t i = 0; i < kLandingBytes; ++i) bytes[i] = kStrange[bytes[i] % std::size(kStrange)];
  dirty_ = kLandingBytes;
}

std::string Keep::what_landed() const {
  std::size_t size = kLandingBytes;
  while (size > 0 && landing()[size - 1] == pattern()[size - 1]) --size;
  const std::uint64_t expected = head().expected;
  if (size > 0 && expected <= kLandingBytes && size < expected && expected - size < kUnsure)
    size = static_cast<std::size_t>(expected);
  return {landing(), size};
}

void Keep::recover() {
  for (std::uint32_t i = kBlocks; i-- > 0;) {
    const std::uint64_t value = entry(i);
    const auto owner = static_cast<std::uint32_t>(value >> 32);
    const bool known = owner != 0 && (owner - 1) / kStreams < kRecords && row((owner - 1) / kStreams).used == 1;
    if (known && found_[owner].emplace(static_cast<std::uint32_t>(value), i).second) continue;
    publish(entry(i), std::uint64_t{0});
    free_blocks_.push_back(i);
  }
  const Head& h = head();
  for (std::uint32_t i = kRecords; i-- > 0;) {
    Row& r = row(i);
    if (r.used != 1 || r.current > 1) {
      std::memset(&r, 0, sizeof r);
      for (int which = 0; which < kStreams; ++which) free_stream(i, which);
      free_records_.push_back(i);
      continue;
    }
    Left one;
    one.record = Record(this, i);
    const Slot& slot = r.slots[r.current];
    one.ends = slot.ends;
    one.kind.assign(r.kind, ::strnlen(r.kind, sizeof r.kind));
    auto body = body_of(i);
    free_stream(i, slot.body == 0 ? 1 : 0);  // a body that was being written or was not yet freed
    if (!body) continue;                     // `one` takes it away
    one.body = std::move(*body);
    if (h.landing == 1 && h.owner / 2 == i && h.turn == slot.turn) {
      one.landed = what_landed();
      one.second = h.owner % 2 == 1;
    }
    left_.push_back(std::move(one));
  }
}

std::vector<Keep::Left> Keep::take_left() { return std::exchange(left_, {}); }

// This Keep takes over its blocks, so that a later body can replace them.
std::optional<json::Value> Keep::body_of(std::uint32_t index) {
  const Slot& slot = row(index).slots[row(index).current];
  if (slot.body > 1 || slot.body_bytes > kMaxBody) return std::nullopt;
  const auto owner = static_cast<std::uint32_t>(entry_of(index, static_cast<int>(slot.body), 0) >> 32);
  const auto node = found_.extract(owner);
  if (node.empty()) return std::nullopt;
  std::string text;
  auto& blocks = bodies_[owner];
  bool whole = true;
  for (const auto& [number, block] : node.mapped()) {
    blocks.push_back(block);
    whole = whole && number + 1 == blocks.size();
    const std::size_t left = static_cast<std::size_t>(slot.body_bytes) - std::min<std::size_t>(text.size(), slot.body_bytes);
    text.append(at(block), std::min(left, kBlockBytes));
  }
  if (!whole || text.size() != slot.body_bytes) return std::nullopt;
  auto parsed = json::parse(text, {.max_bytes = kMaxBody});
  if (!parsed || !parsed->is_object()) return std::nullopt;
  return std::move(*parsed);
}

std::optional<std::uint32_t> Keep::take_block(std::uint32_t record, int stream, std::uint32_t number) {
  if (free_blocks_.empty()) return std::nullopt;
  const std::uint32_t block = free_blocks_.back();
  free_blocks_.pop_back();
  if (touched_ > 0) --touched_;
  publish(entry(block), entry_of(record, stream + 2, number));
  return block;
}

void Keep::free_block(std::uint32_t block) {
  publish(entry(block), std::uint64_t{0});
  if (touched_ >= kMaxTouched) {  // free blocks beyond this number give their memory back to the kernel
    ::madvise(at(block), kBlockBytes, MADV_REMOVE);
    free_blocks_.insert(free_blocks_.end() - static_cast<std::ptrdiff_t>(touched_), block);
    return;
  }
  free_blocks_.push_back(block);
  ++touched_;
}

std::map<std::uint32_t, std::uint32_t> Keep::blocks_of(std::uint32_t record, int stream) {
  const auto node = found_.extract(static_cast<std::uint32_t>(entry_of(record, stream + 2, 0) >> 32));
  return node.empty() ? std::map<std::uint32_t, std::uint32_t>() : std::move(node.mapped());
}

void Keep::free_stream(std::uint32_t record, int which) {
  const auto owner = static_cast<std::uint32_t>(entry_of(record, which, 0) >> 32);
  if (const auto node = bodies_.extract(owner); !node.empty())
    for (const std::uint32_t block : node.mapped()) free_block(block);
  if (const auto node = found_.extract(owner); !node.empty())
    for (const auto& [number, block] : node.mapped()) free_block(block);
}

bool Keep::put_body(std::uint32_t record, int which, std::string_view text) {
  if (text.size() > kMaxBody || free_blocks_.size() < text.size() / kBlockBytes + 1) return false;
  auto& blocks = bodies_[static_cast<std::uint32_t>(entry_of(record, which, 0) >> 32)];
  do {
    const auto block = take_block(record, which - 2, static_cast<std::uint32_t>(blocks.size()));
    blocks.push_back(*block);
    const std::string_view part = text.substr(0, kBlockBytes);
    std::memcpy(at(*block), part.data(), part.size());
    text.remove_prefix(part.size());
  } while (!text.empty());
  return true;
}

Keep::Record Keep::make(std::string_view kind, const json::Value& body) {
  Keep* const keep = here_;
  if (keep == nullptr || keep->free_records_.empty()) return {};
  const std::uint32_t index = keep->free_records_.back();
  keep->free_records_.pop_back();
  Row& r = keep->row(index);
  std::memset(&r, 0, sizeof r);
  kind.copy(r.kind, sizeof r.kind - 1);
  Record made(keep, index);
  if (!made.write(body, {})) return {};
  publish(r.used, 1U);
  return made;
}

bool Keep::Record::write(const json::Value& body, Ends ends) {
  if (keep_ == nullptr) return false;
  Row& r = keep_->row(index_);
  const Slot& now = r.slots[r.current];
  const int which = now.body_bytes == 0 ? 0 : now.body == 0 ? 1 : 0;
  const std::string text = json::dump(body);
  if (!keep_->put_body(index_, which, text)) {
    advance(ends);
    return false;
  }
  const std::uint32_t next = 1 - r.current;
  r.slots[next] = {now.turn + 1, ends, text.size(), static_cast<std::uint64_t>(which)};
  publish(r.current, next);
  keep_->free_stream(index_, 1 - which);
  return true;
}

void Keep::Record::advance(Ends ends) {
  if (keep_ == nullptr) return;
  Row& r = keep_->row(index_);
  const std::uint32_t next = 1 - r.current;
  r.slots[next] = r.slots[r.current];
  r.slots[next].turn += 1;
  r.slots[next].ends = ends;
  publish(r.current, next);
}

Keep::Ends Keep::Record::ends() const {
  if (keep_ == nullptr) return {};
  const Row& r = keep_->row(index_);
  return r.slots[r.current].ends;
}

void Keep::Record::erase() {
  if (Keep* const keep = std::exchange(keep_, nullptr); keep != nullptr) keep->erase(index_);
}

void Keep::Record::give_back() {
  erase();
  if (Keep* const keep = std::exchange(taken_, nullptr); keep != nullptr) keep->free_records_.push_back(index_);
}

Keep::Record& Keep::Record::operator=(Record&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  keep_ = std::exchange(other.keep_, nullptr);
  taken_ = std::exchange(other.taken_, nullptr);
  index_ = other.index_;
  return *this;
}

// The holders of its streams' blocks free them, before the record's index is given back.
void Keep::erase(std::uint32_t record) {
  publish(row(record).used, 0U);
  for (int which = 0; which < kStreams; ++which) free_stream(record, which);
}

char* Keep::land(const Record& record, int stream, std::size_t expected) {
  Head& h = head();
  publish(h.landing, 0U);
  if (!std::exchange(own_pattern_, true)) fill_pattern();
  std::memcpy(landing(), pattern(), std::exchange(dirty_, 0));
  h.owner = record.index() * 2 + static_cast<std::uint32_t>(stream);
  const Row& r = row(record.index());
  h.turn = r.slots[r.current].turn;
  h.expected = expected;
  publish(h.landing, 1U);
  return landing();
}

void Keep::nothing_landed() { publish(head().landing, 0U); }

std::chrono::nanoseconds time_left(std::int64_t until_ns) {
  constexpr std::int64_t kMost = 24LL * 3600 * 1'000'000'000, kHorizon = std::int64_t{1} << 62;
  return std::chrono::nanoseconds(
      std::clamp<std::int64_t>(std::clamp(until_ns, -kHorizon, kHorizon) - sys::realtime_ns(), 0, kMost));
}

std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

std::string unhex(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  if (text.size() % 2 != 0) return out;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const std::size_t high = kDigits.find(text[i]), low = kDigits.find(text[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return "";
    out += static_cast<char>(high << 4 | low);
  }
  return out;
}

}  // namespace caisson::services
