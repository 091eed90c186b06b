// caisson-display: drives the X server of one desktop session, inside it: pictures, input, clipboard, size of the screen.
// Requests come over stdin as frames (agent/frames/display_protocol.h), answers leave over stdout. It ends when stdin does, and
// with status 3 when the connection to the X server breaks.
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <memory>

#include "agent/display/worker.h"

namespace caisson::display {
namespace {

constexpr int kUsage = 2, kNoServer = 3;
constexpr std::int64_t kFinishUs = 500'000;
constexpr const char* kHelp =
    "usage: caisson-display [--display :N] [--wait-ms N] [--answer-ms N] [--hold-ms N] [--no-shared-memory]\n"
    "  --display   :99\n"
    "  --wait-ms   for the X server to come up (10000)\n"
    "  --answer-ms for each of its answers (5000)\n"
    "  --hold-ms   until a button or key that is held is released (60000)\n";

struct Options {
  std::string display = ":99";
  std::int64_t wait_ms = 10'000, answer_ms = 5'000, hold_ms = 60'000;
  bool shared_memory = true;
};

Result<Options> parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    std::int64_t* number = name == "--wait-ms"     ? &options.wait_ms
                           : name == "--answer-ms" ? &options.answer_ms
                           : name == "--hold-ms"   ? &options.hold_ms
                                                   : nullptr;
    if (name == "--no-shared-memory") {
      options.shared_memory = false;
      continue;
    }
    if (name == "--display") {
      options.display = value;
    } else if (number != nullptr) {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *number);
      if (error != std::errc() || end != value.data() + value.size() || *number < 1 || *number > 600'000)
        return fail(Code::invalid_argument, std::string(name) + " needs a number from 1 to 600000");
    } else {
      return fail(Code::invalid_argument, "unknown option " + quote(name));
    }
    ++i;
  }
  return options;
}

void say(const std::string& why) { sys::say("caisson-display: " + why); }

// What is up to now only begun ends with the process.
[[noreturn]] void leave(int status, const std::string& why) {
  if (!why.empty()) say(why);
  ::_exit(status);
}

struct Program {
  explicit Program(Loop& loop, const Options& options, Connected connected)
      : link(
            loop, std::move(connected), options.answer_ms * 1000, [this](std::string_view event) { worker.on_event(event); },
            [](const Error& error) { leave(kNoServer, error.text()); }),
        server(link),
        worker(server, options.shared_memory, options.hold_ms * 1000, [this](const std::string& why) {
          worker.let_go();
          link.finish(sys::monotonic_us() + kFinishUs);
          leave(why.empty() ? 0 : 1, why);
        }) {}

  Link link;
  Server server;
  Worker worker;
};

Task<Status> begin(Program& program) {
  CO_TRY(co_await program.server.start());
  CO_TRY(co_await program.worker.start());
  co_return program.worker.serve(STDIN_FILENO, STDOUT_FILENO);
}

int run(const Options& options) {
  const auto number = display_number(options.display);
  if (!number) leave(kUsage, number.error().text());
  auto connected = connect_display(*number, sys::monotonic_us() + options.wait_ms * 1000);
  if (!connected) leave(kNoServer, connected.error().text());
  auto loop = Loop::create({});
  if (!loop) leave(1, loop.error().text());
  const auto program = std::make_unique<Program>(**loop, options, std::move(*connected));
  if (const Status started = program->link.start(); !started) leave(1, started.error().text());
  Task<Status> begun = begin(*program);
  if (const Status ran = (*loop)->run([&] { return begun.done(); }); !ran) leave(1, ran.error().text());
  if (const Status status = begun.take(); !status) leave(kNoServer, status.error().text());
  const Status ran = (*loop)->run();
  leave(1, ran ? "the loop ended" : ran.error().text());
}

}  // namespace
}  // namespace caisson::display

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  const auto options = caisson::display::parse_options(argc, argv);
  if (!options) {
    std::fprintf(stderr, "caisson-display: %s\n%s", options.error().what.c_str(), caisson::display::kHelp);
    return caisson::display::kUsage;
  }
  return caisson::display::run(*options);
}
