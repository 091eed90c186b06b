// Times what `scripts/bench spawn` promises: sessions and execs of a running launcher, `caisson run`, bwrap and posix_spawn,
// all in turn in one run, and the HTTP exec beside an unconfined bash. Prints one JSON object.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "launcher/common/base/json.h"
#include "launcher/common/base/scm.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/ipc/ops.h"

extern char** environ;

namespace {

using caisson::Fd;
namespace json = caisson::json;

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "bench: %s\n", what.c_str());
  std::exit(1);
}

void spawn(const std::vector<std::string>& argv) {
  std::vector<char*> args;
  for (const std::string& a : argv) args.push_back(const_cast<char*>(a.c_str()));
  args.push_back(nullptr);
  pid_t pid = 0;
  if (::posix_spawn(&pid, args[0], nullptr, nullptr, args.data(), environ) != 0) die("posix_spawn " + argv[0]);
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid || status != 0) die(argv[0] + " failed");
}

// A client of the control socket, as lean as posix_spawn's caller: what is measured is the launcher, not a JSON library.
class Client {
 public:
  explicit Client(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    if (::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) die("connect " + path);
    call(R"("op":"hello","protocol":1)");
  }
  std::string create() {
    call(R"("op":"session_create","domain":"bash")");
    const std::string_view name = R"("session":")";
    const auto at = text_.find(name);
    if (at == std::string_view::npos) die("no session in " + std::string(text_));
    const std::string_view rest = text_.substr(at + name.size());
    return std::string(rest.substr(0, rest.find('"')));
  }
  void exec(const std::string& session) {
    call(R"("op":"session_exec","argv":["/usr/bin/true"],"stdin":false,"session":")" + session + '"');
    while (!text_.contains(R"("event":"exec_exit")")) next();
    if (!text_.contains(R"("exit_code":0)")) die(std::string(text_));
  }
  // Its last event comes before the reply.
  void destroy(const std::string& session) { call(R"("op":"session_destroy","session":")" + session + '"'); }

 private:
  void call(const std::string& members) {
    const std::string id = "\"id\":" + std::to_string(++id_), request = "{" + id + "," + members + "}";
    if (::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) die("send");
    do next();
    while (!text_.contains(id + ",") && !text_.contains(id + "}"));
    if (!text_.contains(R"("ok":true)")) die(std::string(text_));
  }
  void next() {
    const caisson::scm::Received came = caisson::scm::receive(socket_.get(), buffer_, sizeof buffer_, 0);
    if (came.size <= 0) die("receive");
    for (std::size_t i = 0; i < came.count; ++i) ::close(came.fds[i]);
    text_ = {buffer_, static_cast<std::size_t>(came.size)};
  }
  Fd socket_;
  std::int64_t id_ = 0;
  char buffer_[caisson::ipc::kMaxMessage];
  std::string_view text_;
};

// One keep-alive connection to the agent.
class Http {
 public:
  Http(int port, std::string key) : key_(std::move(key)), socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) die("connect to the agent");
    const int one = 1;
    (void)::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  }
  std::string post(const std::string& path, const std::string& body) {
    const std::string request = "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nX-AIO-API-Key: " + key_ +
                                "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
                                "\r\n\r\n" + body;
    if (const auto sent = caisson::sys::write_all(socket_.get(), request); !sent) die(sent.error().text());
    std::string in;
    char chunk[16384];
    for (;;) {
      const ssize_t n = ::read(socket_.get(), chunk, sizeof chunk);
      if (n <= 0) die("the agent closed the connection");
      in.append(chunk, static_cast<std::size_t>(n));
      const auto head = in.find("\r\n\r\n");
      if (head == std::string::npos) continue;
      std::string lower = in.substr(0, head);
      std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      const auto at = lower.find("content-length: ");
      if (at != std::string::npos && in.size() >= head + 4 + std::strtoul(lower.c_str() + at + 16, nullptr, 10)) break;
    }
    if (in.find("\"success\":true") == std::string::npos) die("unexpected answer: " + in.substr(0, 800));
    return in;
  }

 private:
  std::string key_;
  Fd socket_;
};

struct Thing {
  std::string name;
  std::function<void()> run, tidy;  // tidy is not timed
  std::vector<double> us;
};

json::Value summary(std::vector<double>& us) {
  std::ranges::sort(us);
  const auto at = [&us](double q) { return us[static_cast<std::size_t>(q * static_cast<double>(us.size() - 1))]; };
  return {{"median_us", at(0.5)}, {"p90_us", at(0.9)}, {"min_us", us.front()}};
}

// Each once a round, in an order of its own.
void measure(std::vector<Thing>& things, int rounds) {
  std::vector<std::size_t> order(things.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(1);
  for (int round = 0; round < rounds + 3; ++round) {
    // What a thing leaves behind longer than the pause below (a network namespace is taken apart for tens of milliseconds) is now
    // this one's cost and now that one's.
    std::ranges::shuffle(order, random);
    for (const std::size_t i : order) {
      Thing& thing = things[i];
      const auto begin = caisson::sys::monotonic_us();
      thing.run();
      const auto end = caisson::sys::monotonic_us();
      if (round >= 3) thing.us.push_back(static_cast<double>(end - begin));  // the first three warm the caches
      thing.tidy();
      ::usleep(4000);  // refills and reaping shall not be the next one's cost
    }
  }
}

}  // namespace

// bench_spawn CONTROL_SOCKET CAISSON BWRAP PORT KEY ROUNDS FLOOR [BIND...]: what a session binds for reading, for bwrap to bind,
// too
int main(int argc, char** argv) {
  if (argc < 8) die("usage: bench_spawn CONTROL_SOCKET CAISSON BWRAP PORT KEY ROUNDS FLOOR [BIND...]");
  Client client(argv[1]);
  Http http(std::atoi(argv[4]), argv[5]);
  const std::string caisson = argv[2], bwrap = argv[3], floor = argv[7];
  const std::string living = client.create();
  const auto session_of = [](const std::string& text) {
    const auto id = text.find("\"session_id\":\"") + 14;
    return text.substr(id, text.find('"', id) - id);
  };
  const std::string api_session = session_of(http.post("/v1/bash/exec", R"({"command":"true"})"));

  std::vector<Thing> things;
  auto add = [&things](
                 std::string name, std::function<void()> run, std::function<void()> tidy = [] {}) {
    things.push_back({std::move(name), std::move(run), std::move(tidy), {}});
  };
  add("posix_spawn true", [] { spawn({"/usr/bin/true"}); });
  add("posix_spawn bash -c true", [] { spawn({"/usr/bin/bash", "-c", "true"}); });
  const auto bwrap_with = [&bwrap](const std::vector<std::string>& binds) {
    std::vector<std::string> argv{bwrap, "--unshare-all"};
    for (const std::string& path : binds) argv.insert(argv.end(), {"--ro-bind", path, path});
    argv.insert(argv.end(), {"--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin", "/bin",
                             "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "/usr/bin/true"});
    return argv;
  };
  add("bwrap --unshare-all true", [argv = bwrap_with({"/usr"})] { spawn(argv); });
  add("floor: the same namespaces, nothing else", [&] { spawn({floor, "/usr/bin/true"}); });
  add("session: create, exec true, destroy", [&] {
    const std::string session = client.create();
    client.exec(session);
    client.destroy(session);
  });
  add("caisson run -- true", [&] { spawn({caisson, "run", "--", "/usr/bin/true"}); });
  add("exec true in a living session", [&] { client.exec(living); });
  const auto bash_true = [&http](const std::string& members) {
    std::string text = http.post("/v1/bash/exec", R"({"command":"true")" + members + "}");
    if (!text.contains("\"exit_code\":0")) die("unexpected answer: " + text.substr(0, 800));
    return text;
  };
  add("POST /v1/bash/exec true, living session", [&] { bash_true(",\"session_id\":\"" + api_session + "\""); });
  std::string answer;
  add(
      "POST /v1/bash/exec true, new session", [&] { answer = bash_true(""); },
      [&] { http.post("/v1/bash/sessions/" + session_of(answer) + "/close", "{}"); });

  const int rounds = std::atoi(argv[6]);
  measure(things, rounds);
  // Apart: the kernel is busy with what such a bwrap leaves for longer than the pause, and the others would pay for it.
  std::vector<Thing> alike;
  alike.push_back(
      {"bwrap with the binds of caisson run", [argv = bwrap_with({argv + 8, argv + argc})] { spawn(argv); }, [] {}, {}});
  alike.push_back({"caisson run -- true, beside it", [&] { spawn({caisson, "run", "--", "/usr/bin/true"}); }, [] {}, {}});
  measure(alike, rounds);
  std::ranges::move(alike, std::back_inserter(things));
  json::Value out = json::Value::object();
  for (Thing& thing : things) out[thing.name] = summary(thing.us);
  std::puts(json::dump(out).c_str());
  return 0;
}
