// KernelPool: kernels of one workspace that are started before anybody asks, so that a first cell runs at once. Each is handed
// out once and never comes back. There are few, they are replaced in the background, and those that nobody took for a while are
// ended.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "agent/services/notebook/kernel.h"

namespace caisson::services {

class KernelPool {
 public:
  struct Wanted {
    Kernel::Place place;
    KernelSpec spec;
    std::string cwd;
    std::size_t size = 0;
  };

  explicit KernelPool(bridge::LauncherClient& launcher);
  ~KernelPool();
  KernelPool(const KernelPool&) = delete;
  KernelPool& operator=(const KernelPool&) = delete;

  // From now on this is what is kept ready; what is ready and differs is ended.
  void want(Wanted wanted);
  // A kernel as `want()` describes them, ready or as soon as it is; one of its own where there is none to wait for.
  [[nodiscard]] task<Kernel::Pointer> take();
  // Whether it is this interpreter that is kept ready.
  [[nodiscard]] bool keeps(const std::string& path) const { return shared_->wanted.spec.path == path; }
  // Ends those that have been ready since before `time`, and keeps none ready until take() or want().
  void expire(bridge::Clock::time_point time);
  // Ends all; nothing is kept ready until want().
  void clear();

  [[nodiscard]] std::size_t ready() const { return shared_->ready.size(); }

 private:
  struct Ready {
    Kernel::Pointer kernel;
    bridge::Clock::time_point since;
  };
  // Shared with the coroutines that start kernels, which may outlive the pool for a moment.
  struct Shared {
    explicit Shared(bridge::LauncherClient& client) : launcher(client), changed(client.executor()) {}
    bridge::LauncherClient& launcher;
    Wanted wanted;
    std::uint64_t generation = 0;  // of `wanted`: a kernel that was started for an older one is ended
    std::deque<Ready> ready;
    std::size_t starting = 0, waiting = 0;
    bool over = false;
    bridge::Notifier changed;
  };
  static void fill(const std::shared_ptr<Shared>& shared);
  static task<void> start_one(std::shared_ptr<Shared> shared);
  static task<void> refill(std::shared_ptr<Shared> shared);
  static void end(const std::shared_ptr<Shared>& shared, Kernel::Pointer kernel, std::string reason);

  std::shared_ptr<Shared> shared_;
};

}  // namespace caisson::services
