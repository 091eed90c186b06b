#include "agent/services/files/file_service.h"

#include "launcher/base/fields.h"

namespace caisson::services {
namespace {

// What one operation may take: a search through a large tree, a file on a slow disk.
constexpr double kCallSeconds = 300;
constexpr frames::Limits kAccepted{.head_bytes = 1024 * 1024, .body_bytes = 32 * 1024 * 1024, .head_values = 64 * 1024};

FileFailure worker_failure(const Error& error) { return {0, "", "io_error", error.text()}; }

}  // namespace

FileService::FileService(bridge::LauncherClient& launcher, Config config)
    : launcher_(launcher),
      config_(std::move(config)),
      started_(launcher.executor()),
      last_used_(bridge::Clock::now()),
      roster_(launcher.executor()) {
  if (config_.idle_expiry.count() != 0)
    roster_.look_after("file worker expires", every(kExpiryPause), [this](auto) { return expire(this); });
}

FileService::~FileService() { roster_.stop(); }

void FileService::serve_workspace(std::string name) {
  config_.workspace = std::move(name);
  worker_ = nullptr;  // it ended with its workspace
  forgets_ = false;
}

task<Worker::Pointer> FileService::start() {
  bridge::ExecRequest request;
  request.argv = {"caisson-file-worker"};
  if (std::exchange(forgets_, true) || Keep::successor()) request.argv.push_back("--not-the-first");
  request.tool = true;
  WorkerOptions options;
  options.limits = kAccepted;
  options.budget = config_.budget;
  options.on_event = [this, life = roster_.life()](frames::Frame frame) {
    if (!life->over && on_event) on_event(std::move(frame));
  };
  options.on_end = [this, life = roster_.life()](const Error&) {
    if (!life->over && on_worker_end) on_worker_end();
  };
  co_return co_await Worker::start(launcher_, "file", "files", config_.workspace, std::move(request), std::move(options));
}

task<Worker::Pointer> FileService::worker() {
  const std::shared_ptr<const Life> life = roster_.life();
  last_used_ = bridge::Clock::now();
  while (true) {
    if (life->over) co_return fail(Code::io, "the server is stopping");
    if (worker_ && worker_->alive()) co_return worker_;
    if (!starting_) break;
    (void)co_await started_.wait_until(bridge::deadline_after(60));
  }
  // One start at a time, however this coroutine ends.
  struct Starting {
    FileService* self;
    std::shared_ptr<const Life> life;
    ~Starting() {
      if (life->over) return;
      self->starting_ = false;
      self->started_.notify_all();
    }
  };
  starting_ = true;
  const Starting starting{this, life};
  const std::string workspace = config_.workspace;
  CO_TRY_ASSIGN(Worker::Pointer made, co_await start());
  if (life->over || workspace != config_.workspace) {  // its workspace has ended meanwhile
    (void)co_await Worker::close(made, "not needed any more");
    co_return fail(Code::io, "the workspace has ended");
  }
  worker_ = std::move(made);
  co_return worker_;
}

asio::awaitable<FileReply> FileService::call(frames::FileOp op, json::Value head, std::string body) {
  auto found = co_await worker();
  if (!found) co_return std::unexpected(worker_failure(found.error()));
  co_return co_await call_on(std::move(*found), op, std::move(head), std::move(body));
}

asio::awaitable<FileReply> FileService::call_on(Worker::Pointer worker, frames::FileOp op, json::Value head, std::string body) {
  head["op"] = frames::file_op_name(op);
  auto reply = co_await Worker::call(worker, std::move(head), std::move(body), bridge::deadline_after(kCallSeconds));
  if (!reply) {
    FileFailure why = worker_failure(reply.error());
    why.end = worker->why_ended();
    co_return std::unexpected(std::move(why));
  }
  const auto error = reply->head.find("error");
  if (error == reply->head.end()) co_return std::move(*reply);
  if (!error->is_object()) co_return std::unexpected(FileFailure{0, "", "io_error", "the file worker failed without a reason"});
  FileFailure why{0, json::text_of(*error, "path"), json::text_of(*error, "kind"), json::text_of(*error, "text")};
  const std::int64_t number = json::get_int(*error, "errno").value_or(std::nullopt).value_or(0);
  if (number > 0 && number < 4096) why.number = static_cast<int>(number);
  co_return std::unexpected(std::move(why));
}

task<void> FileService::expire(FileService* self) {
  const Worker::Pointer worker = self->worker_;
  if (!worker || !worker->alive() || worker->calls() > 0 || (self->in_use && self->in_use())) co_return Status{};
  if (bridge::Clock::now() - self->last_used_ < self->config_.idle_expiry) co_return Status{};
  self->worker_ = nullptr;
  co_return co_await Worker::close(worker, "idle");
}

}  // namespace caisson::services
