#include "launcher/auditor/watch.h"

#include <cerrno>

#include "launcher/auditor/caller.h"
#include "launcher/auditor/decode.h"
#include "launcher/auditor/json_text.h"
#include "launcher/auditor/notify.h"

namespace caisson::auditor {
namespace {

// Every refusal of a session's filter, and so every answer of ours. Never anything that lets a call through: the registers that
// were looked at are the caller's, but what lies behind them can change until the kernel looks (seccomp_unotify(2)).
constexpr int kAnswer = EPERM;
constexpr const char* kAnswerName = "EPERM";

std::string hex_args(const seccomp_data& data) {
  std::string out = "[";
  for (const std::uint64_t arg : data.args) {
    char text[24];
    std::snprintf(text, sizeof text, "%s\"0x%llx\"", out.size() > 1 ? "," : "", static_cast<unsigned long long>(arg));
    out += text;
  }
  return out + "]";
}

}  // namespace

std::pair<std::string, std::string> Watch::rule(int nr) const {
  const std::string number = std::to_string(nr);
  const std::size_t line = refusals_->find("\n" + number + " ");
  if (line == std::string::npos) return {number, ""};
  const std::size_t name = line + number.size() + 2, end = refusals_->find('\n', name);
  const std::size_t space = std::min(refusals_->find(' ', name), end);
  return {refusals_->substr(name, space - name), space < end ? refusals_->substr(space + 1, end - space - 1) : ""};
}

bool Watch::answer(std::int64_t now_us, int proc, TokenBucket& all, Sink& sink) {
  seccomp_notif call;
  if (!receive(listener_.get(), call)) return true;  // its process was killed in between
  if (session_.empty()) {
    refuse(listener_.get(), call.id, kAnswer);
    return true;
  }
  const bool room = sink.room();
  Verdict verdict = budget_.take(now_us, all);
  if (verdict == Verdict::record && !room) verdict = Verdict::count;
  const int nr = call.data.nr;
  if (verdict != Verdict::record) {
    if (counts_.empty()) counted_since_us_ = now_us;
    ++counts_[nr];
    ++dropped_;
    refuse(listener_.get(), call.id, kAnswer);
    if (verdict == Verdict::count) return true;
    // Who calls so often learns nothing from the answer: from here on the kernel gives it, faster and without us.
    put_counts(now_us, sink);
    listener_.reset();
    sink.put(Type::closed, session_, totals("flood"));
    return false;
  }
  // While the caller waits its pid is its own.
  Caller caller = read_caller(proc, static_cast<int>(call.pid));
  if (!waits(listener_.get(), call.id)) caller = {static_cast<int>(call.pid), 0, 0, 0, ""};
  refuse(listener_.get(), call.id, kAnswer);
  ++recorded_;
  const auto [name, why] = rule(nr);
  JsonText out;
  out.string("syscall", name).number("nr", nr).raw("args", hex_args(call.data)).raw("decoded", decode(nr, call.data.args));
  out.string("errno", kAnswerName).string("rule", why);
  if (caller.session_pid > 0) out.number("pid", caller.session_pid).number("tid", caller.session_tid);
  if (caller.pid > 0) out.number("launcher_pid", caller.pid);
  out.number("launcher_tid", caller.tid).number("at_us", now_us);
  if (!caller.comm.empty()) out.raw("untrusted", JsonText().string("comm", caller.comm).text());
  sink.put(Type::denial, session_, out.text());
  return true;
}

void Watch::put_counts(std::int64_t now_us, Sink& sink) {
  if (counts_.empty()) return;
  std::string calls = "[";
  std::uint64_t sum = 0;
  for (const auto& [nr, count] : counts_) {
    JsonText one;
    one.string("syscall", rule(nr).first).string("errno", kAnswerName).number("count", static_cast<std::int64_t>(count));
    calls.append(calls.size() > 1 ? "," : "").append(one.text());
    sum += count;
  }
  JsonText out;
  out.number("dropped", static_cast<std::int64_t>(sum)).raw("calls", calls + "]");
  out.number("from_us", counted_since_us_).number("to_us", now_us);
  counts_.clear();
  sink.put(Type::dropped, session_, out.text());
}

std::string Watch::totals(const char* reason) const {
  JsonText out;
  if (reason != nullptr) out.string("reason", reason).string("from_now_on", "refused calls answer ENOSYS and are not recorded");
  out.number("recorded", static_cast<std::int64_t>(recorded_)).number("dropped", static_cast<std::int64_t>(dropped_));
  return out.text();
}

void Watch::end(std::int64_t now_us, Sink& sink) {
  if (session_.empty()) return;
  put_counts(now_us, sink);
  sink.put(Type::ended, session_, totals(nullptr));
}

}  // namespace caisson::auditor
