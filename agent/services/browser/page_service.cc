#include "agent/services/browser/page_service.h"

#include "agent/metrics/registry.h"
#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

// A driver that says nothing for so long after the end of its operation is replaced.
constexpr std::chrono::seconds kGrace{5};
constexpr std::chrono::seconds kIdle{600};
constexpr int kBrowserEnded = 6;                                          // exit status of the driver
constexpr std::size_t kWritten = 4 * 1024 * 1024, kCopied = 1024 * 1024;  // of a file, in one call
constexpr json::Bounds kAnswerText{.max_bytes = 64 * 1024 * 1024, .max_depth = 256, .max_values = 4 * 1024 * 1024};

ProgramSpec page_driver(const Config& config) {
  ProgramSpec spec{.name = "page driver", .domain = "browser", .label = "pages", .workspace = config.workspace};
  spec.has_protocol = true;
  spec.limits.frames = frames::kPageFrames;
  spec.limits.idle = kIdle;
  spec.limits.most_failures = 5;
  spec.limits.blameless_exit = kBrowserEnded;  // however often the browser is started anew
  return spec;
}

Result<PageAnswer> answer_of(frames::Frame frame) {
  PageAnswer out;
  const json::Value& head = frame.head;
  TRY_ASSIGN(const auto ok, json::get_bool(head, "ok"));
  TRY_ASSIGN(const auto invalid, json::get_bool(head, "invalid"));
  out.ok = ok.value_or(false);
  out.invalid = invalid.value_or(false);
  out.message = json::text_of(head, "message").substr(0, 4096);
  if (const std::string hint = json::text_of(head, "hint"); !hint.empty()) out.hint = hint.substr(0, 8192);
  if (const auto data = head.find("data"); data != head.end()) out.data = *data;
  const std::string body = json::text_of(head, "body");
  if (body == "data") {
    TRY_ASSIGN(out.data, json::parse(frame.body, kAnswerText));
  } else if (body == "file") {
    out.has_file = true;
    out.file = std::move(frame.body);
  }
  return out;
}

}  // namespace

PageService::PageService(bridge::LauncherClient& launcher, const Config& config, BrowserService& browser, FileService& files)
    : launcher_(launcher),
      budget_(config.budget),
      browser_(browser),
      files_(files),
      supervisor_(launcher, page_driver(config)),
      turns_(launcher.executor()) {
  supervisor_.set_busy([this] { return worker_ && worker_->calls() > 0; });
  supervisor_.spec().opened = [this](Program::Pointer program) {
    worker_ = Worker::over(std::move(program), {.budget = budget_});
  };
}

void PageService::serve_workspace(std::string name) {
  supervisor_.spec().workspace = std::move(name);
  supervisor_.spec().session = nullptr;
  supervisor_.forget("the workspace has ended");
  worker_ = nullptr;
}

task<Worker::Pointer> PageService::worker() {
  CO_TRY_ASSIGN(const auto session, co_await browser_.session());
  if (supervisor_.spec().session != session) {
    supervisor_.spec().session = session;
    supervisor_.spec().command.argv = {session->tools + "/driver/page_driver", BrowserService::kSocket};
    supervisor_.forget("the browser was started anew");
  }
  CO_TRY(co_await supervisor_.program());
  co_return worker_;
}

task<PageAnswer> PageService::call(frames::PageOp op, json::Value head, std::chrono::milliseconds within) {
  auto answer = co_await carry_out(op, std::move(head), within);
  const std::string_view outcome = !answer ? "error" : answer->ok ? "done" : answer->invalid ? "refused" : "failed";
  metrics::registry().add(metrics::Id::page_operations, {frames::page_op_name(op), outcome});
  co_return answer;
}

task<PageAnswer> PageService::carry_out(frames::PageOp op, json::Value head, std::chrono::milliseconds within) {
  Turns::Place place(turns_);
  while (!place.first()) (void)co_await place.changed();
  CO_TRY_ASSIGN(const Worker::Pointer driver, co_await worker());
  head["op"] = frames::page_op_name(op);
  head["timeout_ms"] = within.count();
  auto reply = co_await Worker::call(driver, std::move(head), "", bridge::Clock::now() + within + kGrace);
  if (!reply && reply.error().code == Code::timeout) (void)co_await supervisor_.stop("it did not answer");
  if (!reply) co_return std::unexpected(std::move(reply).error());
  co_return answer_of(std::move(*reply));
}

task<void> PageService::hold(bool held) {
  if (!worker_ || !worker_->program()->alive()) co_return Status{};
  co_return co_await launcher_.exec_signal(worker_->program()->exec(), held ? "SIGSTOP" : "SIGCONT");
}

asio::awaitable<FileReply> PageService::save(std::string path, std::string bytes) {
  for (std::size_t done = 0;; done += kWritten) {
    json::Value head = {{"path", path}, {"append", done > 0}};
    FileReply reply = co_await files_.call(frames::FileOp::write, std::move(head), bytes.substr(done, kWritten));
    if (!reply || done + kWritten >= bytes.size()) co_return reply;
  }
}

asio::awaitable<FileReply> PageService::copy(std::string from, std::string to) {
  auto worker = co_await files_.worker();
  if (!worker) co_return std::unexpected(FileFailure{0, from, "io_error", worker.error().text()});
  json::Value asked = {{"path", from}};
  FileReply opened = co_await FileService::call_on(*worker, frames::FileOp::download_open, std::move(asked));
  if (!opened) co_return opened;
  const json::Value handle = opened->head.contains("handle") ? opened->head["handle"] : json::Value();
  FileReply done;
  for (std::size_t at = 0;;) {
    json::Value wanted = {{"handle", handle}, {"offset", at}, {"most", kCopied}};
    FileReply part = co_await FileService::call_on(*worker, frames::FileOp::download_part, std::move(wanted));
    if (!part) {
      done = std::move(part);
      break;
    }
    const std::size_t size = part->body.size();
    json::Value head = {{"path", to}, {"append", at > 0}};
    if (size > 0 || at == 0)
      done = co_await FileService::call_on(*worker, frames::FileOp::write, std::move(head), std::move(part->body));
    at += size;
    if (!done || size < kCopied) break;
  }
  json::Value closed = {{"handle", handle}};
  (void)co_await FileService::call_on(*worker, frames::FileOp::download_close, std::move(closed));
  co_return done;
}

}  // namespace caisson::services
