// `caisson audit show` and `audit tail`: records of one log, for people or as JSON. Reads only.
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <deque>
#include <utility>

#include "launcher/cli/args.h"
#include "launcher/cli/audit/show.h"
#include "launcher/cli/commands.h"
#include "launcher/cli/logs.h"
#include "launcher/common/audit/log.h"
#include "launcher/common/audit_lines/lines.h"
#include "launcher/common/base/json.h"
#include "launcher/common/base/sys.h"

namespace caisson::cli {
namespace {

struct Reading {
  LogReader lines;
  audit::Filter filter;
  audit::Style style;
  bool json = false;
  bool follow = false;
  std::size_t last = 10;
  std::uint64_t broken = 0;
  unsigned ended_segment = 0;  // the file that is read goes no further
};

Result<Reading> open_log(const Args& args, const Options& options) {
  TRY_ASSIGN(audit::Filter filter, filter_of(args));
  auto lines = LogReader::open(log_files(options.audit, args.words().empty() ? "launcher" : args.words()[0]));
  if (!lines) return std::unexpected(explain_access(std::move(lines.error())));
  Reading reading{.lines = *std::move(lines), .filter = std::move(filter), .json = options.json, .follow = args.has("--follow")};
  reading.style.colour = ::isatty(STDOUT_FILENO) == 1 && ::getenv("NO_COLOR") == nullptr;
  if (args.has("--full")) reading.style.max_value = 0;
  if (const auto count = args.last("--lines")) {
    const auto [end, error] = std::from_chars(count->data(), count->data() + count->size(), reading.last);
    if (error != std::errc{} || *end != '\0') return fail(Code::invalid_argument, "--lines takes a number, not " + quote(*count));
  }
  return reading;
}

struct Shown {
  std::string text;            // empty: filtered out
  bool end = false;            // of a session
  unsigned ended_segment = 0;  // of its log
};

std::string ascii(const json::Value& value) { return value.dump(-1, ' ', true, json::Value::error_handler_t::replace); }

// Records are printed from their parsed form, never as read: a file that was tampered with may hold anything.
Shown shown(Reading& reading, const audit::Lines::Line& line) {
  const auto record = line.whole ? audit::parse_record(line.text) : fail(Code::limit, "too long");
  if (!record) {
    ++reading.broken;
    if (!reading.json) return {audit::show_broken(line.text, reading.style)};
    return {ascii({{"broken", std::string(line.text)}})};
  }
  const auto event = record->find("event");
  Shown out{.end = event != record->end() && *event == audit::event_name(audit::Event::session_end) && !record->contains("file")};
  if (event != record->end() && *event == audit::event_name(audit::Event::segment_end))
    if (const auto number = json::get_int(*record, "segment"); number && *number)
      out.ended_segment = static_cast<unsigned>(**number);
  if (!reading.filter.match(*record)) return out;
  out.text = reading.json ? ascii(*record) : audit::show(*record, reading.style);
  return out;
}

// Prints what is there; true: the session has ended.
Result<bool> print_new(Reading& reading) {
  for (;;) {
    if (reading.ended_segment != 0) {
      TRY_ASSIGN(const bool there, reading.lines.advance(reading.ended_segment));
      if (!there) break;
      reading.ended_segment = 0;
    }
    TRY_ASSIGN(const auto line, reading.lines.next());
    if (!line) break;
    const Shown record = shown(reading, *line);
    if (!record.text.empty()) print(record.text + "\n");
    if (record.end) return true;
    reading.ended_segment = record.ended_segment;
  }
  std::fflush(stdout);
  return false;
}

// Until the session's end, SIGINT or SIGTERM. inotify wakes us; the timeout covers file systems that do not tell.
Status follow(Reading& reading) {
  sigset_t stop;
  ::sigemptyset(&stop);
  ::sigaddset(&stop, SIGINT);
  ::sigaddset(&stop, SIGTERM);
  if (::sigprocmask(SIG_BLOCK, &stop, nullptr) != 0) return sys_error("sigprocmask");
  const Fd signals(::signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK));
  const Fd changes(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  for (;;) {
    // Again each time: the file may be another, and watching the same one twice is watching it once.
    const std::string path = "/proc/self/fd/" + std::to_string(reading.lines.fd().get());
    if (changes) (void)::inotify_add_watch(changes.get(), path.c_str(), IN_MODIFY);
    TRY_ASSIGN(const bool ended, print_new(reading));
    if (ended) return {};
    pollfd fds[] = {{signals.get(), POLLIN, 0}, {changes.get(), POLLIN, 0}};
    if (::poll(fds, 2, 500) < 0 && errno != EINTR) return sys_error("poll");
    if (fds[0].revents != 0) return {};
    char ignored[4096];
    if (fds[1].revents != 0) (void)::read(changes.get(), ignored, sizeof ignored);
  }
}

}  // namespace

Result<int> audit_show(const Args& args, const Options& options) {
  TRY_ASSIGN(Reading reading, open_log(args, options));
  if (reading.json) print("[");
  for (bool first = true;;) {
    TRY_ASSIGN(const auto line, reading.lines.next());
    if (!line) break;
    const Shown record = shown(reading, *line);
    if (record.text.empty()) continue;
    if (reading.json && !std::exchange(first, false)) print(",\n");
    print(record.text + (reading.json ? "" : "\n"));
  }
  if (reading.json) print("]\n");
  return status_of(reading.broken);
}

Result<int> audit_tail(const Args& args, const Options& options) {
  TRY_ASSIGN(Reading reading, open_log(args, options));
  std::deque<std::string> last;
  bool ended = false;
  for (;;) {
    TRY_ASSIGN(const auto line, reading.lines.next());
    if (!line) break;
    Shown record = shown(reading, *line);
    ended = record.end;
    reading.ended_segment = record.ended_segment;
    if (record.text.empty()) continue;
    last.push_back(std::move(record.text));
    if (last.size() > reading.last) last.pop_front();
  }
  for (const std::string& text : last) print(text + "\n");
  if (reading.follow && !ended) TRY(follow(reading));
  return status_of(reading.broken);
}

}  // namespace caisson::cli
