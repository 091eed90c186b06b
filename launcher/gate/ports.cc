// Listeners at ports, in place of rules of the kernel (common/capture/capture.h).
#include <algorithm>
#include <iterator>
#include <utility>

#include "launcher/common/base/scm.h"
#include "launcher/egress/list/ports.h"
#include "launcher/gate/gate.h"

namespace caisson::gate {

// Where there are no rules: listeners at the ports that newer lists name. Each is tried once for each list; one that a program of
// the workspace has stays its, so nothing goes out by it.
void Gate::more_ports(const Entry& entry) {
  Workspace& workspace = entry->second;
  if (!workspace.by_ports || workspace.listening) return;
  const egress::NamedPorts named = egress::named_ports(workspace.settings.lists(), capture::kDoorPort);
  std::vector<std::uint16_t> missing;
  for (const std::uint16_t port : named.ports)
    if (!listens_at(workspace, port)) missing.push_back(port);
  const std::size_t room = egress::kMostPorts - std::min(workspace.sockets.ports.size(), egress::kMostPorts);
  if (!named.all || missing.size() > room)
    failed(workspace.name, "its rules name more ports than can be listened at without nf_tables: " +
                               std::to_string(egress::kMostPorts) + "; nothing goes out by the others");
  missing.resize(std::min(missing.size(), room));
  if (missing.empty()) return;
  workspace.listening = true;
  const auto done = [this, number = entry->first, generation = workspace.generation, missing](Entered more) {
    const auto there = workspaces_.find(number);
    if (there == workspaces_.end()) return;  // closed meanwhile
    std::vector<capture::AtPort>& ports = there->second.sockets.ports;
    std::vector<std::uint16_t> taken = missing;
    for (const capture::AtPort& one : more.sockets.ports) std::erase(taken, one.port);
    if (!door_waits(number)) say_ports(there, more.sockets.ports);  // or they are said with the others
    std::ranges::move(more.sockets.ports, std::back_inserter(ports));
    if (!taken.empty())
      failed(there->second.name, "no listener at " + egress::ports_text(taken) + ": " +
                                     (more.error != 0 ? more.what + ": " + std::string(errno_name(more.error))
                                                      : "a program of the workspace has them") +
                                     "; nothing goes out by them until the policies are loaded anew");
    there->second.listening = false;
    if (there->second.generation != generation) more_ports(there);
  };
  enter_again(loop_, workspace.user_ns, workspace.net_ns, missing, done);
}

// Whether what connects to that port inside, at whatever address, meets the door.
bool Gate::listens_at(const Workspace& workspace, std::uint16_t port) {
  const auto& ports = workspace.sockets.ports;
  return std::ranges::find(ports, port, &capture::AtPort::port) != ports.end();
}

void Gate::say_ports(const Entry& entry, const std::vector<capture::AtPort>& ports) {
  std::vector<int> fds;
  for (const capture::AtPort& one : ports) {
    fds.push_back(one.socket.get());
    if (fds.size() < scm::kMaxFds && &one != &ports.back()) continue;
    door_.send({egress::Order::ports, entry->second.generation, entry->first}, fds);
    fds.clear();
  }
}

}  // namespace caisson::gate
