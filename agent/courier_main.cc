// caisson-courier: makes the requests that the agent, which cannot connect, needs: to the addresses in the operator's variables
// and to no other. The launcher starts it only if one of them is set; fd 3 is its line to the agent. Exit status: 2 settings, 3
// the agent broke the protocol, 10 anything else.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include <netdb.h>

#include "agent/courier/courier.h"
#include "agent/courier/walls.h"
#include "agent/http/log.h"
#include "agent/seal.h"

namespace caisson {
namespace {

constexpr int kLineFd = 3, kBrokenProtocol = 3;
constexpr rlim_t kMostFiles = 64;

[[noreturn]] void die(const Error& error) {
  log::error("caisson-courier: " + error.text());
  ::_exit(error.code == Code::protocol ? kBrokenProtocol : code_exit_status(error.code));
}

// Names are looked up in the only thread. A server of names that does not answer must not hold up all else for long.
constexpr const char* kNamesInTime = "timeout:2 attempts:2";

Status prepare() {
  const rlimit files{kMostFiles, kMostFiles}, none{0, 0};
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return sys_error("prctl PR_SET_DUMPABLE");
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0 || ::setrlimit(RLIMIT_CORE, &none) != 0) return sys_error("setrlimit");
  ::signal(SIGPIPE, SIG_IGN);
  if (::setenv("RES_OPTIONS", kNamesInTime, 0) != 0) return sys_error("setenv");
  // Loads what names are looked up with, while files can still be opened.
  addrinfo* found = nullptr;
  if (::getaddrinfo("localhost", nullptr, nullptr, &found) == 0) ::freeaddrinfo(found);
  return {};
}

task<void> end_with(task<void> work) {
  const Status done = co_await std::move(work);
  die(done ? fail(Code::internal, "has no work any more").error() : done.error());
}

Status run() {
  TRY(prepare());
  TRY_ASSIGN(courier::Destinations destinations, courier::destinations_from_env());
  asio::io_context io(1);
  TRY(courier::close_in(destinations));
  courier::Courier courier(io.get_executor(), Fd(kLineFd), std::move(destinations));
  TRY(seal());
  spawn(io.get_executor(), "orders", end_with(courier.serve()));
  spawn(io.get_executor(), "keys", end_with(courier.fetch_keys()));
  spawn(io.get_executor(), "spans", end_with(courier.post_spans()));
  io.run();
  return fail(Code::internal, "has no work any more");
}

}  // namespace
}  // namespace caisson

int main() {
  try {
    const caisson::Status status = caisson::run();
    caisson::die(status.error());
  } catch (const std::exception& e) {
    caisson::log::error(std::string("caisson-courier: ") + e.what());
    return 11;
  }
}
