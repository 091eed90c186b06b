#include "agent/services/notebook/kernel_pool.h"

#include "agent/services/common/counted.h"

namespace caisson::services {
namespace {

// Starting a kernel takes most of a second of a processor, which the cell in the kernel just taken may have first.
constexpr std::chrono::milliseconds kPause{300};

task<void> close_kernel(Kernel::Pointer kernel, std::string reason) {
  co_return co_await Kernel::close(std::move(kernel), std::move(reason));
}

}  // namespace

KernelPool::KernelPool(bridge::LauncherClient& launcher) : shared_(std::make_shared<Shared>(launcher)) {}

KernelPool::~KernelPool() {
  shared_->over = true;
  shared_->ready.clear();
  shared_->changed.notify_all();
}

void KernelPool::end(const std::shared_ptr<Shared>& shared, Kernel::Pointer kernel, std::string reason) {
  kernel->on_end(nullptr);
  if (kernel->alive())
    spawn(shared->launcher.executor(), "end a prepared kernel", close_kernel(std::move(kernel), std::move(reason)));
}

void KernelPool::want(Wanted wanted) {
  const Wanted& now = shared_->wanted;
  if (now.setup.workspace == wanted.setup.workspace && now.spec.path == wanted.spec.path && now.cwd == wanted.cwd) {
    shared_->wanted.size = wanted.size;
  } else {
    clear();
    shared_->wanted = std::move(wanted);
  }
  fill(shared_);
}

void KernelPool::clear() {
  ++shared_->generation;
  shared_->wanted = {};
  expire(bridge::Clock::time_point::max());
}

void KernelPool::expire(bridge::Clock::time_point time) {
  while (!shared_->ready.empty() && shared_->ready.front().since < time) {
    end(shared_, std::move(shared_->ready.front().kernel), "prepared, and not used");
    shared_->ready.pop_front();
  }
}

void KernelPool::fill(const std::shared_ptr<Shared>& shared) {
  while (!shared->over && shared->ready.size() + shared->starting < shared->wanted.size) {
    ++shared->starting;
    spawn(shared->launcher.executor(), "prepare a kernel", start_one(shared));
  }
}

task<void> KernelPool::start_one(std::shared_ptr<Shared> shared) {
  const std::uint64_t generation = shared->generation;
  Wanted wanted = shared->wanted;
  auto started = co_await Kernel::start(shared->launcher, std::move(wanted.setup), std::move(wanted.spec), std::move(wanted.cwd));
  --shared->starting;
  if (started && (shared->over || generation != shared->generation)) {
    end(shared, std::move(*started), "prepared for a request that has gone");
  } else if (started) {
    const Kernel* const key = started->get();
    const std::weak_ptr<Shared> weak = shared;
    (*started)->on_end([weak, key] {
      const auto pool = weak.lock();
      if (pool) std::erase_if(pool->ready, [key](const Ready& ready) { return ready.kernel.get() == key; });
    });
    shared->ready.push_back({std::move(*started), bridge::Clock::now()});
  }
  shared->changed.notify_all();
  if (!started) co_return std::unexpected(std::move(started).error());  // logged once; the next take() tries again
  co_return Status{};
}

task<Kernel::Pointer> KernelPool::take() {
  const std::shared_ptr<Shared> shared = shared_;
  Wanted wanted = shared->wanted;
  // A kernel that is already starting is ready sooner than one that starts now.
  if (shared->ready.empty() && shared->starting > shared->waiting) {
    const Counted<std::size_t> waiting(shared->waiting);
    while (shared->ready.empty() && shared->starting > 0) (void)co_await shared->changed.wait_until(bridge::no_deadline());
  }
  if (shared->ready.empty()) {
    auto started =
        co_await Kernel::start(shared->launcher, std::move(wanted.setup), std::move(wanted.spec), std::move(wanted.cwd));
    if (started) spawn(shared->launcher.executor(), "prepare kernels", refill(shared));
    co_return started;
  }
  Kernel::Pointer kernel = std::move(shared->ready.front().kernel);
  shared->ready.pop_front();
  kernel->on_end(nullptr);
  spawn(shared->launcher.executor(), "prepare kernels", refill(shared));
  co_return kernel;
}

task<void> KernelPool::refill(std::shared_ptr<Shared> shared) {
  co_await sleep_for(kPause);
  fill(shared);
  co_return Status{};
}

}  // namespace caisson::services
