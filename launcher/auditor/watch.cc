#include "launcher/auditor/watch.h"

#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <utility>

#include "launcher/auditor/caller.h"
#include "launcher/auditor/decode.h"
#include "launcher/common/base/scm.h"
#include "launcher/common/telling/json_text.h"
#include "launcher/common/watching/notify.h"

namespace caisson::auditor {
namespace {

// Every refusal of a session's filter, and so every answer of ours. Never anything that lets a call through: the registers that
// were looked at are the caller's, but what lies behind them can change until the kernel looks (seccomp_unotify(2)).
constexpr int kAnswer = EPERM;
constexpr const char* kAnswerName = "EPERM";
constexpr int kAnyCall = -1;
constexpr const char* kNotRecorded = "refused calls answer ENOSYS and are not recorded";
// Of a path in a record. Escaped it takes six times that, and two of them must fit into one part of a message.
constexpr std::size_t kMostOfPath = 1024;

std::string hex_args(const seccomp_data& data) {
  std::string out = "[";
  for (const std::uint64_t arg : data.args) {
    char text[24];
    std::snprintf(text, sizeof text, "%s\"0x%llx\"", out.size() > 1 ? "," : "", static_cast<unsigned long long>(arg));
    out += text;
  }
  return out + "]";
}

void put_caller(JsonText& out, const Caller& caller, std::int64_t now_us) {
  if (caller.session_pid > 0) out.number("pid", caller.session_pid).number("tid", caller.session_tid);
  if (caller.pid > 0) out.number("launcher_pid", caller.pid);
  out.number("launcher_tid", caller.tid).number("at_us", now_us);
}

// In the order of the enumerators; open and access have become others by then.
constexpr const char* kWants[] = {"look", "look", "look", "look", "execute", "write", "write", "write", "connect"};
static_assert(std::size(kWants) == static_cast<std::size_t>(Want::connect) + 1);

bool is_socket(const Fd& fd) {
  char byte = 0;
  return fd && (scm::receive(fd.get(), &byte, 0, MSG_PEEK | MSG_DONTWAIT).size >= 0 || errno != ENOTSOCK);
}

}  // namespace

std::shared_ptr<const Rules> Rules::parse(std::string_view text) {
  auto out = std::make_shared<Rules>();
  out->text = text;
  const std::string_view all = out->text;
  const std::size_t view = all.find('\0');
  out->refusals = all.substr(0, view);
  out->observed = view != std::string_view::npos;
  if (out->observed) out->view = View::parse(all.substr(view + 1));
  return out;
}

bool Rules::find(int nr, std::string& name, std::string& why) const {
  const std::string number = std::to_string(nr);
  const std::size_t line = refusals.find("\n" + number + " ");
  if (line == std::string_view::npos) {
    name = nr == kAnyCall ? "any" : number;
    why.clear();
    return false;
  }
  const std::size_t begin = line + number.size() + 2, end = std::min(refusals.find('\n', begin), refusals.size());
  const std::size_t space = std::min(refusals.find(' ', begin), end);
  name = refusals.substr(begin, space - begin);
  why = space < end ? refusals.substr(space + 1, end - space - 1) : "";
  return true;
}

void Watch::count(Counts& counts, int nr, std::int64_t now_us) {
  if (counted_since_us_ == 0) counted_since_us_ = now_us;
  ++counts[nr];
}

Watch::Watch(std::string session, Fd listener, std::shared_ptr<const Rules> rules)
    : session_(std::move(session)), listener_(std::move(listener)), relayed_(is_socket(listener_)), rules_(std::move(rules)) {}

bool Watch::next(seccomp_notif& call, bool& over) {
  if (!relayed_) return receive(listener_.get(), call);  // false: its process was killed in between
  const scm::Received came = scm::receive(listener_.get(), &call, sizeof call, MSG_DONTWAIT);
  for (std::size_t i = 0; i < came.count; ++i) ::close(came.fds[i]);
  if (came.size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  over = came.size != static_cast<ssize_t>(sizeof call) || came.cut();
  return !over;
}

void Watch::refuse(std::uint64_t call) {
  if (!relayed_) return auditor::refuse(listener_.get(), call, kAnswer);
  const Answered answer{call};
  (void)scm::send(listener_.get(), &answer, sizeof answer, nullptr, 0, MSG_DONTWAIT);
}

bool Watch::answer(std::int64_t now_us, int proc, TokenBucket& all, Sink& sink) {
  seccomp_notif call;
  bool over = false;
  if (!next(call, over)) {
    if (over) end(now_us, sink);
    return !over;
  }
  if (session_.empty()) return refuse(call.id), true;
  const bool room = sink.room();
  Verdict verdict = budget_.take(now_us, all);
  if (verdict == Verdict::record && !room) verdict = Verdict::count;
  if (verdict == Verdict::record) {
    record(call, now_us, proc, sink);
    return true;
  }
  count(counts_, call.data.nr, now_us);
  ++dropped_;
  refuse(call.id);
  if (verdict == Verdict::count) return true;
  // Who calls so often learns nothing from the answer: from here on the kernel gives it, faster and without us.
  lose(now_us, sink, "flood", kNotRecorded);
  return false;
}

// Answers as soon as the caller is known, where the answer is ours.
void Watch::record(const seccomp_notif& call, std::int64_t now_us, int proc, Sink& sink) {
  // While the caller waits its pid is its own.
  Caller caller = read_caller(proc, static_cast<int>(call.pid));
  if (listener_) {
    // A connector has the session's own uid: what it says of a call is as much as the session's word.
    if (!relayed_ && !waits(listener_.get(), call.id)) caller = {static_cast<int>(call.pid), 0, 0, 0, ""};
    refuse(call.id);
  }
  ++recorded_;
  std::string name, why;
  (void)rules_->find(call.data.nr, name, why);
  JsonText out;
  out.string("syscall", name).number("nr", call.data.nr).raw("args", hex_args(call.data));
  out.raw("decoded", decode(call.data.nr, call.data.args)).string("errno", kAnswerName).string("rule", why);
  put_caller(out, caller, now_us);
  if (!caller.comm.empty()) out.raw("untrusted", JsonText().string("comm", caller.comm).text());
  sink.put(Type::denial, session_, out.text());
}

std::uint32_t Watch::told(const Texts& told, std::int64_t now_us, int proc, TokenBucket& all, Sink& sink) {
  untold(told.head, now_us);
  if (session_.empty()) return 0;
  const int nr = told.head.call.data.nr;
  std::string name, why;
  if (rules_->find(nr, name, why)) {
    const bool looked = budget_.look(now_us);
    if (looked && sink.room() && budget_.record(now_us, all)) {
      record(told.head.call, now_us, proc, sink);
      return 0;
    }
    count(counts_, nr, now_us);
    ++dropped_;
    return looked ? 0 : kRestMs;
  }
  const PathCall* call = observed_call(nr);
  if (call == nullptr) return 0;
  look(*call, call->want, told, 0, now_us, proc, all, sink);
  if (call->second != Want::nothing) look(*call, call->second, told, 2, now_us, proc, all, sink);
  return paths_.look(now_us) ? 0 : kRestMs;
}

void Watch::look(const PathCall& call, Want want, const Texts& told, std::size_t path, std::int64_t now_us, int proc,
                 TokenBucket& all, Sink& sink) {
  const auto &given = told.texts[path], &base = told.texts[path + 1];
  // What cannot be read the kernel cannot read either, mostly, or it is no directory; what it says is not known here.
  if (!given || !base || (!given->starts_with('/') && !base->starts_with('/'))) {
    if (given && given->empty()) return;
    if (counted_since_us_ == 0) counted_since_us_ = now_us;
    ++unseen_now_, ++paths_unseen_;
    return;
  }
  const seccomp_data& data = told.head.call.data;
  const std::uint64_t flags = data.nr == SYS_openat2 ? told.head.open_flags : call.flags < 0 ? 0 : data.args[call.flags];
  const std::string normal = rules_->view.normal(*given, *base);
  want = wanted(want, flags);
  const Denied* denied = rules_->view.judge(want, normal);
  if (denied == nullptr) return;
  if (!sink.room() || !paths_.record(now_us, all)) {
    ++paths_dropped_;
    return count(path_counts_, data.nr, now_us);
  }
  ++paths_recorded_;
  const Caller caller = read_caller(proc, static_cast<int>(told.head.call.pid));
  JsonText untrusted, out;
  untrusted.string("path", std::string_view(normal).substr(0, kMostOfPath));
  if (normal.size() > kMostOfPath) untrusted.number("path_bytes", static_cast<std::int64_t>(normal.size()));
  if (*given != normal) untrusted.string("given", given->substr(0, kMostOfPath));
  if (!caller.comm.empty()) untrusted.string("comm", caller.comm);
  out.raw("advisory", "true")
      .string("operation", call.operation)
      .string("wants", kWants[static_cast<std::size_t>(want)])
      .number("nr", data.nr);
  out.string("expected_errno", denied->error).string("why", denied->why);
  put_caller(out, caller, now_us);
  out.raw("untrusted", untrusted.text());
  sink.put(Type::path, session_, out.text());
}

void Watch::untold(const Told& head, std::int64_t now_us) {
  if (session_.empty() || (head.refused == 0 && head.passed == 0)) return;
  if (counted_since_us_ == 0) counted_since_us_ = now_us;
  if (head.refused > 0) counts_[kAnyCall] += head.refused;
  dropped_ += head.refused;
  unseen_now_ += head.passed, paths_unseen_ += head.passed;
}

void Watch::put_counts(Counts& counts, bool advisory, std::int64_t now_us, Sink& sink) {
  std::string calls = "[";
  std::uint64_t sum = 0;
  for (const auto& [nr, count] : counts) {
    JsonText one;
    std::string name, why;
    if (rules_->find(nr, name, why) || !advisory) one.string("syscall", name).string("errno", kAnswerName);
    else one.string("operation", observed_call(nr)->operation).number("nr", nr);
    one.number("count", static_cast<std::int64_t>(count));
    calls.append(calls.size() > 1 ? "," : "").append(one.text());
    sum += count;
  }
  counts.clear();
  JsonText out;
  if (advisory) out.raw("advisory", "true");
  out.number("dropped", static_cast<std::int64_t>(sum)).raw("calls", calls + "]");
  if (advisory) out.number("unseen", static_cast<std::int64_t>(std::exchange(unseen_now_, 0)));
  out.number("from_us", counted_since_us_).number("to_us", now_us);
  sink.put(Type::dropped, session_, out.text());
}

void Watch::put_counts(std::int64_t now_us, Sink& sink) {
  if (!counts_.empty()) put_counts(counts_, false, now_us, sink);
  if (!path_counts_.empty() || unseen_now_ > 0) put_counts(path_counts_, true, now_us, sink);
  counted_since_us_ = 0;
}

std::string Watch::totals(const char* reason, const char* from_now_on) const {
  JsonText out;
  if (reason != nullptr) out.string("reason", reason).string("from_now_on", from_now_on);
  out.number("recorded", static_cast<std::int64_t>(recorded_)).number("dropped", static_cast<std::int64_t>(dropped_));
  if (observed()) {
    JsonText paths;
    paths.number("recorded", static_cast<std::int64_t>(paths_recorded_));
    paths.number("dropped", static_cast<std::int64_t>(paths_dropped_)).number("unseen", static_cast<std::int64_t>(paths_unseen_));
    out.raw("paths", paths.text());
  }
  return out.text();
}

void Watch::end(std::int64_t now_us, Sink& sink) {
  if (session_.empty()) return;
  put_counts(now_us, sink);
  sink.put(Type::ended, session_, totals(nullptr, nullptr));
}

void Watch::lose(std::int64_t now_us, Sink& sink, const char* reason, const char* from_now_on) {
  put_counts(now_us, sink);
  listener_.reset();
  if (!session_.empty()) sink.put(Type::closed, session_, totals(reason, from_now_on));
}

}  // namespace caisson::auditor
