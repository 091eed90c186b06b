#include "agent/services/program/warm_pool.h"

#include <algorithm>

#include "agent/services/program/fd_stream.h"

namespace caisson::services {
namespace {

// The longest job and its start must fit into the rest of a session's life, which is at least an hour in our policies.
constexpr std::chrono::minutes kMaxAge{15};
// Unused sessions end after this time, so that an idle workspace can end.
constexpr std::chrono::minutes kUnasked{5};
constexpr std::chrono::seconds kCheck{20};
// Preparing takes a processor, which the job that has just begun may have first.
constexpr std::chrono::milliseconds kBeforeRefill{15};

constexpr std::size_t kSizeDigits = 8;  // as python_boot.py and node_boot.js read it

bool usable(const Interpreter& one) {
  return one.session->alive() && one.command->running() && bridge::Clock::now() - one.made < kMaxAge;
}

}  // namespace

WarmPool::WarmPool(std::shared_ptr<CodeContext> context) : context_(std::move(context)), roster_(context_->launcher.executor()) {}

WarmPool::~WarmPool() { roster_.stop(); }

task<Interpreter> start_interpreter(std::shared_ptr<CodeContext> context, InterpreterKind kind, std::string cwd) {
  Interpreter out;
  out.made = bridge::Clock::now();
  CO_TRY_ASSIGN(out.session, co_await SoloSession::create(std::move(context), std::move(kind.setup)));
  bridge::ExecRequest request;
  request.argv = std::move(kind.argv);
  request.tool = kind.tool;
  request.cwd = std::move(cwd);  // "/": no client can put a module there that an interpreter would take for one of its own
  CO_TRY_ASSIGN(out.command, co_await out.session->start(std::move(request)));
  if (kind.program.empty()) co_return out;
  std::string size = std::to_string(kind.program.size());
  size.insert(0, kSizeDigits - size.size(), '0');
  CO_TRY(Command::write(out.command, size.append(kind.program), kMaxWaitingInput));
  co_return out;
}

task<Interpreter> WarmPool::take(InterpreterKind kind) {
  if (context_->config.warm_sessions > 0 && kind.setup.memory_bytes == 0) {
    Shelf& shelf = shelves_.try_emplace(kind.key(), Shelf{.kind = kind}).first->second;
    shelf.asked = bridge::Clock::now();
    std::erase_if(shelf.waiting, [](const Interpreter& one) { return !usable(one); });
    if (!std::exchange(shelf.refilling, true))
      spawn(context_->launcher.executor(), "prepare", refill(this, roster_.life(), kind.key()));
    if (!std::exchange(expiring_, true))
      roster_.look_after("prepared sessions expire", every(kCheck), [this](auto) { return expire(this); });
    if (!shelf.waiting.empty()) {
      Interpreter one = std::move(shelf.waiting.front());
      shelf.waiting.pop_front();
      co_return one;
    }
  }
  if (context_->quota->used >= context_->quota->most) drop_one();
  co_return co_await start_interpreter(context_, std::move(kind));
}

task<void> WarmPool::refill(WarmPool* self, std::shared_ptr<const Life> life, Key key) {
  co_await sleep_for(kBeforeRefill);
  while (!life->over) {
    const auto at = self->shelves_.find(key);
    if (at == self->shelves_.end()) break;
    const Quota& quota = *self->context_->quota;
    // Half of the sessions stay free for requests.
    if (at->second.waiting.size() >= self->context_->config.warm_sessions || quota.used >= quota.most / 2) {
      at->second.refilling = false;
      break;
    }
    const std::size_t generation = self->generation_;
    auto made = co_await start_interpreter(self->context_, at->second.kind);
    if (life->over) break;
    const auto shelf = self->shelves_.find(key);
    if (shelf == self->shelves_.end()) break;
    if (!made) {  // a request that needs one will get the error
      shelf->second.refilling = false;
      break;
    }
    if (generation == self->generation_) shelf->second.waiting.push_back(std::move(*made));
  }
  co_return Status{};
}

task<void> WarmPool::expire(WarmPool* self) {
  const bridge::Clock::time_point now = bridge::Clock::now();
  for (auto& [key, shelf] : self->shelves_) {
    if (now - shelf.asked > kUnasked) shelf.waiting.clear();
    const std::size_t old = std::erase_if(shelf.waiting, [](const Interpreter& one) { return !usable(one); });
    if (old > 0 && !std::exchange(shelf.refilling, true))
      spawn(self->context_->launcher.executor(), "prepare", refill(self, self->roster_.life(), key));
  }
  co_return Status{};
}

void WarmPool::flush() {
  ++generation_;
  for (auto& [key, shelf] : shelves_) shelf.waiting.clear();
}

void WarmPool::forget() {
  flush();
  shelves_.clear();
}

// The oldest prepared session of any kind: a request has priority over prepared sessions.
void WarmPool::drop_one() {
  Shelf* oldest = nullptr;
  for (auto& [key, shelf] : shelves_)
    if (!shelf.waiting.empty() && (oldest == nullptr || shelf.waiting.front().made < oldest->waiting.front().made))
      oldest = &shelf;
  if (oldest != nullptr) oldest->waiting.pop_front();
}

std::size_t WarmPool::waiting() const {
  std::size_t sum = 0;
  for (const auto& [key, shelf] : shelves_) sum += shelf.waiting.size();
  return sum;
}

}  // namespace caisson::services
