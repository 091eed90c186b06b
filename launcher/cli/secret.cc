// `caisson secret set|revoke`: hands caisson-gate a secret that is in no file, or takes it back.
#include <unistd.h>

#include "launcher/cli/args.h"
#include "launcher/cli/commands.h"
#include "launcher/cli/gate_line.h"
#include "launcher/egress/list/binding.h"

namespace caisson::cli {
namespace {

// All of stdin but a line's end. An argument would stand in /proc for others to read.
Result<std::string> secret_from_stdin() {
  std::string text;
  char part[512];
  for (ssize_t size = 0; text.size() <= egress::kMaxSecret + 1; text.append(part, static_cast<std::size_t>(size))) {
    size = ::read(STDIN_FILENO, part, sizeof part);
    if (size < 0) return sys_error("read the secret from stdin");
    if (size == 0) break;
  }
  if (text.ends_with('\n')) text.pop_back();
  if (!egress::is_secret(text))
    return fail(Code::invalid_argument, "stdin has no secret: 12 to 1,024 printable characters, and nothing else");
  return text;
}

Result<int> hand_over(const Args& args, const Options& options, const std::string& secret) {
  TRY_ASSIGN(const GateLine line, GateLine::connect(args.last("--workspace").value_or("default"), options, true));
  TRY_ASSIGN(const json::Value done, line.ask(way::Op::hand_over, {{"name", args.words().front()}, {"secret", secret}}));
  if (options.json) print_json(done);
  return 0;
}

}  // namespace

Result<int> secret_set(const Args& args, const Options& options) {
  TRY_ASSIGN(const std::string secret, secret_from_stdin());
  return hand_over(args, options, secret);
}

Result<int> secret_revoke(const Args& args, const Options& options) { return hand_over(args, options, ""); }

}  // namespace caisson::cli
