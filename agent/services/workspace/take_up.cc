// How an agent takes over from the previous one. The launcher says which sessions exist and to which workspaces they belong, and
// hands over the pipes of their commands; the Keep has what only the previous agent knew. If they disagree, the launcher is
// right.
#include <algorithm>

#include "agent/http/log.h"
#include "agent/services/workspace/workspaces.h"
#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

using Kept = std::map<std::string, std::vector<Keep::Left>>;  // by kind

// The records of a kind that belong to the session `of`.
std::vector<Keep::Left> of_session(Kept& kept, const std::string& kind, const std::string& of) {
  std::vector<Keep::Left> out;
  for (Keep::Left& left : kept[kind])
    if (left.record.keep() != nullptr && json::text_of(left.body, "session") == of) out.push_back(std::move(left));
  return out;
}

struct Restored {
  bridge::LeftSession session;
  WorkspacePtr workspace;
  std::string kind = "";  // of its record
  ReplService* repls = nullptr;
  std::optional<Keep::Left> kernel = std::nullopt;
};

// False: there is no complete record of the session.
bool restore(Restored& one, Kept& kept) {
  const std::shared_ptr<bridge::SessionHandle>& handle = one.session.handle;
  std::vector<Keep::Left> known;
  for (const char* kind : {"bash", "shell", "kernel", "repl"}) {
    known = of_session(kept, kind, handle->id);
    one.kind = kind;
    if (!known.empty()) break;
  }
  if (known.size() != 1) return false;
  Keep::Left& left = known.front();
  if (one.kind == "bash")
    return one.workspace->bash.restore(handle, std::move(left), of_session(kept, "bash-command", handle->id));
  if (one.kind == "shell")
    return one.workspace->shell.restore(
        handle, {std::move(left), of_session(kept, "shell-console", handle->id), of_session(kept, "shell-command", handle->id)});
  if (one.kind == "repl") {
    std::vector<Keep::Left> program = of_session(kept, "bash-command", handle->id);
    one.repls = &one.workspace->code.repls(json::text_of(left.body, "language"));
    return program.size() == 1 && one.repls->restore(handle, std::move(left), std::move(program.front()));
  }
  one.kernel = std::move(left);
  return true;
}

task<void> attach(Restored one) {
  if (one.kind == "bash") co_return co_await one.workspace->bash.attach(one.session);
  if (one.kind == "shell") co_return co_await one.workspace->shell.attach(one.session);
  if (one.kind == "repl") co_return co_await one.repls->attach(one.session);
  co_return co_await one.workspace->jupyter.take_up(one.session, std::move(*one.kernel));
}

task<void> look_again(WorkspacePtr workspace) {
  const std::vector<FileWatches::Pointer> watchers = workspace->watches.all();
  for (const FileWatches::Pointer& watcher : watchers) co_await workspace->watches.attach(watcher);
  co_return Status{};
}

}  // namespace

task<void> Workspaces::take_up() {
  Fd file = launcher_.take_keep();
  if (!file) co_return Status{};
  Kept kept;
  if (auto opened = Keep::open(file)) {
    kept_file_ = std::move(*opened);
    Keep::set_here(kept_file_.get());
    for (Keep::Left& left : kept_file_->take_left()) kept[left.kind].push_back(std::move(left));
  } else {
    log::error("nothing outlives this agent: " + opened.error().text());
  }
  CO_TRY_ASSIGN(const std::vector<bridge::LeftSession> sessions, co_await launcher_.session_adopt());
  std::map<std::string, WorkspacePtr> whose;  // nullptr: there is no such workspace
  const auto names = [&](const auto& add) {
    for (const bridge::LeftSession& session : sessions) add(session.handle->workspace);
    for (const char* kind : {"hook", "watch"})
      for (const Keep::Left& left : kept[kind]) add(json::text_of(left.body, "workspace"));
  };
  names([&](const std::string& name) { whose.emplace(name, nullptr); });
  for (auto& [name, workspace] : whose)
    if (auto found = co_await find(name)) workspace = std::move(*found);
  std::map<std::string, std::string> made;
  for (const Keep::Left& left : kept["workspace"]) made[json::text_of(left.body, "name")] = json::text_of(left.body, "made");
  for (const char* kind : {"hook", "watch"})
    for (Keep::Left& left : kept[kind]) {
      const std::string name = json::text_of(left.body, "workspace");
      const WorkspacePtr& workspace = whose.at(name);
      if (!workspace || (workspace != standard_ && workspace->made != made[name])) continue;
      if (left.kind == "hook") workspace->hooks.restore(std::move(left));
      else workspace->watches.restore(std::move(left));
    }
  // First restores all sessions with their landed bytes: the next read overwrites these.
  std::vector<Restored> restored;
  for (const bridge::LeftSession& session : sessions) {
    const WorkspacePtr& workspace = whose.at(session.handle->workspace);
    Restored one{session, workspace};
    if (workspace && !session.handle->ended && restore(one, kept)) restored.push_back(std::move(one));
    else (void)co_await launcher_.session_destroy(session.handle, "agent_restart");  // its client was never told
  }
  kept.clear();
  for (Restored& one : restored) {
    const bridge::LeftSession session = one.session;
    if (const Status done = co_await attach(std::move(one)); !done) {
      log::warn(done.error().text());
      (void)co_await launcher_.session_destroy(session.handle, "agent_restart");  // the first error is the one to report
    }
  }
  for (const WorkspacePtr& workspace : known()) {
    workspace->shell.hold(workspace->paused);  // the default workspace was woken before its sessions were known
    if (!workspace->paused && !workspace->watches.all().empty())
      spawn(launcher_.executor(), "watchers go on", look_again(workspace));
  }
  if (!sessions.empty()) log::info("took over " + std::to_string(restored.size()) + " sessions of the previous agent");
  co_return Status{};
}

}  // namespace caisson::services
