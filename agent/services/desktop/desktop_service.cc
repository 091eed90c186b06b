#include "agent/services/desktop/desktop_service.h"

#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

// An operation waits for others (frames::kMostActions), each of which may wait for a program that has the clipboard.
constexpr double kDisplaySeconds = 60;
constexpr std::chrono::seconds kWindowsPause{1};  // after a start that failed
constexpr const char* kViewers = "/dev/shm/rfb";  // of the X server, in the session
constexpr frames::Limits kDisplayFrames{.head_bytes = 64 * 1024, .body_bytes = frames::kMostImage, .head_values = 4096};

ProgramSpec spec_of(std::string name, const Config& config) {
  ProgramSpec spec{.name = std::move(name), .domain = "desktop", .label = "desktop", .workspace = config.workspace};
  spec.limits.first_pause = std::chrono::milliseconds(200);
  spec.limits.longest_pause = std::chrono::seconds(30);
  spec.limits.most_failures = 5;
  return spec;
}

ProgramSpec x_server(const Config& config) {
  ProgramSpec spec = spec_of("X server", config);
  // No port: viewers come by a UNIX socket in the session's own memory, X clients by one that the domain `browser` shares.
  // "local" is the abstract socket, which every session with this network would see. It writes its number when it takes clients.
  spec.command.argv = {"Xvnc", std::string(DesktopService::kDisplay), "-displayfd", "1", "-rfbport", "-1", "-rfbunixpath",
                       kViewers, "-rfbunixmode", "0600", "-SecurityTypes", "None", "-nolisten", "tcp", "-nolisten", "local",
                       "-AlwaysShared",
                       // All viewers are one host to it: after five that break off, it would refuse everybody.
                       "-UseBlacklist=0", "-SendPrimary=0", "-SetPrimary=0", "-depth", "24", "-geometry",
                       std::to_string(config.display_width) + "x" + std::to_string(config.display_height)};
  spec.ready.text = std::string(DesktopService::kDisplay.substr(1)) + "\n";
  spec.limits.ready_within = std::chrono::seconds(30);
  return spec;
}

ProgramSpec window_manager(const Config& config) {
  ProgramSpec spec = spec_of("window manager", config);
  spec.command.env["DISPLAY"] = std::string(DesktopService::kDisplay);
  return spec;
}

ProgramSpec display_worker(const Config& config) {
  ProgramSpec spec = spec_of("display worker", config);
  spec.command.tool = true;
  spec.command.argv = {"caisson-display", "--display", std::string(DesktopService::kDisplay)};
  spec.has_protocol = true;
  spec.limits.frames = kDisplayFrames;
  return spec;
}

}  // namespace

DesktopService::DesktopService(bridge::LauncherClient& launcher, const Config& config)
    : launcher_(launcher),
      budget_(config.budget),
      server_(launcher, x_server(config)),
      windows_(std::make_shared<Supervisor>(launcher, window_manager(config))),
      display_(launcher, display_worker(config)) {
  display_.spec().opened = [this](Program::Pointer program) { worker_ = Worker::over(std::move(program), {.budget = budget_}); };
}

DesktopService::~DesktopService() = default;

void DesktopService::serve_workspace(std::string name) {
  for (Supervisor* one : {&server_, windows_.get(), &display_}) {
    one->spec().workspace = name;
    one->spec().session = nullptr;
    one->forget("the workspace has ended");
  }
  managed_ = nullptr;
  worker_ = nullptr;
}

void DesktopService::try_again() {
  for (Supervisor* one : {&server_, windows_.get(), &display_}) one->try_again();
}

task<void> DesktopService::manage_windows(std::shared_ptr<Supervisor> windows, Program::Pointer server) {
  while (server->alive()) {
    const auto started = co_await windows->program();
    if (!started) {
      co_await sleep_for(kWindowsPause);
      continue;
    }
    const Program::Pointer& program = *started;
    const auto ended = std::make_shared<bridge::Notifier>(server->executor());
    program->on_end([ended](const Program&) { ended->notify_all(); });
    while (program->alive()) (void)co_await ended->wait_until(bridge::no_deadline());
  }
  co_return Status{};
}

task<Program::Pointer> DesktopService::screen() {
  CO_TRY_ASSIGN(const Program::Pointer server, co_await server_.program());
  if (managed_ != server) {
    managed_ = server;
    for (Supervisor* one : {windows_.get(), &display_}) {
      one->spec().session = server->session();
      one->forget("the X server was started anew");
    }
    windows_->spec().command.argv = {"openbox", "--sm-disable", "--config-file", server->session()->tools + "/openbox.xml"};
    spawn(server->executor(), "window manager", manage_windows(windows_, server));
  }
  co_return server;
}

task<Worker::Pointer> DesktopService::worker() {
  CO_TRY(co_await screen());
  CO_TRY(co_await display_.program());
  co_return worker_;
}

task<Relay::Pointer> DesktopService::view(std::string note) {
  std::erase_if(viewers_, [](const std::weak_ptr<Relay>& one) {
    const Relay::Pointer there = one.lock();
    return !there || !there->program()->alive();
  });
  if (viewers_.size() >= kMostViewers)
    co_return fail(Code::limit, "the screen has " + std::to_string(kMostViewers) + " viewers, and may have no more");
  (void)co_await worker();  // it frees keys for what a viewer types; without it a viewer sees and points all the same
  // GCC 14 fails on such a list inside co_await.
  std::vector<std::string> argv{"caisson-relay", kViewers, "--note", std::move(note)};
  CO_TRY_ASSIGN(Relay::Pointer relay, co_await join("viewer", std::move(argv), true));
  viewers_.emplace_back(relay);
  co_return relay;
}

task<Relay::Pointer> DesktopService::join(std::string name, std::vector<std::string> argv, bool tool) {
  CO_TRY_ASSIGN(const Program::Pointer server, co_await screen());
  ProgramSpec spec{.name = name, .domain = "desktop", .label = name, .workspace = server_.spec().workspace};
  spec.session = server->session();
  spec.command.tool = tool;
  spec.command.env["DISPLAY"] = std::string(kDisplay);
  spec.command.argv = std::move(argv);
  co_return co_await Relay::start(launcher_, std::move(spec));
}

task<frames::Frame> DesktopService::call(frames::DisplayOp op, json::Value head, std::string body, double seconds) {
  CO_TRY_ASSIGN(Worker::Pointer running, co_await worker());
  head["op"] = frames::display_op_row(op).name;
  const auto deadline = bridge::deadline_after(kDisplaySeconds + seconds);
  CO_TRY_ASSIGN(frames::Frame reply, co_await Worker::call(std::move(running), std::move(head), std::move(body), deadline));
  const auto error = reply.head.find("error");
  if (error == reply.head.end()) co_return reply;
  if (!error->is_object()) co_return fail(Code::protocol, "the display worker failed without a reason");
  co_return std::unexpected(Error(bridge::code_from(json::text_of(*error, "code")), json::text_of(*error, "text")));
}

}  // namespace caisson::services
