// The packages that a workspace's sessions can use, as its interpreters list them in a session of domain bash. Packages in the
// home are among them, and hostile code there runs inside the usual walls. The output is not trusted: it is bounded and parsed
// strictly. A list is kept for a few seconds and shared by concurrent requests.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "agent/bridge/launcher_client.h"
#include "agent/services/common/service_limits.h"

namespace caisson::services {

struct Package {
  std::string name, version;
};

enum class PackageManager { pip, npm };

class PackageLists {
 public:
  static constexpr std::chrono::seconds kKept{3};

  PackageLists(bridge::LauncherClient& launcher, Config config);
  // Sorted by name. not_found: the interpreter is not installed. Errors are kept like lists.
  [[nodiscard]] task<std::vector<Package>> list(PackageManager manager);
  // From now on serves another workspace: known lists, and those being made, belong to the previous one.
  void serve_workspace(std::string name, std::string home);

 private:
  struct Entry {
    explicit Entry(asio::any_io_executor executor) : changed(std::move(executor)) {}
    bool running = false;
    bridge::Clock::time_point until;
    Result<std::vector<Package>> found;
    bridge::Notifier changed;
  };
  static task<void> find_out(PackageLists* self, std::shared_ptr<Entry> entry, PackageManager manager);

  bridge::LauncherClient& launcher_;
  Config config_;
  std::array<std::shared_ptr<Entry>, 2> entries_;
};

// [["name", "version"], ...] as the scripts print it. Code::io: the text has another form.
[[nodiscard]] Result<std::vector<Package>> parse_packages(std::string_view text);

}  // namespace caisson::services
