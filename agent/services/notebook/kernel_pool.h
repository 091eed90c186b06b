// KernelPool: kernels of one workspace that are started ahead, so that a first cell runs at once. Each is handed out once and
// never comes back. The few kernels are replaced in the background, and ended when they were not taken for a while.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "agent/services/notebook/kernel.h"

namespace caisson::services {

class KernelPool {
 public:
  struct Wanted {
    Kernel::Setup setup;
    KernelSpec spec;
    std::string cwd;
    std::size_t size = 0;
  };

  explicit KernelPool(bridge::LauncherClient& launcher);
  ~KernelPool();
  KernelPool(const KernelPool&) = delete;
  KernelPool& operator=(const KernelPool&) = delete;

  // From now on keeps kernels of this description ready; others are ended.
  void want(Wanted wanted);
  // A kernel of the wanted description: a ready one, one that is starting, or a new one.
  [[nodiscard]] task<Kernel::Pointer> take();
  // Whether kernels of this interpreter are kept ready.
  [[nodiscard]] bool keeps(const std::string& path) const { return shared_->wanted.spec.path == path; }
  // Ends kernels that were ready before `time`, and prepares none until take() or want().
  void expire(bridge::Clock::time_point time);
  // Ends all, and prepares none until want().
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
    std::uint64_t generation = 0;  // of `wanted`: a kernel started for an older one is ended
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
