// Documents: what a URI names, as Markdown, by Microsoft's markitdown. Three walls, because a document is hostile:
// - bytes are fetched where the workspace's policies say what may be: files by the file worker, http and https in a session of
// the
//   domain `bash`, with its way out;
// - they are converted in a private session of the domain `document`, which has no network, no home and no other document;
// - the agent passes bytes on and reads text; it parses neither.
#pragma once

#include <memory>
#include <string>

#include "agent/bridge/launcher_client.h"
#include "agent/services/common/quota.h"
#include "agent/services/common/service_limits.h"
#include "agent/services/files/file_service.h"

namespace caisson::services {

class Documents {
 public:
  static constexpr std::size_t kMostBytes = 32 * 1024 * 1024;    // of a document, as to_markdown.py has it
  static constexpr std::size_t kMostMarkdown = 8 * 1024 * 1024;  // of what becomes of it
  static constexpr std::size_t kMostAtOnce = 2;                  // of a workspace; others wait

  Documents(bridge::LauncherClient& launcher, const Config& config, FileService& files);

  // uri: http, https, file or data; or a path, of which a relative one starts at the home. Errors in words for the client.
  [[nodiscard]] task<std::string> to_markdown(std::string uri);
  void serve_workspace(std::string name);

 private:
  struct Source {
    std::string bytes, name, media_type;
  };
  task<Source> fetch(std::string uri);
  task<Source> read_file(std::string path);
  task<std::string> convert(Source source, std::string data_uri);

  bridge::LauncherClient& launcher_;
  FileService& files_;
  std::string workspace_;
  std::shared_ptr<Quota> quota_;  // a waiter may outlive the workspace
};

}  // namespace caisson::services
