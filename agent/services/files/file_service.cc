#include "agent/services/files/file_service.h"

#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

// The longest operation: a search through a large tree, or a file on a slow disk.
constexpr double kCallSeconds = 300;
constexpr frames::Limits kAccepted{.head_bytes = 1024 * 1024, .body_bytes = 32 * 1024 * 1024, .head_values = 64 * 1024};

FileFailure worker_failure(const Error& error) { return {0, "", "io_error", error.text()}; }

ProgramSpec file_worker(const Config& config) {
  ProgramSpec spec{.name = "file worker", .domain = "file", .label = "files", .workspace = config.workspace};
  spec.command.tool = true;
  spec.has_protocol = true;
  spec.limits.idle = config.idle_expiry;
  spec.limits.frames = kAccepted;
  return spec;
}

}  // namespace

FileService::FileService(bridge::LauncherClient& launcher, const Config& config)
    : budget_(config.budget), supervisor_(launcher, file_worker(config)) {
  supervisor_.before_start([this](ProgramSpec& spec) {
    spec.command.argv = {"caisson-file-worker"};
    if (std::exchange(forgets_, true) || Keep::successor()) spec.command.argv.push_back("--not-the-first");
  });
  supervisor_.set_busy([this] { return worker_->calls() > 0 || (in_use && in_use()); });
  supervisor_.spec().opened = [this](Program::Pointer program) {
    WorkerOptions options;
    options.budget = budget_;
    options.on_event = [this, life = life_](frames::Frame frame) {
      if (*life && on_event) on_event(std::move(frame));
    };
    options.on_end = [this, life = life_](const Error&) {
      if (*life && on_worker_end) on_worker_end();
    };
    worker_ = Worker::over(std::move(program), std::move(options));
  };
}

FileService::~FileService() { *life_ = false; }

void FileService::serve_workspace(std::string name) {
  supervisor_.spec().workspace = std::move(name);
  supervisor_.forget("the workspace has ended");
  forgets_ = false;
}

task<Worker::Pointer> FileService::worker() {
  CO_TRY(co_await supervisor_.program());
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

}  // namespace caisson::services
