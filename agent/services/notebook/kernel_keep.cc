// The part of a notebook session that outlives the agent: the kernel and its bridge, which continue by themselves, and a record
// that names them. A running cell continues to its end or its timeout; the next one waits for it. Its outputs are dropped,
// because no request can ask for them.
#include <algorithm>

#include "agent/services/common/session_table.h"
#include "agent/services/notebook/jupyter_service.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

constexpr std::size_t kMostLost = 256;

}  // namespace

void JupyterSession::save() {
  if (!kernel || kernel->program().record().keep() == nullptr) return;
  Program& program = kernel->program();
  const json::Value body{{"session", program.session()->id},
                         {"exec", program.exec()->id},
                         {"id", id},
                         {"kernel_name", kernel_name},
                         {"cwd", cwd},
                         {"implicit", implicit},
                         {"created_ns", created_ns},
                         {"until_ns", until_ns},
                         {"name", kernel->spec().name},
                         {"version", kernel->spec().version},
                         {"path", kernel->spec().path},
                         {"started_in", kernel->cwd()}};
  Keep::Record& record = program.record();
  (void)record.write(body, record.ends());  // without room the older body stays
}

task<void> JupyterService::take_up(const bridge::LeftSession& left, Keep::Left kept) {
  const json::Value& body = kept.body;
  const std::string id = json::text_of(body, "id");
  if (!valid_session_id(id) || table_.find(id)) co_return fail(Code::protocol, "what was kept of a kernel is not whole");
  std::string exec = json::text_of(body, "exec");
  Result<bridge::ExecStarted> started = fail(Code::io, "the agent ended while it gave the kernel a cell");
  if (!Worker::torn(kept)) started = co_await launcher_.exec_adopt(left.handle, std::move(exec));
  if (!started) {
    if (lost_.size() < kMostLost) lost_.insert(id);
    co_return std::unexpected(std::move(started).error());
  }
  auto session = std::make_shared<JupyterSession>(launcher_.executor());
  session->id = id;
  session->kernel_name = json::text_of(body, "kernel_name");
  session->kernel_path = json::text_of(body, "path");
  session->cwd = json::text_of(body, "cwd");
  session->implicit = json::flag_of(body, "implicit");
  session->touch();
  session->created_ns = json::number_of(body, "created_ns").value_or(session->last_used_ns);
  session->until_ns = json::number_of(body, "until_ns").value_or(0);
  KernelSpec spec{json::text_of(body, "name"), json::text_of(body, "version"), session->kernel_path};
  session->kernel = Kernel::adopt(launcher_, setup_of(id), std::move(spec), json::text_of(body, "started_in"), left.handle,
                                  std::move(*started));
  session->kernel->program().keep_in(std::move(kept.record));
  table_.insert(session);
  forget_at_end(session);
  // Before any request, so that their cells queue behind the running one.
  auto turn = std::make_unique<Turns::Place>(session->turns);
  const std::chrono::nanoseconds limit = time_left(session->until_ns);
  spawn(launcher_.executor(), "a kernel goes on", settle(session, std::move(turn), limit));
  co_return Status{};
}

task<void> JupyterService::settle(SessionPtr session, std::unique_ptr<Turns::Place> turn, std::chrono::nanoseconds limit) {
  Status settled = co_await Kernel::settle(session->kernel, limit);
  session->until_ns = 0;
  session->save();
  turn.reset();
  co_return settled;
}

}  // namespace caisson::services
