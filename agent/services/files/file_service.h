// FileService: the file operations of one workspace, carried out by a program (agent/worker) in a session of the domain `file`. A
// Supervisor keeps it. Callers check what the program says: a client's own code runs beside it.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <string>

#include "agent/frames/file_protocol.h"
#include "agent/services/common/service_limits.h"
#include "agent/services/program/supervisor.h"
#include "agent/services/program/worker.h"

namespace caisson::services {

// Why an operation failed: an errno (0: none), or its kind and text.
struct FileFailure {
  int number = 0;
  std::string path, kind, text;
  std::optional<bridge::End> end = {};  // set if the worker's end was the failure
};
using FileReply = std::expected<frames::Frame, FileFailure>;

class FileService {
 public:
  FileService(bridge::LauncherClient& launcher, const Config& config);
  ~FileService();
  FileService(const FileService&) = delete;
  FileService& operator=(const FileService&) = delete;

  // From now on serves the files of this workspace. Its predecessor's worker has ended.
  void serve_workspace(std::string name);

  // One operation of the worker. Failures of the worker itself are io_error without an errno.
  [[nodiscard]] asio::awaitable<FileReply> call(frames::FileOp op, json::Value head, std::string body = "");
  // The running worker, for operations in several calls: files open in one worker are unknown to the next.
  [[nodiscard]] task<Worker::Pointer> worker();
  [[nodiscard]] static asio::awaitable<FileReply> call_on(Worker::Pointer worker, frames::FileOp op, json::Value head,
                                                          std::string body = "");

  // The running worker's events and its end, for FileWatches.
  std::function<void(frames::Frame)> on_event;
  std::function<void()> on_worker_end;
  // While it is true the worker is not idle.
  std::function<bool()> in_use;

 private:
  Worker::Pointer worker_;  // of the program that runs
  bool forgets_ = false;    // the next worker has forgotten earlier edits
  const std::shared_ptr<OutputBudget> budget_;
  const std::shared_ptr<bool> life_ = std::make_shared<bool>(true);  // false: programs may outlive the service for a moment
  Supervisor supervisor_;
};

}  // namespace caisson::services
