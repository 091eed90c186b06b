// The session commands against a launcher played by a child process: a list of replies, one a request.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cstring>

#include "launcher/cli/commands.h"
#include "launcher/common/ipc/channel.h"
#include "tests/unit/audit/log_dir.h"

namespace caisson::cli {
namespace {

class FakeLauncher {
 public:
  explicit FakeLauncher(std::vector<json::Value> replies) {
    sockaddr_un address{.sun_family = AF_UNIX};
    std::strncpy(address.sun_path, path().c_str(), sizeof address.sun_path - 1);
    const Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    child_ = ::fork();
    if (child_ != 0) return;
    const Fd peer(::accept(listener.get(), nullptr, nullptr));
    for (json::Value& reply : replies) {
      const auto request = ipc::receive(peer.get(), ipc::Wait::yes);
      if (!request) ::_exit(1);
      (void)ipc::send(peer.get(), {{"event", "exec_exit"}});  // events may come at any time
      reply["id"] = (*request)->body["id"];
      reply["echo"] = (*request)->body;
      (void)ipc::send(peer.get(), reply);
    }
    ::_exit(0);
  }
  FakeLauncher(const FakeLauncher&) = delete;
  ~FakeLauncher() { ::waitpid(child_, nullptr, 0); }
  [[nodiscard]] const std::string& directory() const { return dir_.path(); }

 private:
  [[nodiscard]] std::string path() const { return dir_.path() + "/control.sock"; }
  audit::LogDir dir_;
  pid_t child_ = -1;
};

std::pair<int, std::string> run(std::vector<std::string> words, const std::string& launcher_dir, bool json = true) {
  words.insert(words.end(), {"--run", launcher_dir});
  if (json) words.emplace_back("--json");
  ::testing::internal::CaptureStdout();
  const int status = dispatch(all_commands(), words);
  std::fflush(stdout);
  return {status, ::testing::internal::GetCapturedStdout()};
}

TEST(SessionCommands, ListAsTableAndAsDocument) {
  const json::Value session = {{"session", "s-1"}, {"domain", "bash"}, {"label", "\x1b[2J"}, {"execs", 2}};
  const json::Value reply = {{"ok", true}, {"sessions", json::Value::array({session})}};
  const FakeLauncher first({{{"ok", true}}, reply});
  const auto [status, out] = run({"session", "ls"}, first.directory(), false);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(out.contains("s-1      bash    -") && out.contains("\\u001b[2J") && !out.contains('\x1b')) << out;
  const FakeLauncher second({{{"ok", true}}, reply});
  EXPECT_EQ(json::parse(run({"session", "ls"}, second.directory()).second)->at("sessions").size(), 1U);
}

TEST(SessionCommands, KillEndsEachAndReportsTheFirstFailure) {
  const json::Value missing = {{"ok", false}, {"error", {{"code", "not_found"}, {"what", "no such session"}}}};
  const FakeLauncher launcher({{{"ok", true}}, {{"ok", true}}, missing});
  const auto [status, out] = run({"session", "kill", "s-1", "s-2"}, launcher.directory());
  EXPECT_EQ(status, 3);
  EXPECT_EQ(json::parse(out)->at("error").at("what"), "session 's-2': no such session");
  EXPECT_EQ(run({"session", "kill"}, "").first, 2);
}

TEST(SessionCommands, ReportIsShown) {
  json::Value report = {{"tier", "T3"}};
  report["mechanisms"].push_back({{"name", "seccomp"}});
  const json::Value reply = {{"ok", true}, {"report", report}};
  const FakeLauncher launcher({{{"ok", true}}, reply});
  const auto [status, out] = run({"session", "report", "s-1"}, launcher.directory(), false);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(out, "tier        T3\nmechanisms\n  - name=seccomp\n");
}

TEST(SessionCommands, WithoutALauncherTheyExit6) {
  const audit::LogDir dir;
  const auto [status, out] = run({"session", "ls"}, dir.path());
  EXPECT_EQ(status, 6);
  EXPECT_TRUE(out.contains("no launcher answers")) << out;
}

TEST(SessionCommands, ALauncherThatHangsUpMeansNotRoot) {
  const FakeLauncher launcher({});
  const auto [status, out] = run({"session", "ls"}, launcher.directory());
  EXPECT_EQ(status, 4);
  EXPECT_TRUE(out.contains("serves root alone")) << out;
}

}  // namespace
}  // namespace caisson::cli
