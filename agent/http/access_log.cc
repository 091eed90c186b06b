#include "agent/http/access_log.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>

#include "launcher/common/base/sys.h"

namespace caisson::http {
namespace {

// Of escaped text. A line is shorter than PIPE_BUF in any case.
constexpr std::size_t kLongestPath = 512, kLongestText = 200;
constexpr std::chrono::milliseconds kTogether{50};

// As a JSON string. What is not printable ASCII becomes an escape of its byte, so a terminal that shows the log obeys nothing.
void append_text(std::string& out, std::string_view text, std::size_t longest) {
  out += '"';
  const std::size_t end = out.size() + longest;
  for (const char c : text) {
    if (out.size() >= end) {
      out += "...";
      break;
    }
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '"' || c == '\\') {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      out += escape;
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_field(std::string& out, std::string_view name, std::string_view text, std::size_t longest = kLongestText) {
  out.append(",\"").append(name).append("\":");
  append_text(out, text, longest);
}

void append_padded(std::string& out, std::int64_t number, std::size_t digits) {
  const std::string text = std::to_string(number);
  out.append(digits - std::min(digits, text.size()), '0').append(text);
}

void append_ms(std::string& out, std::chrono::microseconds took) {
  out.append(",\"ms\":").append(std::to_string(took.count() / 1000)).append(".");
  append_padded(out, took.count() % 1000, 3);
}

// Microseconds alone are new with each line: the calendar is asked once a second.
void append_time(std::string& out, std::string_view kind = "access") {
  constexpr std::int64_t kSecond = 1'000'000'000;
  static std::int64_t made_at = -1;
  static std::string until_second;
  const std::int64_t now = sys::realtime_ns();
  if (now / kSecond != made_at) {
    until_second = sys::rfc3339(now).substr(0, sizeof "2026-01-01T00:00:00" - 1);
    made_at = now / kSecond;
  }
  out.append("{\"log\":\"").append(kind).append("\",\"time\":\"").append(until_second).append(".");
  append_padded(out, now % kSecond / 1000, 6);
  out.append("Z\"");
}

}  // namespace

std::string access_text(const AccessLine& line) {
  std::string out;
  out.reserve(kLongestText + line.path.size());
  append_field(out, "request_id", line.id);
  append_field(out, "remote", line.remote);
  append_field(out, "scheme", line.scheme);
  append_field(out, "method", line.method);
  append_field(out, "path", line.path, kLongestPath);
  out += ",\"status\":" + (line.status == 0 ? std::string("null") : std::to_string(line.status));
  out += ",\"bytes\":" + std::to_string(line.bytes);
  append_ms(out, line.took);
  if (!line.user_agent.empty()) append_field(out, "user_agent", line.user_agent);
  if (!line.workspace.empty()) append_field(out, "workspace", line.workspace);
  if (line.port != 0) out += ",\"port\":" + std::to_string(line.port);
  out += "}\n";
  return out;
}

std::string call_text(const CallLine& line) {
  std::string out;
  append_field(out, "workspace", line.workspace);
  append_field(out, "identity", line.identity);
  append_field(out, "server", line.server);
  append_field(out, "tool", line.tool);
  append_field(out, "arguments_sha256", line.arguments_digest);
  append_field(out, "outcome", line.outcome);
  append_ms(out, line.took);
  out += "}\n";
  return out;
}

void AccessLog::add(std::string_view kind, std::string rest) {
  if (!on()) return;
  std::string text;
  append_time(text, kind);
  text += rest;
  if (waiting_.size() + text.size() > kMostWaiting) ++dropped_;
  else waiting_ += text;
  flush_later();
}

void AccessLog::flush_later() {
  if (timed_) return;
  timed_ = true;
  timer_.expires_after(kTogether);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;  // this is gone
    timed_ = false;
    flush();
    if (!waiting_.empty()) flush_later();
  });
}

void AccessLog::flush() {
  if (!on()) return;
  std::size_t written = 0;
  while (written < waiting_.size()) {
    pollfd ready{fd_, POLLOUT, 0};
    if (::poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) break;
    // Whole lines, each of which is shorter than PIPE_BUF, so that lines of other processes do not stand inside one.
    const std::string_view rest = std::string_view(waiting_).substr(written, PIPE_BUF);
    const ssize_t size = ::write(fd_, rest.data(), rest.rfind('\n') + 1);
    if (size <= 0) break;
    written += static_cast<std::size_t>(size);
  }
  waiting_.erase(0, written);
  if (dropped_ > 0 && waiting_.empty()) {
    append_time(waiting_);
    waiting_ += ",\"dropped\":" + std::to_string(dropped_) + "}\n";
    dropped_ = 0;
  }
}

}  // namespace caisson::http
