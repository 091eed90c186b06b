// PageService: operations on the pages of one workspace's browser, carried out by playwright in a driver (agent/driver), which
// runs in the browser's session with no rights but that session's. One operation at a time, in the order in which they came. The
// driver starts at the first operation and ends with the browser or after ten idle minutes; what it keeps (routes, headers, a
// recording) ends with it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "agent/frames/page_protocol.h"
#include "agent/services/browser/browser_service.h"
#include "agent/services/common/turns.h"
#include "agent/services/files/file_service.h"

namespace caisson::services {

// The driver's answer (agent/driver/README.md).
struct PageAnswer {
  bool ok = false, invalid = false;  // invalid: the request is wrong whatever the page looks like
  json::Value data;
  std::string file;  // what is to be saved or sent; with has_file
  bool has_file = false;
  std::string message;  // why it failed, one line
  std::optional<std::string> hint;
};

class PageService {
 public:
  static constexpr std::chrono::milliseconds kUsual{30'000};

  PageService(bridge::LauncherClient& launcher, const Config& config, BrowserService& browser, FileService& files);
  void serve_workspace(std::string name);

  // Errors: those of BrowserService::session() and of a driver that does not answer, which is then replaced.
  [[nodiscard]] task<PageAnswer> call(frames::PageOp op, json::Value head, std::chrono::milliseconds within = kUsual);
  // The driver stands still, and with it the film of a page.
  [[nodiscard]] task<void> hold(bool held);
  // As BrowserService::restart, of the driver alone.
  void try_again() { supervisor_.try_again(); }
  // Writes bytes to a file by the rules of the `file` session.
  [[nodiscard]] asio::awaitable<FileReply> save(std::string path, std::string bytes);
  // Copies a file likewise: a download, for example.
  [[nodiscard]] asio::awaitable<FileReply> copy(std::string from, std::string to);

 private:
  [[nodiscard]] task<Worker::Pointer> worker();
  [[nodiscard]] task<PageAnswer> carry_out(frames::PageOp op, json::Value head, std::chrono::milliseconds within);

  bridge::LauncherClient& launcher_;
  const std::shared_ptr<OutputBudget> budget_;
  BrowserService& browser_;
  FileService& files_;
  Supervisor supervisor_;
  Turns turns_;
  Worker::Pointer worker_;
};

}  // namespace caisson::services
