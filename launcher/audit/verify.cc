#include "launcher/audit/verify.h"

#include <dirent.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "launcher/audit/lines.h"
#include "launcher/audit/log.h"
#include "launcher/base/hash.h"

namespace caisson::audit {
namespace {

constexpr std::size_t kHex = 64;

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
  void line(const Lines::Line& line) {
    const std::string last = std::move(v_.head);
    const bool trusted = std::exchange(trusted_, false);  // behind a broken line, numbers and links start afresh
    v_.head.clear();
    if (!line.whole) return add(line, "longer than a record can be");
    const auto chain = split(line.text);
    if (!chain) return add(line, "not a record as the launcher writes it");
    v_.head = chain->hash;
    ++v_.records;
    if (sha256_hex(std::string(chain->body) + "}") != chain->hash) return add(line, "changed: its hash does not match its bytes");
    const auto record = parse_record(line.text);
    if (!record) return add(line, "not a strict JSON object (" + record.error().what + ")");
    members(line, *record, *chain, trusted ? &last : nullptr);
  }

  void expect(const Expected& expected, const Lines::Line& at) {
    v_.expected_checked = true;
    const std::string counts =
        "the launcher's log counts " + std::to_string(expected.count) + " records, here are " + std::to_string(v_.records);
    if (v_.records < expected.count) add(at, "cut: " + counts);
    else if (v_.records > expected.count) add(at, "added to: " + counts);
    else if (v_.head != expected.head)
      add(at, "rewritten: the chain is whole, but its head is not the one in the launcher's log");
  }

  void add(const Lines::Line& line, std::string what) {
    if (v_.findings.size() < kMaxFindings) v_.findings.push_back({line.number, line.offset, std::move(what)});
  }

  Verification finish() {
    v_.verdict = !v_.findings.empty() ? Verdict::broken : ended_ ? Verdict::intact : Verdict::open;
    return std::move(v_);
  }

 private:
  void members(const Lines::Line& line, const json::Value& record, const Chain& chain, const std::string* last) {
    const auto seq = json::get_int(record, "seq"), mono = json::get_int(record, "mono_us");
    const auto event = json::get_string(record, "event"), time = json::get_string(record, "time");
    if (!seq || !*seq || !mono || !*mono || !event || !*event || !time || !*time)
      return add(line, "lacks seq, time, mono_us or event");
    if (last != nullptr && **seq != seq_ + 1)
      add(line, "number " + std::to_string(**seq) + " where " + std::to_string(seq_ + 1) +
                    " is due: records are missing, added or moved");
    else if (last != nullptr && chain.prev != *last) add(line, "does not follow the record before it: one of them was replaced");
    else if (**mono < mono_us_) add(line, "its monotonic time is before that of the record above");
    if (ended_) add(line, "stands behind the session's end");
    // In the launcher's own log a session_end names another file and ends nothing.
    ended_ = **event == event_name(Event::session_end) && !record.contains("file");
    seq_ = **seq;
    mono_us_ = **mono;
    if (v_.first_time.empty()) v_.first_time = **time;
    v_.last_time = **time;
    trusted_ = true;
  }

  Verification v_{.head = std::string(kNoPrevious)};
  bool trusted_ = true;  // the line before was sound, so this one must follow it
  std::int64_t seq_ = 0;
  std::int64_t mono_us_ = 0;
  bool ended_ = false;
};

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  return verdict == Verdict::intact ? "intact" : verdict == Verdict::open ? "open" : "broken";
}

Result<Verification> verify_file(const std::string& path, const std::optional<Expected>& expected) {
  TRY_ASSIGN(Lines lines, Lines::open(path));
  Checker checker;
  for (;;) {
    TRY_ASSIGN(const auto line, lines.next());
    if (!line) break;
    checker.line(*line);
  }
  const Lines::Line end{.text = {}, .number = lines.count() + 1, .offset = lines.offset()};
  if (!lines.rest().empty())
    checker.add(end, "cut: " + std::to_string(lines.rest().size()) + " bytes of a record without its end");
  else if (lines.count() == 0) checker.add(end, "empty: a log has at least one record");
  if (expected) checker.expect(*expected, end);
  return checker.finish();
}

json::Value verification_json(const Verification& v) {
  json::Value findings = json::Value::array();
  for (const Finding& f : v.findings) {
    json::Value item = json::Value::object();
    item["line"] = f.line, item["offset"] = f.offset, item["what"] = f.what;
    findings.push_back(std::move(item));
  }
  json::Value out = json::Value::object();
  out["verdict"] = verdict_name(v.verdict);
  out["records"] = v.records, out["head"] = v.head, out["first_time"] = v.first_time, out["last_time"] = v.last_time;
  out["end_checked_against_launcher_log"] = v.expected_checked;
  out["findings"] = std::move(findings);
  return out;
}

bool is_launcher_log(std::string_view name) {
  return name == "launcher.ndjson" || (name.starts_with("launcher-") && name.ends_with(".ndjson"));
}

Result<Index> read_index(const std::string& directory) {
  const auto close = [](DIR* d) { ::closedir(d); };
  const std::unique_ptr<DIR, decltype(close)> dir(::opendir(directory.c_str()), close);
  if (!dir) return sys_error("open " + quote(directory));
  Index index;
  while (const dirent* entry = ::readdir(dir.get())) {
    if (!is_launcher_log(entry->d_name)) continue;
    TRY_ASSIGN(Lines lines, Lines::open(directory + "/" + entry->d_name));
    for (;;) {
      TRY_ASSIGN(const auto line, lines.next());
      if (!line) break;
      if (!line->text.contains("\"event\":\"session_end\"")) continue;
      const auto record = json::parse(line->text, {.max_bytes = kMaxRecord});
      if (!record) continue;
      const auto file = json::get_string(*record, "file"), head = json::get_string(*record, "head");
      const auto count = json::get_int(*record, "count");
      if (file && *file && head && *head && count && *count) index[**file] = {static_cast<std::uint64_t>(**count), **head};
    }
  }
  return index;
}

}  // namespace caisson::audit
