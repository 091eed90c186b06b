#include "launcher/gate/gate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "launcher/common/base/scm.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/telling/json_text.h"

namespace caisson::gate {
namespace {

constexpr std::int64_t kServeUs = 8'000'000, kCountedUs = 1'000'000;
constexpr json::Bounds kRecord{.max_bytes = egress::kMaxText, .max_depth = 4, .max_values = 256};

}  // namespace

Gate::Gate(Loop& loop, Fd up, const std::string& door, const std::string& dialer)
    : loop_(loop),
      up_(std::move(up)),
      door_(loop, "door", door, events(door_)),
      dialer_(loop, "dialer", dialer, events(dialer_)) {}

Service::Events Gate::events(Service& of) {
  return {.started = [this, &of] { started(of); },
          .ready = [this] { settle(); },
          .said = [this](egress::Said said, std::uint64_t of, std::string_view text) { heard(said, of, text); },
          .exited = [this](const std::string& record) { (void)tell(Told::exit, record); }};
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
  if (order.op == Op::open && !known && (came.count == 3 || came.count == 4)) {
    open(order, std::move(name), std::move(fds[2]), fds[0], fds[1], std::move(fds[3]));
  } else if (order.op == Op::list && known && came.count == 1) {
    there->second.generation = order.generation;
    there->second.list = std::move(fds[0]);
    // The dialer first: what the door lets through is to meet the same list.
    dialer_.send({egress::Order::open, order.generation, order.workspace}, {there->second.list.get()});
    door_.send({egress::Order::open, order.generation, order.workspace}, {there->second.list.get()});
  } else if (order.op == Op::close && known && (came.count == 0 || came.count == 2)) {
    for (Service* of : {&door_, &dialer_}) of->send({egress::Order::close, order.generation, order.workspace}, {});
    workspaces_.erase(there);
    if (came.count == 2)
      enter(loop_, fds[0], fds[1], true, [this, name](const Entered& done) {
        if (done.error == 0) return;
        (void)tell(Told::exit,
                   JsonText().string("workspace", name).string("why", done.what).string("errno", errno_name(done.error)).text());
      });
  } else {
    return fail(Code::protocol, "no order of the launcher's");
  }
  return {};
}

void Gate::open(const Order& order, std::string name, Fd list, const Fd& user_ns, const Fd& net_ns, Fd answer) {
  if (!std::exchange(running_, true)) {
    dialer_.start();
    door_.start();
  }
  workspaces_.emplace(order.workspace, Workspace{.name = std::move(name),
                                                 .generation = order.generation,
                                                 .list = std::move(list),
                                                 .sockets = {},
                                                 .answer = std::move(answer)});
  enter(loop_, user_ns, net_ns, false, [this, number = order.workspace](Entered made) { entered(number, std::move(made)); });
  loop_.after(kServeUs, [this, number = order.workspace] {
    const auto late = workspaces_.find(number);
    if (late == workspaces_.end() || !late->second.answer) return;
    this->answer(late, ETIMEDOUT, std::string(door_.ready() ? dialer_.name() : door_.name()) + " does not come to serve");
  });
}

void Gate::entered(std::uint64_t workspace, Entered made) {
  const auto entry = workspaces_.find(workspace);
  if (entry == workspaces_.end()) return;  // closed meanwhile
  if (made.error != 0) return answer(entry, made.error, made.what);
  entry->second.sockets = std::move(made.sockets);
  entry->second.made = true;
  (void)tell(Told::start,
             JsonText().string("workspace", entry->second.name).number("generation", entry->second.generation).text());
  tell_dialer(entry);
  tell_door(entry);
  settle();
}

void Gate::tell_dialer(const Entry& entry) {
  dialer_.send({egress::Order::open, entry->second.generation, entry->first}, {entry->second.list.get()});
}

void Gate::tell_door(const Entry& entry) {
  const auto& [tcp4, tcp6, names] = entry->second.sockets;
  door_.send({egress::Order::open, entry->second.generation, entry->first},
             {entry->second.list.get(), tcp4.get(), tcp6.get(), names.get()});
}

void Gate::settle() {
  if (!door_.ready() || !dialer_.ready()) return;
  for (auto it = workspaces_.begin(); it != workspaces_.end();)
    if (const auto at = it++; at->second.made && at->second.answer) answer(at, 0, "");
}

void Gate::answer(Entry entry, int error, const std::string& what) {
  const Answer head{error};
  const Fd to = std::move(entry->second.answer);
  if (to) {
    const std::string message = std::string(reinterpret_cast<const char*>(&head), sizeof head) + what;
    (void)scm::send(to.get(), message.data(), message.size(), nullptr, 0, MSG_DONTWAIT);
  } else if (error != 0) {  // made again after a gate before us, so nobody waits
    JsonText record;
    record.string("workspace", entry->second.name).string("why", what).string("errno", errno_name(error));
    (void)tell(Told::exit, record.text());
  }
  if (error != 0) workspaces_.erase(entry);
}

// It knows nothing yet, and what ran between the two has failed.
void Gate::started(Service& service) {
  (void)tell(Told::start, JsonText().string("process", service.name()).number("pid", service.pid()).text());
  if (auto pair = sys::seqpacket_pair();
      pair && door_.pid() != 0 && dialer_.pid() != 0) {  // without one the door refuses everything
    door_.send({egress::Order::peer, 0, 0}, {pair->first.get()});
    dialer_.send({egress::Order::peer, 0, 0}, {pair->second.get()});
  }
  for (auto it = workspaces_.begin(); it != workspaces_.end(); ++it)
    if (it->second.made) &service == &door_ ? tell_door(it) : tell_dialer(it);
}

void Gate::heard(egress::Said said, std::uint64_t number, std::string_view text) {
  const auto entry = workspaces_.find(number);
  if (entry == workspaces_.end() || (said != egress::Said::record && said != egress::Said::dropped)) return;
  Workspace& workspace = entry->second;
  if (!workspace.records.take(sys::monotonic_us())) return count(workspace);
  auto record = json::parse(text, kRecord);
  if (!record || !record->is_object()) record = json::Value{{"malformed", true}};
  (*record)["workspace"] = workspace.name;
  const Told as = said == egress::Said::dropped ? Told::dropped : record->contains("refusal") ? Told::refused : Told::connection;
  if (!tell(as, json::dump(*record))) count(workspace);
}

void Gate::count(Workspace& workspace) {
  if (workspace.dropped++ != 0) return;
  loop_.after(kCountedUs, [this, name = workspace.name] {
    const auto entry = std::ranges::find(workspaces_, name, [](const auto& one) { return one.second.name; });
    if (entry == workspaces_.end()) return;
    const auto count = std::exchange(entry->second.dropped, 0);
    if (tell(Told::dropped, JsonText().string("workspace", name).number("count", static_cast<std::int64_t>(count)).text()))
      return;
    this->count(entry->second);
    entry->second.dropped = count;
  });
}

bool Gate::tell(Told told, std::string_view text) {
  const std::string message = std::string(reinterpret_cast<const char*>(&told), sizeof told).append(text);
  return message.size() <= kMaxMessage &&
         scm::send(up_.get(), message.data(), message.size(), nullptr, 0, MSG_DONTWAIT) == static_cast<ssize_t>(message.size());
}

}  // namespace caisson::gate
