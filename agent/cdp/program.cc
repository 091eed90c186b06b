#include "agent/cdp/program.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "agent/cdp/downloads.h"
#include "agent/cdp/policies.h"
#include "launcher/common/base/sys.h"

namespace caisson::cdp {
namespace {

// What Chromium would write elsewhere. TMPDIR is emptied before each start: a killed browser leaves its socket's folder there.
struct ScratchRow {
  const char *variable, *folder;
};
constexpr ScratchRow kScratch[] = {{"TMPDIR", "/tmp"},
                                   {"XDG_CONFIG_HOME", "/config"},
                                   {"XDG_CACHE_HOME", "/cache"},
                                   {"XDG_DATA_HOME", "/data"},
                                   {"XDG_RUNTIME_DIR", "/runtime"}};

Result<std::vector<std::string>> scratch_environment(const std::string& scratch) {
  std::vector<std::string> out;
  if (scratch.empty()) return out;
  std::error_code ignored;  // what cannot be removed stays, and is in nobody's way
  std::filesystem::remove_all(scratch + kScratch[0].folder, ignored);
  if (::mkdir(scratch.c_str(), 0700) != 0 && errno != EEXIST) return sys_error("make folder " + quote(scratch));
  for (const ScratchRow& row : kScratch) {
    const std::string folder = scratch + row.folder;
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return sys_error("make folder " + quote(folder));
    out.push_back(std::string(row.variable) + "=" + folder);
  }
  return out;
}

}  // namespace

Program::Program(Loop& loop, Options options)
    : loop_(loop),
      options_(std::move(options)),
      control_(loop, STDIN_FILENO, STDOUT_FILENO),
      server_(loop, Limits{},
              {.clients = [this](std::size_t count) { control_.tell({{"event", "clients"}, {"count", count}}); },
               .ended =
                   [this](ClientId client, const std::string& why) {
                     control_.tell({{"event", "client_ended"}, {"client", client}, {"why", why}});
                   },
               .browser_closed = [this] { browser_.expect_end(""); }}),
      browser_(loop, [this](const Browser::Ended& it) { ended(it); }),
      watch_(options_.least_filters) {
  server_.router().downloads = downloads_folder(options_.start.home);
  wishes_.locale = options_.start.locale;
  wishes_.allow_file_selection_dialogs = options_.allow_file_selection_dialogs;
  wishes_.url = options_.start.url;
  server_.router().on_root_event = [this](std::string_view method, std::string_view params) {
    if (method == "Target.targetCrashed") look_soon();
    if (pages_.heard(method, params) && !closing_) server_.router().ask("Target.createTarget", R"({"url":"about:blank"})", {});
  };
}

Program::~Program() { loop_.cancel(look_timer_); }

Status Program::run() {
  TRY(server_.listen(options_.socket));
  TRY(control_.listen([this](Result<Command> command) { obey(std::move(command)); },
                      [this] { end(Next::leave, "nobody asks any more"); }));
  for (const int signal : {SIGTERM, SIGINT}) loop_.on_signal(signal, [this] { end(Next::leave, "it was told to end"); });
  control_.tell({{"event", "listening"}, {"socket", options_.socket}});
  start();
  look();
  return loop_.run();
}

void Program::obey(Result<Command> command) {
  if (!command) return control_.tell({{"event", "refused"}, {"why", command.error().what}});
  switch (command->what) {
    case Do::hold:
    case Do::release:
      server_.hold(command->what == Do::hold);
      return control_.tell({{"event", server_.held() ? "held" : "released"}});
    case Do::status:
      return tell_status();
    case Do::restart:
      wishes_ = std::move(command->wishes);
      return end(Next::restart, "restart");
    case Do::end:
      return end(Next::leave, "end");
  }
}

void Program::end(Next next, const std::string& why) {
  if (next_ != Next::leave) next_ = next;  // an end is final
  if (!browser_.running()) return next_ == Next::restart ? start() : loop_.stop();
  if (std::exchange(closing_, true)) return;
  server_.router().ask("Browser.close", "", {});
  server_.settle();
  browser_.expect_end(why);
}

void Program::start() {
  next_ = Next::stay;
  closing_ = false;
  last_end_.clear();
  if (const auto started = start_browser(); !started) {
    last_end_ = started.error().text();
    if (browser_.running()) return browser_.kill(last_end_);
    control_.tell({{"event", "failed"}, {"why", last_end_}, {"final", started.error().code == Code::unavailable}});
  }
}

Status Program::start_browser() {
  TRY(try_sandbox());
  TRY(prepare_profile(options_.start.profile));
  TRY(write_policies(options_.policies, policies(wishes_, options_.start.home)));
  TRY_ASSIGN(const auto environment, scratch_environment(options_.scratch));
  Start with = options_.start;
  with.locale = wishes_.locale;
  with.url = wishes_.url;
  TRY_ASSIGN(Browser::Pipes pipes, browser_.start(command_line(with), environment));
  name_ = sys::random_hex(16);
  product_.clear();
  pages_.clear();
  zygotes_.clear();
  TRY(server_.connect_browser(std::move(pipes.to_browser), std::move(pipes.from_browser), name_));
  control_.tell({{"event", "started"}, {"pid", browser_.pid()}, {"browser", name_}});
  greet();
  return {};
}

void Program::greet() {
  server_.router().ask("Target.setDiscoverTargets", Pages::kDiscover, {});
  server_.router().ask("Browser.getVersion", "", [this](std::string_view result) {
    product_ = inner_string(result, "product").substr(0, 128);
    control_.tell({{"event", "ready"}, {"browser", name_}, {"product", product_}});
    look_soon();  // it has its zygotes by now: they are known before one can be missed
  });
  server_.settle();
}

void Program::ended(const Browser::Ended& ended) {
  last_end_ = ended.why.empty() ? "it ended by itself" : ended.why;
  server_.disconnect_browser("the browser has ended");
  control_.tell({{"event", "ended"},
                 {ended.exit.signaled ? "signal" : "exit", ended.exit.status},
                 {"asked", closing_},
                 {"why", last_end_},
                 {"said", ended.said}});
  if (next_ == Next::restart) start();
  else if (next_ == Next::leave) loop_.stop();
}

// A page may crash as often as it likes: looks are no closer than kSoonUs.
void Program::look_soon() {
  if (std::exchange(soon_, true)) return;
  loop_.cancel(look_timer_);
  look_timer_ = loop_.after(kSoonUs, [this] { look(); });
}

void Program::look() {
  soon_ = false;
  look_timer_ = loop_.after(kLookUs, [this] { look(); });
  if (!browser_.running()) return;
  const std::vector<Process> processes = descendants(::getpid());
  if (zygotes_.lost(browser_.pid(), processes, !product_.empty()) && !closing_)
    return browser_.kill("its zygote has ended, without which no page has a process");
  const auto found = watch_.look(processes, sys::monotonic_us());
  if (!found) return;
  const std::string why = "renderer " + std::to_string(found->pid) + " is not confined: " + found->why;
  control_.tell({{"event", "unconfined"}, {"pid", found->pid}, {"why", why}});
  browser_.kill(why);
}

void Program::tell_status() {
  const Router& router = server_.router();
  control_.tell({{"event", "status"},
                 {"running", browser_.running()},
                 {"pid", browser_.pid()},
                 {"browser", name_},
                 {"product", product_},
                 {"clients", server_.clients()},
                 {"sessions", router.sessions()},
                 {"unanswered", router.unanswered()},
                 {"dropped", router.dropped()},
                 {"renderers", watch_.renderers()},
                 {"held", server_.held()},
                 {"last_end", last_end_}});
}

}  // namespace caisson::cdp
