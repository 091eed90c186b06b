#include "launcher/pid1/session/egress.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include <cstring>
#include <initializer_list>

#include "launcher/common/base/scm.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/confine/helper.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kAnswerUs = 15'000'000, kGateSettledUs = 10'000'000, kGateRestartUs = 1'000'000;
constexpr json::Bounds kRecord{.max_bytes = gate::kMaxMessage, .max_depth = 4, .max_values = 512};

// Nobody can change it: what it is checked by is what was sent.
Result<Fd> sealed(const std::string& list) {
  Fd file(::memfd_create("egress-list", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return sys_error("memfd");
  TRY(sys::write_all(file.get(), list));
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) return sys_error("seal");
  return file;
}

}  // namespace

Egress::~Egress() {
  if (pid_ == 0) return;
  loop_.forget_exit(pid_);
  loop_.unwatch(socket_.get());
  (void)sys::pidfd_send_signal(pidfd_.get(), SIGKILL);
}

Task<Status> Egress::open(const Workspace& workspace, std::string list) {
  if (ways_.contains(&workspace)) co_return Status();
  if (pid_ == 0) CO_TRY(launch());
  CO_TRY_ASSIGN(auto answer, sys::seqpacket_pair());
  CO_TRY_ASSIGN(const Fd file, sealed(list));
  const Way way{++last_number_, ++generation_, std::move(list)};
  const std::initializer_list<int> fds = {file.get(), answer.second.get(), workspace.place.user_ns.get()};
  CO_TRY(send(gate::Op::make, workspace, way, fds));
  answer.second.reset();
  const bool ready = co_await Readable(loop_, answer.first.get(), sys::monotonic_us() + kAnswerUs);
  char text[256] = {};
  const scm::Received came = ready ? scm::receive(answer.first.get(), text, sizeof text - 1, MSG_DONTWAIT) : scm::Received();
  workspace.place.out_ns = Fd(came.count == 1 ? came.fds[0] : -1);
  if (!workspace.place.out_ns)
    co_return fail(Code::unavailable, std::string("the way out: ") + (came.size > 0 ? text : "caisson-gate gave no answer"));
  // Without namespaces the other end of this one came back; from here on the builder speaks to the gate here.
  if (!workspace.place.user_ns) workspace.place.out_line = std::move(answer.first);
  ways_.emplace(&workspace, way);
  co_return Status();
}

void Egress::renew(const std::string& list) {
  for (auto it = ways_.begin(); it != ways_.end();) {
    auto& [workspace, way] = *it++;
    if (list.empty()) {
      close(*workspace);
    } else if (way.list != list) {
      way.list = list, way.generation = ++generation_;
      // One that is not told ends, and is told when it is started again: an old list may permit what the new one does not.
      if (const auto file = sealed(way.list); pid_ != 0 && (!file || !send(gate::Op::list, *workspace, way, {file->get()})))
        (void)sys::pidfd_send_signal(pidfd_.get(), SIGKILL);
    }
  }
}

void Egress::close(const Workspace& workspace) {
  const auto way = ways_.extract(&workspace);
  if (!way.empty() && pid_ != 0) (void)send(gate::Op::close, workspace, way.mapped(), {});
  workspace.place.out_ns.reset(), workspace.place.out_line.reset();
}

Result<Fd> Egress::line(const Workspace& workspace, bool for_operator) const {
  const auto way = ways_.find(&workspace);
  if (way == ways_.end()) return fail(Code::unavailable, "no session of the workspace has a way out");
  TRY_ASSIGN(auto pair, sys::seqpacket_pair());
  TRY(send(for_operator ? gate::Op::operator_line : gate::Op::line, workspace, way->second, {pair.second.get()}));
  return std::move(pair.first);
}

Status Egress::send(gate::Op op, const Workspace& of, const Way& way, std::initializer_list<int> fds) const {
  const gate::Order order{op, way.generation, way.number};
  const std::string message = std::string(reinterpret_cast<const char*>(&order), sizeof order) + of.name;
  const std::size_t count = std::min<std::size_t>(fds.size(), of.place.user_ns ? 3 : 2);
  if (scm::send(socket_.get(), message.data(), message.size(), fds.begin(), count, MSG_DONTWAIT) < 0)
    return sys_error("send to caisson-gate");
  return {};
}

Status Egress::launch() {
  const auto uid = [this](uid_t more) { return features_.change_uid.ok() ? std::to_string(settings_.door_uid + more) : "-"; };
  TRY_ASSIGN(auto pair, sys::seqpacket_pair());
  TRY_ASSIGN(auto running, confine::start_helper({.file = "caisson-gate",
                                                  .argv = {uid(0), uid(1), settings_.run_dir},
                                                  .env = confine::passed_on(gate::kVariables),
                                                  .fd3 = pair.second.get()}));
  pid_ = running.pid;
  pidfd_ = std::move(running.pidfd);
  socket_ = std::move(pair.first);
  started_us_ = sys::monotonic_us();
  loop_.on_exit(pid_, [this](const ChildExit& exit) {
    record_(audit::Event::egress_exit,
            {{"process", "gate"}, {"pid", pid_}, {"signaled", exit.signaled}, {"status", exit.status}});
    loop_.unwatch(socket_.get());
    pid_ = 0;
    socket_.reset();
    restart_later();
  });
  // One message a turn: what sessions do out there must not keep the loop from the others.
  TRY(loop_.watch(socket_.get(), EPOLLIN, [this](std::uint32_t) { hear(); }));
  for (const auto& [workspace, way] : ways_) {  // of a gate before this one
    TRY_ASSIGN(const Fd list, sealed(way.list));
    TRY(send(gate::Op::open, *workspace, way, {list.get(), workspace->place.out_ns.get(), workspace->place.user_ns.get()}));
  }
  return {};
}

void Egress::hear() {
  char buffer[gate::kMaxMessage];
  gate::Told told{};
  const ssize_t size = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (size < 0) return;
  if (size < static_cast<ssize_t>(sizeof told)) return loop_.unwatch(socket_.get());  // the rest follows from its exit
  std::memcpy(&told, buffer, sizeof told);
  auto fields = json::parse({buffer + sizeof told, static_cast<std::size_t>(size) - sizeof told}, kRecord);
  if (fields && fields->is_object() && told <= gate::Told::exit) {
    const auto event = static_cast<int>(audit::Event::egress_connection) + static_cast<int>(told);
    return record_(static_cast<audit::Event>(event), std::move(*fields));
  }
  loop_.unwatch(socket_.get());
  (void)sys::pidfd_send_signal(pidfd_.get(), SIGKILL);
}

void Egress::restart_later() {
  const bool settled = sys::monotonic_us() - started_us_ > kGateSettledUs;
  loop_.after(settled ? 0 : kGateRestartUs, [this] {
    const Status done = pid_ != 0 || ways_.empty() ? Status() : launch();
    if (done) return;
    sys::say("caisson-launcher: caisson-gate cannot be started: " + done.error().text());
    restart_later();
  });
}

}  // namespace caisson::session
