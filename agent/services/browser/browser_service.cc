#include "agent/services/browser/browser_service.h"

#include <array>

#include "agent/metrics/registry.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/base/word.h"
#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

// All of it lies in the session's own memory: no other session reaches it, and its end is theirs. browser.json leads Chromium's
// folder of managed policies to the file that caisson-cdp writes.
constexpr const char *kProfile = "/dev/shm/profile", *kPolicies = "/dev/shm/policies", *kScratch = "/dev/shm/scratch";
constexpr std::chrono::milliseconds kReadyWithin{60'000};
constexpr double kRestartSeconds = 60;
constexpr std::size_t kMostAnswer = 8 * 1024 * 1024, kReadBytes = 64 * 1024;

// Before a start after the first, second … end within a minute; after one more it is given up.
constexpr std::array<std::chrono::milliseconds, 4> kPauses{std::chrono::milliseconds(200), std::chrono::milliseconds(1000),
                                                           std::chrono::milliseconds(5000), std::chrono::milliseconds(30'000)};
constexpr std::chrono::seconds kCountedFor{60};

ProgramSpec spec_of(const Config& config) {
  ProgramSpec spec{.name = "browser", .domain = "browser", .label = "browser", .workspace = config.workspace};
  spec.command.tool = true;
  spec.command.env["DISPLAY"] = std::string(DesktopService::kDisplay);
  spec.command.argv = {"caisson-cdp", "--socket", BrowserService::kSocket, "--profile", kProfile, "--policies", kPolicies,
                       "--scratch",   kScratch};
  const auto add = [&spec](std::string_view option, const std::string& value) {
    if (!value.empty()) spec.command.argv.insert(spec.command.argv.end(), {std::string(option), value});
  };
  add("--locale", config.browser_locale);
  add("--url", config.homepage);
  if (config.browser_file_dialogs) add("--file-dialogs", *config.browser_file_dialogs ? "true" : "false");
  spec.command.argv.push_back("--");
  if (!config.browser_user_agent.empty()) spec.command.argv.push_back("--user-agent=" + config.browser_user_agent);
  for (std::ptrdiff_t i = 0; !config.browser_extra_args.empty() && i < count_words(config.browser_extra_args); ++i)
    if (const std::string_view one = word(config.browser_extra_args, static_cast<std::size_t>(i)); !one.empty())
      spec.command.argv.emplace_back(one);
  spec.has_protocol = true;
  spec.limits.ready_within = kReadyWithin;
  return spec;
}

}  // namespace

BrowserService::BrowserService(bridge::LauncherClient& launcher, const Config& config, DesktopService& desktop)
    : launcher_(launcher),
      config_(config),
      desktop_(desktop),
      state_(std::make_shared<State>(launcher.executor())),
      supervisor_(launcher, spec_of(config)) {
  supervisor_.spec().opened = [state = state_](Program::Pointer program) {
    state->ready = false;
    state->refused.clear();
    state->control = CdpControl::over(program, [state](const json::Value& event) { hear(state, event); });
    const std::weak_ptr<State> weak = state;
    program->on_end([weak](const Program&) {
      const std::shared_ptr<State> known = weak.lock();
      if (!known) return;
      known->ready = false;
      known->control = nullptr;
      known->changed.notify_all();
    });
  };
  supervisor_.spec().ready.ask = [state = state_](Program::Pointer program, bridge::Clock::time_point deadline) {
    return await_ready(state, std::move(program), deadline);
  };
}

BrowserService::~BrowserService() = default;

void BrowserService::serve_workspace(std::string name) {
  supervisor_.spec().workspace = std::move(name);
  supervisor_.forget("the workspace has ended");
  screen_ = nullptr;
  state_->given_up.clear();
}

// What caisson-cdp says is what a page that took it over may say: nothing here follows from it but restarts and words.
void BrowserService::hear(const std::shared_ptr<State>& state, const json::Value& event) {
  const std::string what = json::text_of(event, "event");
  if (what == "ready") {
    state->ready = true;
  } else if (what == "started") {
    state->ready = false;
  } else if (what == "refused") {
    state->refused = quote(json::text_of(event, "why"), 512);
  } else if (what == "ended" || what == "failed") {
    state->ready = false;
    if (json::get_bool(event, "asked").value_or(std::nullopt) == true) return state->changed.notify_all();
    if (!state->given_up.empty()) return;  // however often it is said: one line in the log, and a few times kept
    const bridge::Clock::time_point now = bridge::Clock::now();
    while (!state->ends.empty() && now - state->ends.front() > kCountedFor) state->ends.pop_front();
    state->ends.push_back(now);
    metrics::registry().add(metrics::Id::browser_ends);
    const std::string why = quote(json::text_of(event, "why"), 512);
    sys::say("caisson-agent: the browser has ended: " + why);
    if (json::get_bool(event, "final").value_or(std::nullopt) == true) state->given_up = "the browser cannot start: " + why;
    else if (state->ends.size() > kPauses.size())
      state->given_up =
          "the browser ended " + std::to_string(state->ends.size()) + " times within a minute, the last time: " + why;
    else if (state->control)
      spawn(state->executor, "browser restart", start_again(state, state->control, kPauses[state->ends.size() - 1]));
  }
  state->changed.notify_all();
}

task<void> BrowserService::start_again(std::shared_ptr<State> state, CdpControl::Pointer control,
                                       std::chrono::milliseconds pause) {
  co_await sleep_for(pause);
  if (state->control != control || state->ready) co_return Status{};
  json::Value command = state->wishes;
  command["do"] = "restart";
  co_return CdpControl::tell(control, command);
}

task<void> BrowserService::await_ready(std::shared_ptr<State> state, Program::Pointer program,
                                       bridge::Clock::time_point deadline) {
  while (!state->ready && state->refused.empty() && program->alive()) {
    if (!state->given_up.empty()) co_return fail(Code::unavailable, state->given_up);
    if (!co_await state->changed.wait_until(deadline)) co_return fail(Code::timeout, "the browser does not answer");
  }
  if (!program->alive()) co_return std::unexpected(*program->end_error());
  co_return Status{};
}

task<Program::Pointer> BrowserService::program() {
  if (!state_->given_up.empty()) co_return fail(Code::unavailable, state_->given_up + "; POST /v1/browser/restart tries again");
  CO_TRY_ASSIGN(Program::Pointer screen, co_await desktop_.screen());
  if (screen_ != screen) {
    screen_ = std::move(screen);
    CO_TRY(co_await supervisor_.stop("its screen was made anew"));
  }
  CO_TRY_ASSIGN(Program::Pointer running, co_await supervisor_.program());
  CO_TRY(co_await await_ready(state_, running, bridge::Clock::now() + kReadyWithin));
  co_return running;
}

task<std::shared_ptr<bridge::SessionHandle>> BrowserService::session() {
  CO_TRY_ASSIGN(const Program::Pointer running, co_await program());
  co_return running->session();
}

task<void> BrowserService::restart(BrowserWishes wishes) {
  state_->given_up.clear();
  state_->ends.clear();
  supervisor_.try_again();
  desktop_.try_again();
  json::Value command = json::Value::object();
  if (wishes.url_blocklist) command["url_blocklist"] = std::move(*wishes.url_blocklist);
  if (wishes.url_allowlist) command["url_allowlist"] = std::move(*wishes.url_allowlist);
  const bool asks = !command.empty() || wishes.allow_file_selection_dialogs || wishes.locale;
  const auto dialogs = wishes.allow_file_selection_dialogs ? wishes.allow_file_selection_dialogs : config_.browser_file_dialogs;
  if (dialogs) command["allow_file_selection_dialogs"] = *dialogs;
  if (wishes.locale) command["locale"] = std::move(*wishes.locale);
  else if (!config_.browser_locale.empty()) command["locale"] = config_.browser_locale;
  if (!config_.homepage.empty()) command["url"] = config_.homepage;
  const bool starts = state_->control == nullptr;
  if (starts) CO_TRY(co_await program());
  if (starts && !asks) co_return Status{};
  CO_TRY_ASSIGN(const Program::Pointer running, co_await supervisor_.program());
  const bool was_ready = std::exchange(state_->ready, false);
  json::Value wanted = std::exchange(state_->wishes, command);
  command["do"] = "restart";
  CO_TRY(CdpControl::tell(state_->control, command));
  Status ready = co_await await_ready(state_, running, bridge::deadline_after(kRestartSeconds));
  std::string refused = std::exchange(state_->refused, {});
  if (refused.empty()) co_return ready;
  state_->ready = was_ready;
  state_->wishes = std::move(wanted);
  co_return fail(Code::invalid_argument, std::move(refused));
}

// The next message; what comes behind it stays in `rest`.
task<std::string> BrowserService::next(std::shared_ptr<Client> client) {
  std::size_t searched = 0;
  while (true) {
    const std::size_t end = client->rest.find('\0', searched);
    if (end != std::string::npos) {
      std::string message = client->rest.substr(0, end);
      client->rest.erase(0, end + 1);
      co_return message;
    }
    searched = client->rest.size();
    if (searched > kMostAnswer) co_return fail(Code::limit, "the browser's answer is too large");
    CO_TRY_ASSIGN(const std::string bytes, co_await Relay::read(client->relay, kReadBytes));
    if (bytes.empty()) co_return fail(Code::io, "the browser has ended");
    client->rest += bytes;
  }
}

task<void> BrowserService::greet(std::shared_ptr<Client> client) {
  CO_TRY_ASSIGN(const std::string text, co_await next(client));
  CO_TRY_ASSIGN(const json::Value hello, json::parse(text, {.max_bytes = kMostAnswer, .max_depth = 2, .max_values = 16}));
  if (!hello.is_object()) co_return fail(Code::protocol, "the browser's greeting is no object");
  if (json::text_of(hello, "hello") != "ok") co_return fail(Code::not_found, json::text_of(hello, "why").substr(0, 512));
  client->browser = json::text_of(hello, "browser").substr(0, 64);
  co_return Status{};
}

task<json::Value> BrowserService::converse(std::shared_ptr<Client> client, std::string command) {
  command.push_back('\0');
  CO_TRY(co_await Relay::write(client->relay, std::move(command)));
  while (true) {
    CO_TRY_ASSIGN(const std::string text, co_await next(client));
    CO_TRY_ASSIGN(json::Value said, json::parse(text, {.max_bytes = kMostAnswer, .max_depth = 16, .max_values = 64 * 1024}));
    if (!said.is_object() || !said.contains("id")) continue;  // an event
    if (const auto error = said.find("error"); error != said.end())
      co_return fail(Code::invalid_argument,
                     error->is_object() ? json::text_of(*error, "message").substr(0, 512) : "it is refused");
    co_return std::move(said["result"]);
  }
}

task<json::Value> BrowserService::ask(std::string method, json::Value params, std::string target,
                                      std::chrono::milliseconds within) {
  CO_TRY_ASSIGN(Client client, co_await connect(std::move(target)));
  co_return co_await ask_as(std::move(client), std::move(method), std::move(params), within);
}

task<json::Value> BrowserService::ask_as(Client asking, std::string method, json::Value params,
                                         std::chrono::milliseconds within) {
  const auto client = std::make_shared<Client>(std::move(asking));
  const json::Value command = {{"id", 1}, {"method", std::move(method)}, {"params", std::move(params)}};
  task<json::Value> talk = converse(client, json::dump(command));
  co_return co_await with_timeout(std::move(talk), within, "the browser does not answer");
}

task<std::string> BrowserService::read_all(Relay::Pointer relay) {
  std::string out;
  while (true) {
    CO_TRY_ASSIGN(const std::string bytes, co_await Relay::read(relay, kReadBytes));
    if (bytes.empty()) co_return out;
    if (out.size() + bytes.size() > kMostAnswer) co_return fail(Code::limit, "the protocol's description is too large");
    out += bytes;
  }
}

// A program of the session reads the description, which lies among the page driver's files: the agent opens none of them.
task<std::string> BrowserService::protocol() {
  CO_TRY_ASSIGN(const auto in, co_await session());
  ProgramSpec spec{.name = "protocol", .domain = "browser", .label = "protocol", .workspace = supervisor_.spec().workspace};
  spec.session = in;
  spec.command.argv = {in->tools + "/driver/page_driver", "--describe-protocol"};
  CO_TRY_ASSIGN(Relay::Pointer relay, co_await Relay::start(launcher_, std::move(spec)));
  task<std::string> reading = read_all(std::move(relay));
  CO_TRY_ASSIGN(std::string text, co_await with_timeout(std::move(reading), kAnswersWithin, "the page driver does not answer"));
  if (text.empty()) co_return fail(Code::io, "the page driver does not describe the protocol");
  co_return text;
}

task<BrowserService::Client> BrowserService::connect(std::string target) {
  CO_TRY_ASSIGN(const Program::Pointer running, co_await program());
  json::Value hello = {{"hello", target.empty() ? "browser" : "page"}};
  if (!target.empty()) hello["target"] = std::move(target);
  ProgramSpec spec{.name = "browser relay", .domain = "browser", .label = "relay", .workspace = supervisor_.spec().workspace};
  spec.session = running->session();
  spec.command.tool = true;
  spec.command.argv = {"caisson-relay", kSocket, "--hello", json::dump(hello)};
  const auto client = std::make_shared<Client>();
  CO_TRY_ASSIGN(client->relay, co_await Relay::start(launcher_, std::move(spec)));
  task<void> greeting = greet(client);
  CO_TRY(co_await with_timeout(std::move(greeting), kAnswersWithin, "the browser does not answer"));
  co_return std::move(*client);
}

}  // namespace caisson::services
