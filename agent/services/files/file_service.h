// FileService: the file operations of one workspace. They are carried out by a program (agent/worker) in a session of the domain
// `file`, started when it is first needed, again when it has died, and ended when it has been idle. What it says is checked by
// whoever uses it: a client's own code runs beside it.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <string>

#include "agent/frames/file_protocol.h"
#include "agent/services/common/config.h"
#include "agent/services/common/roster.h"
#include "agent/services/program/worker.h"

namespace caisson::services {

// Why an operation failed: an errno (0: none), or its kind and text.
struct FileFailure {
  int number = 0;
  std::string path, kind, text;
  std::optional<bridge::End> end = {};  // of the worker, where that was the failure
};
using FileReply = std::expected<frames::Frame, FileFailure>;

class FileService {
 public:
  FileService(bridge::LauncherClient& launcher, Config config);
  ~FileService();
  FileService(const FileService&) = delete;
  FileService& operator=(const FileService&) = delete;

  // From now on the files of this workspace of the launcher's. There is none when it is called.
  void serve_workspace(std::string name);

  // One operation of the worker. Failures of the worker itself are io_error without an errno.
  [[nodiscard]] asio::awaitable<FileReply> call(frames::FileOp op, json::Value head, std::string body = "");
  // The worker that runs, for operations in several calls: what is open in one is not in the next.
  [[nodiscard]] task<Worker::Pointer> worker();
  [[nodiscard]] static asio::awaitable<FileReply> call_on(Worker::Pointer worker, frames::FileOp op, json::Value head,
                                                          std::string body = "");

  // Events of the worker that runs, and its end (an empty frame): for whoever watches files.
  std::function<void(frames::Frame)> on_event;
  std::function<void()> on_worker_end;
  // While it is true the worker is not idle.
  std::function<bool()> in_use;

 private:
  [[nodiscard]] task<Worker::Pointer> start();
  static task<void> expire(FileService* self);

  bridge::LauncherClient& launcher_;
  Config config_;
  Worker::Pointer worker_;
  bool starting_ = false;
  bool forgets_ = false;  // the next worker knows nothing of the edits of one before
  bridge::Notifier started_;
  bridge::Clock::time_point last_used_;
  Roster roster_;
};

}  // namespace caisson::services
