#include "launcher/common/confine/init_link.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "launcher/common/base/scm.h"

namespace caisson::confine {
namespace {

std::string bytes_of(const auto& value) {
  static_assert(
      std::has_unique_object_representations_v<std::remove_cvref_t<decltype(value)>>);  // padding would tell of our stack
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace

Status InitLink::send(const std::string& message, const int* fds, std::size_t count) {
  if (scm::send(socket_.get(), message.data(), message.size(), fds, count, MSG_DONTWAIT) < 0)
    return sys_error("send to caisson-init");
  return {};
}

// The kernel takes a message while anything of the buffer is free, however long the message is: without this, what follows an
// exec could be refused. A message counts with its head, the first 16 KiB rounded up to a power of two, the rest to whole pages.
Status InitLink::room_for(std::size_t bytes) const {
  int waiting = 0, most = 0;
  socklen_t size = sizeof most;
  if (::ioctl(socket_.get(), SIOCOUTQ, &waiting) != 0 || ::getsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUF, &most, &size) != 0)
    return sys_error("room for a message to caisson-init");
  constexpr std::size_t kRounding = 32 * 1024;
  if (static_cast<std::size_t>(waiting) + bytes + std::min(bytes, kRounding) + 4096 < static_cast<std::size_t>(most)) return {};
  return fail(Code::limit, "the session's socket has no room for this command beside those that wait in it");
}

Status InitLink::exec(const ExecRequest& request, const int (&stdio)[3]) {
  const init::Request head{.type = init::Type::exec,
                           .exec_id = request.id,
                           .stdio = request.pty ? init::Stdio::pty : init::Stdio::pipes,
                           .has_stdin = !request.pty && stdio[0] >= 0 ? 1U : 0U,
                           .cols = request.cols,
                           .rows = request.rows,
                           .argc = static_cast<std::uint32_t>(request.argv.size()),
                           .envc = static_cast<std::uint32_t>(request.env.size()),
                           .umask = request.umask};
  std::string message = bytes_of(head);
  auto add = [&message](const std::string& s) { message.append(s.c_str(), s.size() + 1); };
  for (const auto* list : {&request.argv, &request.env})
    for (const std::string& s : *list)
      if (s.find('\0') != std::string::npos) return fail(Code::invalid_argument, "argument with a NUL byte: " + quote(s));
  if (request.argv.empty() || request.argv.size() + request.env.size() + 1 > init::kMaxStrings)
    return fail(Code::invalid_argument, "no argument, or more than " + std::to_string(init::kMaxStrings) + " strings");
  add(request.cwd);
  for (const std::string& s : request.argv) add(s);
  for (const std::string& s : request.env) add(s);
  if (message.size() > init::kMaxRequest)
    return fail(Code::invalid_argument, "arguments and environment over " + std::to_string(init::kMaxRequest) + " bytes");
  TRY(room_for(message.size()));
  if (request.pty) return send(message);
  return head.has_stdin != 0 ? send(message, stdio, 3) : send(message, stdio + 1, 2);
}

Status InitLink::signal(std::uint32_t exec_id, int signal, init::Scope scope) {
  return send(bytes_of(init::Request{
      .type = init::Type::signal, .exec_id = exec_id, .signal = static_cast<std::uint32_t>(signal), .scope = scope}));
}

Status InitLink::go(std::uint32_t exec_id) { return send(bytes_of(init::Request{.type = init::Type::go, .exec_id = exec_id})); }

Status InitLink::probe(const init::Targets& targets) {
  return send(bytes_of(init::Request{.type = init::Type::probe}) + bytes_of(targets));
}

Status InitLink::maps_written() { return send("y"); }

Result<std::optional<InitEvent>> InitLink::receive() {
  InitEvent event{};
  static_assert(sizeof(Steps) >= sizeof event.reply);
  char buffer[sizeof(Steps) + 1];
  scm::Received came;
  // Told once of an end that left a request unread; what it said before is still there.
  do came = scm::receive(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  while (came.size < 0 && errno == ECONNRESET);
  if (came.size < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (came.size < 0) return sys_error("receive from caisson-init");
  // Owned at once: a hostile init must not be able to fill our descriptor table with what it sends too much of.
  std::vector<Fd> fds(came.fds, came.fds + came.count);
  if (came.size == 0) return fail(Code::not_found, "caisson-init is gone");
  const auto size = static_cast<std::size_t>(came.size);
  const auto malformed = fail(Code::protocol, "malformed message from caisson-init");
  if (size < sizeof event.reply.type || came.cut()) return malformed;
  std::memcpy(&event.reply.type, buffer, sizeof event.reply.type);
  if (event.reply.type == init::Type::steps) {
    const std::size_t count = size < Steps::size(1) ? 0 : (size - Steps::size(0)) / sizeof(StepRecord);
    if (count == 0 || Steps::size(count) != size || count > kStepCount) return malformed;
    event.steps.resize(count);
    std::memcpy(event.steps.data(), buffer + Steps::size(0), count * sizeof(StepRecord));
    if (std::ranges::any_of(event.steps, [](const StepRecord& r) { return static_cast<int>(r.step) >= kStepCount; }))
      return malformed;
    event.made = std::move(fds);
    return event;
  }
  if (size != sizeof event.reply || fds.size() > 1) return malformed;
  if (!fds.empty()) event.fd = std::move(fds.front());
  std::memcpy(&event.reply, buffer, sizeof event.reply);
  const init::Type type = event.reply.type;
  if (event.fd && type != init::Type::started && type != init::Type::listener && type != init::Type::child)
    return fail(Code::protocol, "descriptor where none belongs");
  return event;
}

}  // namespace caisson::confine
