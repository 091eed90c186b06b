#include "launcher/cli/audit/verify.h"

#include <dirent.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "launcher/common/audit/log.h"
#include "launcher/common/audit_lines/lines.h"
#include "launcher/common/base/hash.h"
#include "launcher/common/tables/fields.h"

namespace caisson::audit {
namespace {

constexpr std::size_t kHex = 64;
// Of the launcher's own log: how a session's log ended, or that it went.
constexpr Event kSayEnds[] = {Event::session_end, Event::log_root, Event::log_deleted};

bool is_hex(std::string_view text) {
  return text.size() == kHex &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// The two hashes are taken from the text, where the writer put them, not from the parsed object: bytes are what is
// chained, and a line that only parses alike is another line.
struct Chain {
  std::string_view body;  // up to and without the closing `,"hash":"..."}`
  std::string_view prev, hash;
};
std::optional<Chain> split(std::string_view line) {
  static constexpr std::string_view kHash = ",\"hash\":\"", kPrev = ",\"prev\":\"", kEnd = "\"}", kStart = "{\"seq\":";
  if (!line.starts_with(kStart) || !line.ends_with(kEnd)) return std::nullopt;
  const auto take = [&line](std::string_view end, std::string_view name) -> std::optional<std::string_view> {
    if (line.size() < name.size() + kHex + end.size()) return std::nullopt;
    const std::string_view value = line.substr(line.size() - end.size() - kHex, kHex);
    line.remove_suffix(end.size() + kHex);
    if (!line.ends_with(name) || !is_hex(value)) return std::nullopt;
    line.remove_suffix(name.size());
    return value;
  };
  Chain chain;
  const auto hash = take(kEnd, kHash);
  chain.body = line;
  const auto prev = hash ? take("\"", kPrev) : std::nullopt;
  if (!prev) return std::nullopt;
  chain.hash = *hash;
  chain.prev = *prev;
  return chain;
}

class Checker {
 public:
  void begin(const std::string& path) {
    file_ = path.substr(path.rfind('/') + 1);
    first_ = true;
  }

  void line(const Lines::Line& line) {
    const std::string last = std::move(v_.head);
    const bool trusted = std::exchange(trusted_, false);  // behind a broken line, numbers and links start afresh
    v_.head.clear();
    const bool first = std::exchange(first_, false);
    if (!line.whole) return add(line, "longer than a record can be");
    const auto chain = split(line.text);
    if (!chain) return add(line, "not a record as the launcher writes it");
    v_.head = chain->hash;
    ++v_.records;
    if (sha256_hex(std::string(chain->body) + "}") != chain->hash) return add(line, "changed: its hash does not match its bytes");
    const auto record = parse_record(line.text);
    if (!record) return add(line, "not a strict JSON object (" + record.error().what + ")");
    members(line, *record, *chain, trusted ? &last : nullptr, first);
  }

  // The end of a file. The beginning of a record there is accepted when the next segment says that it was cut.
  void end(const Lines& lines) {
    const Lines::Line at{.text = {}, .number = lines.count() + 1, .offset = lines.offset()};
    settle_cut(std::nullopt);
    cut_ = {file_, at.number, at.offset, lines.rest().size(), lines.rest().empty() && lines.count() == 0};
    segment_ = std::max<std::uint64_t>(segment_, 1);
    ended_at_ = at;
  }

  void expect(const Expected& expected) {
    v_.expected_checked = true;
    const std::uint64_t here = trusted_ ? seq_ : v_.records;
    const std::string counts =
        "the launcher's log counts " + std::to_string(expected.count) + " records, here are " + std::to_string(here);
    if (here < expected.count) add(ended_at_, "cut: " + counts);
    else if (here > expected.count) add(ended_at_, "added to: " + counts);
    else if (v_.head != expected.head)
      add(ended_at_, "rewritten: the chain is whole, but its head is not the one in the launcher's log");
  }

  void add(const Lines::Line& line, std::string what) { add(file_, line.number, line.offset, std::move(what)); }

  Verification finish() {
    settle_cut(std::nullopt);
    if (segment_ended_) add(ended_at_, "cut: the segment that follows this one is missing");
    for (const Gap& gap : gaps_) settle(gap);
    v_.last_seq = seq_;
    v_.verdict = !v_.findings.empty() ? Verdict::broken : ended_ ? Verdict::intact : Verdict::open;
    return std::move(v_);
  }

 private:
  struct Cut {
    std::string file;
    std::uint64_t line = 0, offset = 0, bytes = 0;
    bool empty = false;
  };
  // Segments that are not here, between two that are.
  struct Gap {
    std::string file;
    std::uint64_t line, offset, to, first_seq, last_seq;  // to: the segment behind it
    std::string head;                                     // "": not known, as records behind the gap went to stderr
    bool files;                                           // whole files of the launcher's own log, before the first that is here
  };
  // All segments from the second to one.
  struct Removed {
    std::uint64_t first_seq, last_seq;
    std::string head;
  };

  void add(const std::string& file, std::uint64_t line, std::uint64_t offset, std::string what) {
    if (v_.findings.size() < kMaxFindings) v_.findings.push_back({file, line, offset, std::move(what)});
  }

  // stated: by the segment that follows, whose records went to stderr in between.
  void settle_cut(std::optional<std::uint64_t> stated) {
    const Cut cut = std::exchange(cut_, {});
    if (cut.empty && !stated) add(cut.file, cut.line, cut.offset, "empty: a log has at least one record");
    if (cut.bytes != stated.value_or(0))
      add(cut.file, cut.line, cut.offset, "cut: " + std::to_string(cut.bytes) + " bytes of a record without its end");
  }

  void members(const Lines::Line& line, const json::Value& record, const Chain& chain, const std::string* last, bool first) {
    const auto seq = json::get_int(record, "seq"), mono = json::get_int(record, "mono_us");
    const std::string event = json::text_of(record, "event"), time = json::text_of(record, "time");
    if (!seq || !*seq || !mono || !*mono || event.empty() || time.empty()) return add(line, "lacks seq, time, mono_us or event");
    const bool start = event == event_name(Event::segment_start), boot = event == event_name(Event::boot);
    if (first && boot && v_.records > 1) new_boot(line, record, last);
    else if (first && (start || boot)) enter_segment(line, record, chain, static_cast<std::uint64_t>(**seq), last);
    else if (start) add(line, "a segment begins here, but not a file");
    else follow(line, static_cast<std::uint64_t>(**seq), chain, last);
    if (!boot && !(first && v_.records == 1) && **mono < mono_us_)
      add(line, "its monotonic time is before that of the record above");
    if (ended_) add(line, "stands behind the session's end");
    if (segment_ended_) add(line, "stands behind the segment's end");
    // In the launcher's own log a session_end names another file and ends nothing.
    ended_ = event == event_name(Event::session_end) && !record.contains("file");
    segment_ended_ = event == event_name(Event::segment_end);
    if (event == event_name(Event::segment_removed))
      removed_[count_of(record, "segment")] = {count_of(record, "first_seq"), count_of(record, "last_seq"),
                                               json::text_of(record, "head")};
    if (event == event_name(Event::log_deleted)) deleted_.insert(json::text_of(record, "head"));
    seq_ = static_cast<std::uint64_t>(**seq);
    mono_us_ = **mono;
    if (v_.first_time.empty()) v_.first_time = time;
    v_.last_time = time;
    trusted_ = true;
  }

  void follow(const Lines::Line& line, std::uint64_t seq, const Chain& chain, const std::string* last) {
    if (last == nullptr) return;
    if (seq != seq_ + 1)
      add(line, "number " + std::to_string(seq) + " where " + std::to_string(seq_ + 1) +
                    " is due: records are missing, added or moved");
    else if (chain.prev != *last) add(line, "does not follow the record before it: one of them was replaced");
  }

  // A restart of the launcher: a chain of its own, whose first record names the end of the one before.
  void new_boot(const Lines::Line& line, const json::Value& record, const std::string* last) {
    if (count_of(record, "seq") != 1) add(line, "a boot begins here, but not its numbers");
    segment_ = 1;
    const bool between = std::exchange(segment_ended_, false);  // the launcher was killed after it had set a segment aside
    if (!record.contains("previous") || !record["previous"].is_object() || last == nullptr) return;
    const json::Value& before = record["previous"];
    if (between && count_of(before, "count") == 0) return;
    if (count_of(before, "count") != seq_ || json::text_of(before, "head") != *last)
      add(line, "the launcher's log before this boot is not the one that it names: files are missing, added or changed");
  }

  void enter_segment(const Lines::Line& line, const json::Value& record, const Chain& chain, std::uint64_t seq,
                     const std::string* last) {
    const std::uint64_t number = std::max<std::uint64_t>(count_of(record, "segment"), 1);
    const std::uint64_t spilled = count_of(record, "spilled");
    const std::uint64_t from = spilled != 0 ? count_of(record, "first_seq") : seq;
    if (spilled != 0 && (count_of(record, "last_seq") + 1 != seq || from + spilled != seq))
      add(line, "says that " + std::to_string(spilled) + " records went to stderr, which its numbers do not");
    v_.spilled += spilled;
    if (spilled != 0) settle_cut(count_of(record, "cut_bytes"));
    const bool whole = spilled != 0 || segment_ended_ || v_.records == 1;
    segment_ended_ = false;
    const bool own = is_launcher_log(file_);
    if (own && v_.records == 1) {
      // The first that is here: what was before it is checked against the record of its deletion.
      const bool boot = seq == 1;
      const json::Value before = boot && record.contains("previous") ? record["previous"] : json::Value::object();
      const std::string head = boot ? json::text_of(before, "head") : std::string(chain.prev);
      if (!head.empty() && head != kNoPrevious) gaps_.push_back({file_, line.number, line.offset, 0, 0, 0, head, true});
    } else if (last != nullptr && (own || number == segment_ + 1 || (number == 1 && v_.records == 1))) {
      if (!whole) add(line, "the segment before it has no end: records are missing");
      else if (from != seq_ + 1 || (spilled == 0 && chain.prev != *last)) follow(line, from, chain, last);
    } else if (last != nullptr) {
      gaps_.push_back({file_, line.number, line.offset, number, seq_ + 1, from - 1,
                       spilled != 0 ? std::string() : std::string(chain.prev), false});
    }
    segment_ = number;
  }

  void settle(const Gap& gap) {
    if (gap.files) {
      if (!deleted_.contains(gap.head))
        add(gap.file, gap.line, gap.offset, "the launcher's log before it is missing, and no record says that it was deleted");
      return;
    }
    const auto it = removed_.find(gap.to - 1);
    if (it != removed_.end() && it->second.first_seq == gap.first_seq && it->second.last_seq == gap.last_seq &&
        (gap.head.empty() || gap.head == it->second.head))
      v_.removed += gap.last_seq + 1 - gap.first_seq;
    else add(gap.file, gap.line, gap.offset, "the segments before it are missing, and no record says that these were removed");
  }

  Verification v_{.head = std::string(kNoPrevious)};
  std::string file_;
  bool first_ = true;    // of the file
  bool trusted_ = true;  // the line before was sound, so this one must follow it
  std::uint64_t seq_ = 0, segment_ = 0;
  std::int64_t mono_us_ = 0;
  bool ended_ = false, segment_ended_ = false;
  Cut cut_;
  Lines::Line ended_at_;
  std::vector<Gap> gaps_;
  std::map<std::uint64_t, Removed> removed_;
  std::set<std::string> deleted_;
};

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  return verdict == Verdict::intact ? "intact" : verdict == Verdict::open ? "open" : "broken";
}

Result<Verification> verify_log(const std::vector<std::string>& paths, const std::optional<Expected>& expected) {
  Checker checker;
  for (const std::string& path : paths) {
    TRY_ASSIGN(Lines lines, Lines::open(path));
    checker.begin(path);
    for (;;) {
      TRY_ASSIGN(const auto line, lines.next());
      if (!line) break;
      checker.line(*line);
    }
    checker.end(lines);
  }
  if (expected) checker.expect(*expected);
  return checker.finish();
}

json::Value verification_json(const Verification& v) {
  json::Value findings = json::Value::array();
  for (const Finding& f : v.findings)
    findings.push_back({{"file", f.file}, {"line", f.line}, {"offset", f.offset}, {"what", f.what}});
  return {{"verdict", verdict_name(v.verdict)},
          {"records", v.records},
          {"removed", v.removed},
          {"spilled", v.spilled},
          {"head", v.head},
          {"first_time", v.first_time},
          {"last_time", v.last_time},
          {"end_checked_against_launcher_log", v.expected_checked},
          {"findings", std::move(findings)}};
}

bool is_launcher_log(std::string_view name) {
  return name == "launcher.ndjson" || (name.starts_with("launcher-") && name.ends_with(".ndjson"));
}

std::string log_of(std::string_view name) {
  static constexpr std::string_view kEnd = ".ndjson";
  if (is_launcher_log(name)) return "launcher.ndjson";
  const std::string_view stem = name.ends_with(kEnd) ? name.substr(0, name.size() - kEnd.size()) : name;
  const auto dash = stem.rfind('-');
  const bool segment = stem.starts_with("s-") && dash != std::string_view::npos && dash > 1 && stem.size() - dash > 6 &&
                       std::ranges::all_of(stem.substr(dash + 1), [](char c) { return c >= '0' && c <= '9'; });
  return segment && name.ends_with(kEnd) ? std::string(stem.substr(0, dash)).append(kEnd) : std::string(name);
}

Result<Logs> logs_of(const std::string& directory) {
  const auto close = [](DIR* d) { ::closedir(d); };
  const std::unique_ptr<DIR, decltype(close)> dir(::opendir(directory.c_str()), close);
  if (!dir) return sys_error("open audit directory " + quote(directory));
  Logs logs;
  while (const dirent* entry = ::readdir(dir.get()))
    if (std::string_view(entry->d_name).ends_with(".ndjson"))
      logs[log_of(entry->d_name)].push_back(directory + "/" + entry->d_name);
  for (auto& [name, paths] : logs) std::ranges::sort(paths);  // "-" before ".": the last one is last
  return logs;
}

Result<Index> read_index(const std::string& directory) {
  TRY_ASSIGN(const Logs logs, logs_of(directory));
  Index index;
  const auto own = logs.find("launcher.ndjson");
  if (own == logs.end()) return index;
  for (const std::string& path : own->second) {
    TRY_ASSIGN(Lines lines, Lines::open(path));
    for (;;) {
      TRY_ASSIGN(const auto line, lines.next());
      if (!line) break;
      const Event* event = std::ranges::find_if(
          kSayEnds, [&](Event e) { return line->text.contains(std::string("\"event\":\"").append(event_name(e)).append("\"")); });
      if (event == std::end(kSayEnds)) continue;
      const auto record = json::parse(line->text, {.max_bytes = kMaxRecord});
      if (!record || !record->is_object() || json::text_of(*record, "file").empty()) continue;
      if (json::text_of(*record, "event") != event_name(*event)) continue;  // of an inner object
      (*event == Event::log_deleted ? index.deleted : index.ended)[json::text_of(*record, "file")] = {
          count_of(*record, "count"), json::text_of(*record, "head"), json::text_of(*record, "key"),
          json::text_of(*record, "signature"), json::text_of(*record, "why")};
    }
  }
  return index;
}

}  // namespace caisson::audit
