#include "launcher/gate/gate.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "launcher/common/base/scm.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/egress/trust.h"
#include "launcher/common/telling/json_text.h"
#include "launcher/egress/list/ports.h"
#include "launcher/gate/files.h"

namespace caisson::gate {
namespace {

constexpr std::int64_t kServeUs = 8'000'000, kLookUs = 2'000'000;
constexpr std::size_t kMostSessions = 8192;  // twice what the door keeps
}  // namespace

Gate::Gate(Loop& loop, Fd up, const Uids& uids, const std::string& run)
    : loop_(loop),
      up_(std::move(up)),
      door_(loop, "door", uids.door, events(door_)),
      dialer_(loop, "dialer", uids.dialer, events(dialer_)),
      opener_(loop, "opener", uids.opener, events(opener_)),
      lines_(loop, [this](const Lines::From& from, const json::Value& request,
                          const Lines::Reply& reply) { asked(from, request, reply); }),
      commands_(loop, run) {
  (void)tell(Told::start, JsonText().string("process", "gate").number("pid", ::getpid()).text());
}

Service::Events Gate::events(Service& of) {
  return {.started = [this, &of] { started(of); },
          .ready = [this] { settle(); },
          .said =
              [this, &of](egress::Said said, std::uint64_t workspace, std::string_view text) {
                if (said != egress::Said::authority) heard(of, said, workspace, text);
                else if (&of == &opener_) believe(text);
              },
          .exited = [this](const std::string& record) { (void)tell(Told::exit, record); },
          .unsent =
              [this](std::uint64_t workspace, const std::string& why) {
                const auto of_it = workspaces_.find(workspace);
                failed(of_it != workspaces_.end() ? of_it->second.name : "", why);
              }};
}

Status Gate::hear() {
  char bytes[sizeof(Order) + kMaxName];
  Order order{};
  const scm::Received came = scm::receive(up_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  std::array<Fd, scm::kMaxFds> fds;
  for (std::size_t i = 0; i < came.count; ++i) fds[i] = Fd(came.fds[i]);
  if (came.size < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (came.size < static_cast<ssize_t>(sizeof order) || came.cut()) return fail(Code::protocol, "the launcher is gone");
  std::memcpy(&order, bytes, sizeof order);
  std::string name(bytes + sizeof order, static_cast<std::size_t>(came.size) - sizeof order);
  const auto there = workspaces_.find(order.workspace);
  const bool known = there != workspaces_.end();
  const bool opens = order.op == Op::make || order.op == Op::open;
  const std::size_t most = opens ? 3 : order.op == Op::close ? 0 : 1, least = opens ? 2 : most;
  if (order.op < Op::make || order.op > Op::operator_line || (opens && known) || came.count < least || came.count > most)
    return fail(Code::protocol, "no order of the launcher's");
  if (opens) open(order, std::move(name), std::move(fds));
  if (!known) return {};  // what could not be made again after a gate before us, which is on record
  if (order.op == Op::line || order.op == Op::operator_line)
    return lines_.add({order.workspace, order.op == Op::operator_line}, std::move(fds[0])), Status();
  if (order.op == Op::list) {
    there->second.generation = order.generation;
    there->second.list = std::move(fds[0]);
    read_lists(there->second);
    warn_unlike(there->second);
    // The door last: what the door lets through is to meet the same list.
    tell_opener(there);
    tell_dialer(there);
    tell_lists(there);
    tell_grants(there);
    more_ports(there);
    return write_trust(there->second), Status();
  }
  for (Service* of : {&door_, &dialer_, &opener_}) of->send({egress::Order::close, order.generation, order.workspace}, {});
  workspaces_.erase(there);
  return {};
}

// fds: list, what the operation has, user namespace.
void Gate::open(const Order& order, std::string name, std::array<Fd, scm::kMaxFds> fds) {
  if (!std::exchange(running_, true)) {
    dialer_.start();
    door_.start();
  }
  Workspace& made = workspaces_[order.workspace];
  made.name = std::move(name);
  made.generation = order.generation;
  if (at_start_) made.settings = *at_start_;
  made.list = std::move(fds[0]);
  read_lists(made);
  const auto done = [this, number = order.workspace](Entered entered) { this->entered(number, std::move(entered)); };
  const bool make = order.op == Op::make;
  if (!fds[2]) return listen(order.workspace, std::move(fds[1]), make);
  if (make) made.answer = std::move(fds[1]);  // a new network namespace is made, then
  enter(loop_, fds[2], fds[1], egress::named_ports(made.settings.lists(), capture::kDoorPort).ports, done);
  made.user_ns = std::move(fds[2]);
  await(order.workspace);
}

// Without namespaces: the socket is the builder's, and that of the answer; it goes back with it.
void Gate::listen(std::uint64_t number, Fd builder, bool make) {
  Workspace& made = workspaces_[number];
  Entered outcome;
  outcome.net_ns = Fd(::fcntl(builder.get(), F_DUPFD_CLOEXEC, 3));
  if (make) made.answer = Fd(::fcntl(builder.get(), F_DUPFD_CLOEXEC, 3));
  made.connectors = std::make_unique<Connectors>(loop_, std::move(builder), [this, number](const Connectors::One& one) {
    const auto entry = workspaces_.find(number);
    know(entry->second, one.whose.substr(0, one.whose.find(' ')));
    if (!door_waits(number)) say_connector(entry, one);
  });
  if (const Status done = made.connectors->listen(); !done)
    outcome.error = done.error().sys != 0 ? done.error().sys : EIO, outcome.what = done.error().what;
  entered(number, std::move(outcome));
  await(number);
}

void Gate::await(std::uint64_t number) {
  loop_.after(kServeUs, [this, number] {
    const auto late = workspaces_.find(number);
    if (late == workspaces_.end() || !late->second.answer) return;
    const Service& waits_for = !door_.ready() ? door_ : !dialer_.ready() ? dialer_ : opener_;
    this->answer(late, ETIMEDOUT, std::string(waits_for.name()) + " does not come to serve");
  });
}

void Gate::entered(std::uint64_t workspace, Entered made) {
  const auto entry = workspaces_.find(workspace);
  if (entry == workspaces_.end()) return;  // closed meanwhile
  if (made.error != 0) return answer(entry, made.error, made.what);
  if (!at_start_) return answer(entry, EINVAL, at_start_.error().text());
  entry->second.net_ns = std::move(made.net_ns);
  entry->second.sockets = std::move(made.sockets);
  if (!members_.known()) entry->second.sockets.owners.reset();
  entry->second.by_ports = !made.without.empty();
  entry->second.made = true;
  warn_unlike(entry->second);
  write_trust(entry->second);
  JsonText start;
  start.string("workspace", entry->second.name).number("generation", entry->second.generation);
  if (!made.without.empty()) start.string("without_nf_tables", made.without);
  (void)tell(Told::start, start.text());
  tell_dialer(entry);
  tell_opener(entry);
  tell_door(entry);
  more_ports(entry);
  settle();
}

void Gate::read_lists(Workspace& workspace) {
  const auto bytes = sys::read_file("/proc/self/fd/" + std::to_string(workspace.list.get()), egress::kMaxListsBytes);
  auto lists = bytes ? egress::read_lists(*bytes) : fail(Code::io, "");
  workspace.settings.set_lists(lists ? std::move(*lists) : egress::Lists());
  workspace.asking.set_lists(workspace.settings.lists());
  forget_unbound(workspace);
}

// Where sessions are not told apart the door refuses everything as soon as their lists differ. Whoever wrote them is to know why.
void Gate::warn_unlike(const Workspace& workspace) {
  if (workspace.unlike())
    failed(workspace.name,
           "its domains have different lists, and here sessions are not told apart (cgroup v2 and sock_diag do it): "
           "everything is refused until all domains with a way out have the same network, egress, egress_ask, egress_limits, "
           "upstream and secrets");
}

// Before any session of it is made, and again with the opener's certificate as soon as that is there.
void Gate::write_trust(const Workspace& workspace) {
  for (const auto& [domain, list] : workspace.settings.lists().of) {
    if (list->trust.empty()) continue;
    // All else in it goes.
    if (!list->trust.ends_with(egress::kSystemsTrust) && !list->trust.ends_with(egress::kOpenersTrust)) {
      failed(workspace.name, "its authorities would stand in " + list->trust + ", which is no store");
      continue;
    }
    Status done = trust_.write(list->trust, egress::opens(*list));
    if (done && workspace.connectors) done = show_trust(list->trust);
    if (!done) failed(workspace.name, "authorities of sessions: " + done.error().text());
    if (!std::exchange(looks_, true)) loop_.after(kLookUs, [this] { look_at_authorities(); });
  }
}

// Who gives the system or us another authority does not have to say so.
void Gate::look_at_authorities() {
  looks_ = false;
  for (const auto& [number, workspace] : workspaces_)
    if (workspace.made) write_trust(workspace);
}

void Gate::believe(std::string_view text) {
  auto authority = read_authority(text);
  if (!authority) {
    (void)tell(Told::exit, JsonText().string("process", "opener").string("why", "its authority is no certificate").text());
    return;
  }
  trust_.believe(std::move(*authority));
  for (const auto& [number, workspace] : workspaces_)
    if (workspace.made) write_trust(workspace);
  settle();
}

bool Gate::opens(const Workspace& workspace) {
  return std::ranges::any_of(workspace.settings.lists().of, [](const auto& one) { return egress::opens(*one.second); });
}

// For hosts whose TLS is opened, and for upstream proxies that speak it.
bool Gate::needs_opener(const Workspace& workspace) {
  return opens(workspace) || std::ranges::any_of(workspace.settings.lists().of, [&workspace](const auto& one) {
           const auto upstream = workspace.settings.upstream_of(one.first);
           return upstream && upstream->kind == egress::Upstream::Kind::https;
         });
}

// Who replaces a secret does not have to say so.
void Gate::look_at_secrets() {
  std::set<std::string> bound, newer;
  for (const auto& [number, workspace] : workspaces_)
    for (const auto& [domain, list] : workspace.settings.lists().of)
      for (const egress::Binding& binding : list->bindings)
        if (!binding.file.empty()) bound.insert(binding.file);
  std::erase_if(stamps_, [&bound](const auto& one) { return !bound.contains(one.first); });
  for (const auto& [file, stamp] : stamps_)
    if (stamp_of(file) != stamp) newer.insert(file);
  const auto of_newer = [&newer](const auto& one) {
    return std::ranges::any_of(one.second->bindings, [&newer](const auto& binding) { return newer.contains(binding.file); });
  };
  for (auto it = workspaces_.begin(); it != workspaces_.end(); ++it)
    if (it->second.made && std::ranges::any_of(it->second.settings.lists().of, of_newer)) tell_opener(it);
  loop_.after(kLookUs, [this] { look_at_secrets(); });
}

void Gate::know(Workspace& workspace, const std::string& session) {
  auto& sessions = workspace.sessions;
  sessions.insert(session);
  if (sessions.size() > kMostSessions) sessions.erase(sessions.begin());  // the oldest: their ids begin with their time
}

void Gate::settle() {
  if (!door_.ready() || !dialer_.ready() || (opens_ && !opener_.ready())) return;
  const bool opened = std::ranges::any_of(workspaces_, [](const auto& one) { return opens(one.second); });
  if (opened && !trust_.believes()) return;
  for (auto it = workspaces_.begin(); it != workspaces_.end();)
    if (const auto at = it++; at->second.made && at->second.answer) answer(at, 0, "");
}

void Gate::answer(Entry entry, int error, const std::string& what) {
  const Fd to = std::move(entry->second.answer);
  const std::string text = error == 0 ? "made" : what + ": " + std::string(errno_name(error));
  const int fd = entry->second.net_ns.get();
  if (to) (void)scm::send(to.get(), text.data(), text.size(), &fd, error == 0 ? 1 : 0, MSG_DONTWAIT);
  else if (error != 0) failed(entry->second.name, text);  // made again after a gate before us, so nobody waits
  if (error != 0) workspaces_.erase(entry);
}

void Gate::failed(const std::string& workspace, const std::string& why) {
  (void)tell(Told::exit, JsonText().string("workspace", workspace).string("why", why).text());
}

// It knows nothing yet, and what ran between the two has failed.
void Gate::started(Service& service) {
  if (&service == &door_) figures_.again();
  (void)tell(Told::start, JsonText().string("process", service.name()).number("pid", service.pid()).text());
  if (&service != &opener_) join(door_, dialer_, egress::Order::peer, egress::Order::peer);
  if (&service != &dialer_) join(door_, opener_, egress::Order::opener, egress::Order::peer);
  if (&service != &door_) join(dialer_, opener_, egress::Order::opener, egress::Order::dialer);
  if (&service == &opener_ && seed_) opener_.send({egress::Order::seed, 0, 0}, {seed_.get()});
  for (auto it = workspaces_.begin(); it != workspaces_.end(); ++it) {
    if (!it->second.made) continue;
    if (&service == &door_) tell_door(it);
    else &service == &dialer_ ? tell_dialer(it) : tell_opener(it);
  }
}

// Without a pair what goes over it is refused. So each is told who is at its end.
void Gate::join(Service& one, Service& other, egress::Order to_one, egress::Order to_other) {
  auto pair = sys::seqpacket_pair();
  if (!pair || one.pid() == 0 || other.pid() == 0) return;
  one.send({to_one, 0, 0}, {pair->first.get()});
  other.send({to_other, 0, 0}, {pair->second.get()});
}

void Gate::heard(const Service& of, egress::Said said, std::uint64_t number, std::string_view text) {
  if (&of == &door_ && (said == egress::Said::figures || said == egress::Said::dropped || said == egress::Said::closed))
    heard_figures(number, said, text);  // also of one that has ended
  const auto entry = workspaces_.find(number);
  if (entry == workspaces_.end()) return;
  if (said == egress::Said::whose) return tell_whose(entry, text);
  if (said == egress::Said::unauthorized) return unauthorized(entry, std::string(text));
  if (said == egress::Said::inside) return heard_inside(entry, text);
  if (said == egress::Said::used && &of == &door_) return heard_used(entry, text);
  if (said == egress::Said::probed) return heard_probed(text);
  if (said == egress::Said::record || said == egress::Said::dropped) heard_record(of, entry, said, text);
}

void Gate::tell_whose(const Entry& entry, std::string_view cgroup) {
  egress::Cgroup asked{};
  if (cgroup.size() != sizeof asked) return;
  std::memcpy(&asked, cgroup.data(), sizeof asked);
  const std::string found = members_.find(asked.id);
  if (!found.empty()) know(entry->second, found.substr(0, found.find(' ')));
  door_.send({egress::Order::member, entry->second.generation, entry->first}, {}, std::string(cgroup) + found);
}

bool Gate::tell(Told told, std::string_view text) {
  const std::string message = std::string(reinterpret_cast<const char*>(&told), sizeof told).append(text);
  return message.size() <= kMaxMessage &&
         scm::send(up_.get(), message.data(), message.size(), nullptr, 0, MSG_DONTWAIT) == static_cast<ssize_t>(message.size());
}

}  // namespace caisson::gate
