// What scripts/bench egress measures with: a server, clients and the plainest relay, all of TCP and of the smallest HTTP.
//   wire serve ADDRESS PORT                      GET /N answers N bytes, on connections that are kept
//   wire splice ADDRESS PORT TO PORT             two threads for a connection, which splice through a pipe
//   wire bulk TARGET STREAMS SECONDS             bytes a second that arrive
//   wire small TARGET CLIENTS SECONDS            requests a second, each on a connection of its own
//   wire kept TARGET CLIENTS SECONDS             requests a second of a proxy, with the whole address, on connections that are
//                                                kept
//   wire asked TARGET CLIENTS SECONDS            the same on a connection each, for a proxy that keeps none
//   wire one TARGET COUNT                        microseconds of each small request on a connection of its own, in turn
// TARGET: ADDRESS PORT HOST[:PORT], the last as - for the address itself, as a name for `kept`, as NAME:PORT for CONNECT first.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kBuffer = 256 * 1024, kSmall = 128;

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

sockaddr_in at(const char* address, const char* port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
  if (::inet_pton(AF_INET, address, &out.sin_addr) != 1) die(address);
  return out;
}

int connected(const sockaddr_in& to) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) die("connect");
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

int listening(const sockaddr_in& here) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0 || ::listen(fd, 4096) != 0) die("listen");
  return fd;
}

// ---- the server

struct Client {
  std::string head;
  std::size_t left = 0;  // bytes of the answer
  bool last = false;     // the client asked for an end after it
};

void serve(const sockaddr_in& here) {
  static const std::string bytes(kBuffer, 'x');
  const int door = listening(here), poll = ::epoll_create1(EPOLL_CLOEXEC);
  std::unordered_map<int, Client> clients;
  epoll_event event{.events = EPOLLIN, .data = {.fd = door}};
  ::epoll_ctl(poll, EPOLL_CTL_ADD, door, &event);
  // True: it may go on; it has read all or written what there was room for.
  const auto turn = [](int fd, Client& of) {
    while (true) {
      while (of.left > 0) {
        const ssize_t done = ::send(fd, bytes.data(), std::min(of.left, bytes.size()), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (done < 0) return errno == EAGAIN;
        of.left -= static_cast<std::size_t>(done);
      }
      // The server ends it, as it does in earnest: the states that wait for late segments are then not the relays', whose ports
      // would run out.
      if (of.last) return false;
      char buffer[4096];
      const ssize_t got = ::recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
      if (got <= 0) return got < 0 && errno == EAGAIN;
      of.head.append(buffer, static_cast<std::size_t>(got));
      if (!of.head.ends_with("\r\n\r\n")) continue;
      of.last = of.head.find("Connection: close") != std::string::npos;
      const auto size = std::strtoull(of.head.c_str() + std::strlen("GET /"), nullptr, 10);
      const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n";
      of.head.clear();
      // One segment for a small answer, as any server sends it.
      const std::string first = answer + bytes.substr(0, std::min<std::size_t>(size, kSmall));
      if (::send(fd, first.data(), first.size(), MSG_DONTWAIT | MSG_NOSIGNAL) != static_cast<ssize_t>(first.size())) return false;
      of.left = size - std::min<std::size_t>(size, kSmall);
    }
  };
  while (true) {
    epoll_event events[256];
    const int count = ::epoll_wait(poll, events, 256, -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == door) {
        const int one = 1, came = ::accept4(door, nullptr, nullptr, SOCK_CLOEXEC);
        if (came < 0) continue;
        ::setsockopt(came, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        clients[came];
        event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data = {.fd = came}};
        ::epoll_ctl(poll, EPOLL_CTL_ADD, came, &event);
      } else if (!turn(fd, clients[fd])) {
        clients.erase(fd);
        ::close(fd);
      }
    }
  }
}

// ---- the plainest relay

void pour(int from, int to) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) die("pipe");
  for (bool flows = true; flows;) {
    ssize_t left = ::splice(from, nullptr, pipe[1], nullptr, 65536, SPLICE_F_MOVE);
    flows = left > 0;
    while (flows && left > 0) {
      const ssize_t done = ::splice(pipe[0], nullptr, to, nullptr, static_cast<std::size_t>(left), SPLICE_F_MOVE);
      flows = done > 0;
      left -= done;
    }
  }
  ::shutdown(to, SHUT_WR);
  ::shutdown(from, SHUT_RD);
  ::close(pipe[0]), ::close(pipe[1]);
}

void relay(const sockaddr_in& here, const sockaddr_in& there) {
  const int door = listening(here);
  while (true) {
    const int one = ::accept4(door, nullptr, nullptr, SOCK_CLOEXEC);
    if (one < 0) continue;
    std::thread([one, there] {
      const int other = connected(there);
      std::thread back([=] { pour(other, one); });
      pour(one, other);
      back.join();
      ::close(one), ::close(other);
    }).detach();
  }
}

// ---- clients

struct Target {
  sockaddr_in address;
  std::string host;  // empty: none is said

  // GET of so many bytes; `whole`: as a proxy is asked.
  [[nodiscard]] std::string request(std::size_t size, bool whole, bool last) const {
    const std::string name = host.empty() ? "api.test" : host.substr(0, host.find(':'));
    return "GET " + (whole ? "http://" + name : "") + "/" + std::to_string(size) + " HTTP/1.1\r\nHost: " + name +
           (last ? "\r\nConnection: close\r\n\r\n" : "\r\n\r\n");
  }
  [[nodiscard]] int open() const {
    const int fd = connected(address);
    if (host.find(':') == std::string::npos) return fd;
    const std::string head = "CONNECT " + host + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n";
    if (::send(fd, head.data(), head.size(), MSG_NOSIGNAL) < 0) die("CONNECT");
    char answer[4096];
    std::size_t size = 0;
    while (!std::string_view(answer, size).ends_with("\r\n\r\n")) {
      const ssize_t got = ::recv(fd, answer + size, sizeof answer - size, 0);
      if (got <= 0) die("CONNECT");
      size += static_cast<std::size_t>(got);
    }
    if (std::string_view(answer, size).find(" 200 ") == std::string_view::npos) die("CONNECT was refused");
    return fd;
  }
};

// One request and its whole answer; `last`: with the end after it.
void ask(int fd, const std::string& request, bool last) {
  if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) die("send");
  char answer[4096];
  std::size_t size = 0;
  while (true) {
    const ssize_t got = ::recv(fd, answer + size, sizeof answer - size, 0);
    if (got == 0 && last && size > kSmall) break;
    if (got <= 0) die("recv");
    size += static_cast<std::size_t>(got);
    const auto end = std::string_view(answer, size).find("\r\n\r\n");
    if (!last && end != std::string_view::npos && size >= end + 4 + kSmall) break;
  }
  if (!std::string_view(answer, size).starts_with("HTTP/1.1 200") && !std::string_view(answer, size).starts_with("HTTP/1.0 200"))
    die("the answer is not 200");
}

// Threads that count until the time is over: what they counted a second.
void counted(int threads, int seconds, const std::function<void(std::atomic<std::uint64_t>&, const std::atomic<bool>&)>& work) {
  std::atomic<std::uint64_t> sum = 0;
  std::atomic<bool> over = false;
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) running.emplace_back([&] { work(sum, over); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // all are on their way
  const auto before = sum.load();
  const auto begin = Clock::now();
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  const std::chrono::duration<double> took = Clock::now() - begin;
  std::printf("%.0f\n", static_cast<double>(sum.load() - before) / took.count());
  std::fflush(stdout);
  ::_exit(0);  // streams of bulk have no end
}

void bulk(const Target& to, int streams, int seconds) {
  counted(streams, seconds, [&](auto& sum, auto& over) {
    const int fd = to.open();
    const std::string request = to.request(std::size_t{1} << 50, false, false);
    if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) die("send");
    std::vector<char> buffer(kBuffer);
    while (!over) {
      const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
      if (got <= 0) die("recv");
      sum += static_cast<std::uint64_t>(got);
    }
  });
}

void small(const Target& to, int clients, int seconds, bool whole, bool kept) {
  const std::string request = to.request(kSmall, whole, !kept);
  counted(clients, seconds, [&](auto& sum, auto& over) {
    int fd = -1;
    while (!over) {
      if (fd < 0) fd = to.open();
      ask(fd, request, !kept);
      ++sum;
      if (!kept) ::close(std::exchange(fd, -1));
    }
  });
}

void one(const Target& to, int count) {
  const std::string request = to.request(kSmall, false, true);
  for (int i = 0; i < count; ++i) {
    const auto begin = Clock::now();
    const int fd = to.open();
    ask(fd, request, true);
    ::close(fd);
    std::printf("%.1f\n", std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "serve" && argc == 4) serve(at(argv[2], argv[3]));
  if (what == "splice" && argc == 6) relay(at(argv[2], argv[3]), at(argv[4], argv[5]));
  if (argc < 6) return 64;
  const Target to{at(argv[2], argv[3]), std::string_view(argv[4]) == "-" ? "" : argv[4]};
  const int first = std::atoi(argv[5]), second = argc > 6 ? std::atoi(argv[6]) : 0;
  if (what == "one") return one(to, first), 0;
  if (what == "bulk") bulk(to, first, second);
  else if (what == "small" || what == "kept" || what == "asked") small(to, first, second, what != "small", what == "kept");
  else return 64;
  return 0;
}
