// caisson-file-worker: the file operations of one workspace, inside a session of the domain `file`. Requests come over stdin as
// frames (agent/frames), answers leave over stdout. It has only the rights of the session: the kernel decides about every name.
// Each of a few threads takes the next request itself, so that a slow file does not hold up other requests.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>

#include "agent/frames/file_protocol.h"
#include "agent/worker/content.h"
#include "agent/worker/editor.h"
#include "agent/worker/grep.h"
#include "agent/worker/listing.h"
#include "agent/worker/watch.h"
#include "launcher/common/base/sys.h"

namespace caisson::worker {
namespace {

using frames::FileOp;

constexpr unsigned kThreads = 8;
constexpr frames::Limits kAccepted{.head_bytes = 1024 * 1024, .body_bytes = 48 * 1024 * 1024, .head_values = 64 * 1024};

constexpr std::string_view kNotTheFirst = "--not-the-first";

struct State {
  State(bool not_the_first, std::function<void(json::Value)> tell) : history(not_the_first), watches(std::move(tell)) {}
  Handles handles;
  EditHistory history;
  Watches watches;

  std::mutex input;  // the thread that holds it waits for the next request
  frames::Decoder decoder{kAccepted};
  std::string buffer = std::string(64 * 1024, '\0');
  std::string_view unread;

  std::mutex output;

  std::mutex running_lock;
  std::map<std::int64_t, std::shared_ptr<std::atomic<bool>>> running;
};

template <Outcome (*F)(const Request&)>
Outcome plain(State&, const Request& request) {
  return F(request);
}
template <Outcome (*F)(Handles&, const Request&)>
Outcome with_handles(State& state, const Request& request) {
  return F(state.handles, request);
}

Outcome edit(State& state, const Request& request) { return edit_file(state.history, request); }

Outcome watch_start(State& state, const Request& request) { return state.watches.start(request); }
Outcome watch_stop(State& state, const Request& request) { return state.watches.stop(request); }

struct Operation {
  frames::FileOp op;
  Outcome (*run)(State&, const Request&);
};
constexpr Operation kOperations[] = {
    {FileOp::read, plain<read_file>},
    {FileOp::write, plain<write_file>},
    {FileOp::replace, plain<replace_in_file>},
    {FileOp::list, plain<list_directory>},
    {FileOp::glob, plain<glob_files>},
    {FileOp::grep, plain<grep_files>},
    {FileOp::edit, edit},
    {FileOp::watch_start, watch_start},
    {FileOp::watch_stop, watch_stop},
    {FileOp::upload_begin, with_handles<upload_begin>},
    {FileOp::upload_part, with_handles<upload_part>},
    {FileOp::upload_end, with_handles<upload_end>},
    {FileOp::upload_abort, with_handles<upload_abort>},
    {FileOp::download_open, with_handles<download_open>},
    {FileOp::download_part, with_handles<download_part>},
    {FileOp::download_close, with_handles<download_close>},
};
static_assert(frames::covers_file_ops(kOperations));

// The agent is gone, or breaks the protocol: nothing is left to do.
[[noreturn]] void leave(const char* why) {
  std::fprintf(stderr, "caisson-file-worker: %s\n", why);
  ::_exit(1);
}

// The next frame. At the end of stdin the process ends. Called with `input` held.
frames::Frame next_frame(State& state) {
  while (true) {
    if (state.unread.empty()) {
      const ssize_t n = ::read(STDIN_FILENO, state.buffer.data(), state.buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n == 0) ::_exit(0);
      if (n < 0) leave("cannot read requests");
      state.unread = std::string_view(state.buffer).substr(0, static_cast<std::size_t>(n));
    }
    auto frame = state.decoder.take(state.unread);
    if (!frame) leave(frame.error().what.c_str());
    if (*frame) return std::move(**frame);
  }
}

void send(State& state, json::Value head, const std::string& body) {
  auto text = frames::encode_head(std::move(head), body.size());
  if (!text) leave(text.error().what.c_str());
  const std::scoped_lock held(state.output);
  if (!sys::write_all(STDOUT_FILENO, *text) || !sys::write_all(STDOUT_FILENO, body)) leave("cannot answer");
}

Outcome run(State& state, const Request& request) {
  const std::string name = request.text("op");
  const std::optional<FileOp> op = frames::file_op(name);
  if (!op) return refused("io_error", "", "no operation " + quote(name), ENOSYS);
  if (const auto member = frames::unknown_member(*op, request.head))
    return refused("io_error", "", name + " takes no member " + quote(*member), EINVAL);
  return kOperations[static_cast<std::size_t>(*op)].run(state, request);
}

void answer(State& state, std::int64_t id, Outcome outcome) {
  if (outcome) {
    outcome->head["id"] = id;
    return send(state, std::move(outcome->head), outcome->body);
  }
  const Failure& why = outcome.error();
  json::Value error = {{"errno", why.number}, {"path", why.path}, {"kind", why.kind}, {"text", why.text}};
  json::Value head = json::Value::object();
  head["id"] = id;
  head["error"] = std::move(error);
  send(state, std::move(head), "");
}

void serve(State& state) {
  while (true) {
    Request request;
    std::optional<std::int64_t> id;
    {
      const std::scoped_lock held(state.input);
      frames::Frame frame = next_frame(state);
      request.head = std::move(frame.head);
      request.body = std::move(frame.body);
      const std::scoped_lock listed(state.running_lock);
      if (const auto cancelled = request.number("cancel")) {
        if (const auto it = state.running.find(*cancelled); it != state.running.end()) it->second->store(true);
        continue;
      }
      id = request.number("id");
      if (id) state.running[*id] = request.cancelled;
    }
    Outcome outcome = run(state, request);
    if (!id) continue;
    {
      const std::scoped_lock listed(state.running_lock);
      state.running.erase(*id);
    }
    answer(state, *id, std::move(outcome));
  }
}

}  // namespace
}  // namespace caisson::worker

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // writing beyond the limit of a file's size is EFBIG
  // A larger pipe needs fewer turns for large parts. The system may limit it for an unprivileged user; not fatal.
  for (const int pipe : {STDIN_FILENO, STDOUT_FILENO}) (void)::fcntl(pipe, F_SETPIPE_SZ, 1024 * 1024);
  const bool not_the_first = argc > 1 && argv[1] == caisson::worker::kNotTheFirst;
  caisson::worker::State state(not_the_first,
                               [&state](caisson::json::Value event) { caisson::worker::send(state, std::move(event), ""); });
  std::array<std::jthread, caisson::worker::kThreads - 1> threads;
  for (std::jthread& thread : threads) thread = std::jthread([&state] { caisson::worker::serve(state); });
  caisson::worker::serve(state);
}
