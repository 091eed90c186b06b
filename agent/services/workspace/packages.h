// The packages that a workspace's sessions can use, as its interpreters list them themselves, in a session of domain bash: what a
// user installed into the home is among them, and code that lies in wait there runs inside the same walls as ever. What comes
// back is not trusted: bounded and parsed strictly. A list is kept for a few seconds, and who asks meanwhile shares it.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "agent/bridge/launcher_client.h"
#include "agent/services/common/config.h"

namespace caisson::services {

struct Package {
  std::string name, version;
};

enum class PackageManager { pip, npm };

class PackageLists {
 public:
  static constexpr std::chrono::seconds kKept{3};

  PackageLists(bridge::LauncherClient& launcher, Config config);
  // Sorted by name. not_found: the interpreter is not installed. Errors are kept as lists are.
  [[nodiscard]] task<std::vector<Package>> list(PackageManager manager);
  // Another workspace from now on: what is known, or being found out, is of the one before.
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

// [["name", "version"], ...] as the scripts print it. Errors: io, for anything else.
[[nodiscard]] Result<std::vector<Package>> parse_packages(std::string_view text);

}  // namespace caisson::services
