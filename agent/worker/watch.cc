#include "agent/worker/watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "agent/worker/watcher.h"
#include "launcher/common/base/sys.h"

namespace caisson::worker {

void Watches::wake() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

Outcome Watches::start(const Request& request) {
  WatchRequest wanted;
  wanted.id = request.text("watcher");
  wanted.recursive = request.flag("recursive");
  wanted.debounce_ms = std::clamp<std::int64_t>(request.number("debounce").value_or(300), 0, 5000);
  for (const std::string& text : request.texts("exclude")) wanted.exclude.emplace_back(text);
  for (const std::string& text : request.texts("include")) wanted.include.emplace_back(text);
  TRY_ASSIGN(const std::string path, absolute(request.text("path")));
  Answer answer;
  auto top = open_directory(path);
  const bool directory = top.has_value();
  wanted.path = path;
  const bool exact = request.flag("exact");
  if (!directory || exact) {
    // A file, or a name that may become one: its directory is watched for the name.
    if (!directory && top.error().number != ENOTDIR && top.error().number != ENOENT)
      return std::unexpected(std::move(top).error());
    // A client that waits for a name is served when the name is a link, even a dangling one.
    const bool exists = open_path(path, exact ? O_PATH | O_NOFOLLOW : O_PATH).has_value();
    if (!exists && !exact) return failed(ENOENT, path);
    std::string plain = path;
    while (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();
    const std::size_t slash = plain.rfind('/');
    wanted.only = plain.substr(slash + 1);
    wanted.path = slash == 0 ? "/" : plain.substr(0, slash);
    top = open_directory(wanted.path);
    if (!top) return std::unexpected(std::move(top).error());
    answer.head["exists"] = exists;
  }
  const std::scoped_lock held(lock_);
  if (watchers_.size() >= kMost) return failed(EMFILE, path);
  if (!wake_) {
    wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_) return failed(errno, path);
    thread_ = std::jthread([this] { run(); });
  }
  const std::string id = wanted.id;
  TRY_ASSIGN(auto made, Watcher::start(std::move(wanted), std::move(*top), request));
  watchers_[id] = std::move(made);
  wake();
  answer.head["path"] = path;
  answer.head["directory"] = directory;
  return answer;
}

Outcome Watches::stop(const Request& request) {
  const std::scoped_lock held(lock_);
  watchers_.erase(request.text("watcher"));
  wake();
  return Answer{};
}

// Ends with the process.
void Watches::run() {
  while (true) {
    std::vector<std::shared_ptr<Watcher>> all;
    {
      const std::scoped_lock held(lock_);
      for (const auto& [id, watcher] : watchers_)
        if (watcher) all.push_back(watcher);
    }
    std::vector<pollfd> polls = {{wake_.get(), POLLIN, 0}};
    std::int64_t wait_ms = -1;
    for (const auto& watcher : all) {
      polls.push_back({watcher->fd(), POLLIN, 0});
      if (const auto due = watcher->due_us()) {
        const std::int64_t left = std::max<std::int64_t>(0, (*due - sys::monotonic_us() + 999) / 1000);
        wait_ms = wait_ms < 0 ? left : std::min(wait_ms, left);
      }
    }
    (void)::poll(polls.data(), polls.size(), static_cast<int>(wait_ms));
    std::uint64_t woken = 0;
    if (polls[0].revents != 0) (void)!::read(wake_.get(), &woken, sizeof woken);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (polls[i + 1].revents != 0) all[i]->read();
      if (const auto due = all[i]->due_us(); !due || *due > sys::monotonic_us()) continue;
      for (json::Value& event : all[i]->flush()) tell_(std::move(event));
    }
  }
}

}  // namespace caisson::worker
