#include "agent/cdp/server.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cctype>

#include "launcher/common/base/json.h"
#include "launcher/common/base/sys.h"

namespace caisson::cdp {
namespace {

constexpr std::size_t kScratchBytes = 256 * 1024;
constexpr int kReadsOfTurn = 8;  // of the browser, before clients are written to

Outgoing refused(const std::string& why) { return Outgoing::of(json::dump({{"hello", "refused"}, {"why", why}})); }

// "" for a browser-level client, else the target's id.
Result<std::string> target_of(std::string_view text) {
  TRY_ASSIGN(const json::Value hello, json::parse(text, {.max_bytes = text.size() + 1, .max_depth = 2, .max_values = 8}));
  if (!hello.is_object()) return fail(Code::invalid_argument, "hello is no object");
  TRY_ASSIGN(const auto kind, json::get_string(hello, "hello"));
  TRY_ASSIGN(const auto target, json::get_string(hello, "target"));
  if (kind == "browser" && !target && hello.size() == 1) return std::string();
  if (kind != "page" || !target || hello.size() != 2)
    return fail(Code::invalid_argument, "hello is neither of browser nor of page");
  const auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.'; };
  if (target->empty() || target->size() > 128 || !std::ranges::all_of(*target, plain))
    return fail(Code::invalid_argument, "target is no id of a page");
  return *target;
}

}  // namespace

Server::Server(Loop& loop, Limits limits, Events events)
    : loop_(loop),
      limits_(limits),
      events_(std::move(events)),
      browser_in_(limits.message_bytes),
      scratch_(std::make_unique<char[]>(kScratchBytes)) {}

Server::~Server() {
  for (const auto& [id, client] : clients_) {
    loop_.cancel(client->timer);
    loop_.unwatch(client->socket.get());
  }
  for (const Fd* fd : {&listener_, &to_browser_, &from_browser_}) loop_.unwatch(fd->get());
}

Status Server::listen(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return fail(Code::invalid_argument, "path of the socket " + quote(path) + " is empty or too long");
  path.copy(address.sun_path, path.size());
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return sys_error("create socket");
  (void)::unlink(path.c_str());
  const mode_t before = ::umask(0177);  // there is no moment in which others could connect
  const int bound = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = errno;
  ::umask(before);
  if (bound != 0) return sys_error("bind " + quote(path), error);
  if (::listen(socket.get(), SOMAXCONN) != 0) return sys_error("listen on " + quote(path));
  listener_ = std::move(socket);
  return loop_.watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { accept_all(); });
}

void Server::accept_all() {
  for (;;) {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) break;  // none waits, or no descriptor is left
    auto client = std::make_unique<Client>(std::move(socket));
    if (clients_.size() >= limits_.clients) {
      client->out.push(refused(std::to_string(limits_.clients) + " clients are connected"));
      (void)client->out.write_to(client->socket.get());
      continue;
    }
    const ClientId id = ++last_client_;
    client->events = EPOLLIN;
    if (!loop_.watch(client->socket.get(), EPOLLIN, [this, id](std::uint32_t events) { on_client(id, events); })) continue;
    client->timer = loop_.after(limits_.hello_us, [this, id] {
      leave(*clients_.at(id), "no hello came in time", true);
      settle();
    });
    clients_.emplace(id, std::move(client));
  }
}

void Server::on_client(ClientId id, std::uint32_t events) {
  Client& client = *clients_.at(id);
  if (client.state == State::hello) read_hello(id, client);
  else if ((events & EPOLLIN) != 0 && reads(client)) read_messages(id, client);
  // The client has gone: no answer can reach it, and what it sent is discarded unread.
  else if ((events & (EPOLLHUP | EPOLLERR)) != 0) leave(client, "it has closed the connection", true);
  settle();
}

// Not a byte more than the hello is taken: what follows waits in the kernel until there is a session to say it to.
void Server::read_hello(ClientId id, Client& client) {
  const int fd = client.socket.get();
  const ssize_t n = ::recv(fd, scratch_.get(), kMaxHelloBytes, MSG_PEEK);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return leave(client, "it has closed the connection", true);
  const std::string_view came(scratch_.get(), static_cast<std::size_t>(n));
  std::string_view taken = came.substr(0, std::min(came.find('\0'), came.size() - 1) + 1);
  if (::recv(fd, scratch_.get(), taken.size(), 0) != static_cast<ssize_t>(taken.size())) return;
  const Records::Got got = client.in.take(taken);
  if (got == Records::Got::message) return hello(id, client, client.in.message().view());
  if (got == Records::Got::more && !client.in.losing()) return;
  client.out.push(refused("hello is too long"));
  leave(client, "hello is too long", false);
}

void Server::hello(ClientId id, Client& client, std::string_view text) {
  const auto target = target_of(text);
  if (!target || !to_browser_) {
    const std::string why = target ? "the browser is not running" : target.error().what;
    client.out.push(refused(why));
    return leave(client, why, false);
  }
  client.in = Records(limits_.message_bytes);
  client.state = State::opening;
  loop_.cancel(client.timer);
  client.timer = loop_.after(limits_.attach_us, [this, id] {
    Client& late = *clients_.at(id);
    late.out.push(refused("the browser does not answer"));
    leave(late, "the browser does not answer", false);
    settle();
  });
  router_.open(id, *target);
}

void Server::read_messages(ClientId id, Client& client) {
  const ssize_t n = ::read(client.socket.get(), scratch_.get(), kScratchBytes);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return leave(client, "it has closed the connection", true);
  std::string_view bytes(scratch_.get(), static_cast<std::size_t>(n));
  while (!bytes.empty() && client.state == State::open) {
    const Records::Got got = client.in.take(bytes);
    if (got == Records::Got::message) router_.from_client(id, client.in.message());
    else if (got != Records::Got::more || client.in.losing())
      leave(client, got == Records::Got::no_memory ? "there is no memory for its message" : "its message is too long", false);
  }
}

void Server::read_browser() {
  for (int i = 0; i < kReadsOfTurn && from_browser_; ++i) {
    const ssize_t n = ::read(from_browser_.get(), scratch_.get(), kScratchBytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) {
      browser_closed_ = true;
      loop_.unwatch(from_browser_.get());
      from_browser_.reset();
      break;
    }
    std::string_view bytes(scratch_.get(), static_cast<std::size_t>(n));
    while (!bytes.empty()) {
      const Records::Got got = browser_in_.take(bytes);
      if (got == Records::Got::message) router_.from_browser(browser_in_.message());
      else if (got != Records::Got::more) router_.lost_from_browser(browser_in_.head(), browser_in_.tail());
    }
  }
  settle();
}

Status Server::connect_browser(Fd to_browser, Fd from_browser, const std::string& name) {
  for (const Fd* fd : {&to_browser, &from_browser}) TRY(sys::set_nonblocking(fd->get(), true));
  TRY(loop_.watch(from_browser.get(), EPOLLIN, [this](std::uint32_t) { read_browser(); }));
  TRY(loop_.watch(to_browser.get(), 0, [this](std::uint32_t events) {
    if ((events & EPOLLERR) != 0) lose_browser();  // nobody reads any more; it would be said again and again
    settle();
  }));
  to_browser_ = std::move(to_browser);
  from_browser_ = std::move(from_browser);
  browser_in_ = Records(limits_.message_bytes);
  browser_name_ = name;
  browser_waits_ = browser_closed_ = false;
  return {};
}

void Server::lose_browser() {
  browser_closed_ = true;
  browser_out_.clear();
  loop_.unwatch(to_browser_.get());
  to_browser_.reset();
}

void Server::disconnect_browser(const std::string& why) {
  for (Fd* fd : {&to_browser_, &from_browser_}) {
    loop_.unwatch(fd->get());
    fd->reset();
  }
  router_.browser_ended(why);
  browser_out_.clear();
  browser_in_ = Records(limits_.message_bytes);
  browser_closed_ = false;
  settle();
}

void Server::hold(bool on) {
  held_ = on;
  router_.hold(on);
  settle();
}

}  // namespace caisson::cdp
