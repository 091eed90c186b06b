#include "agent/services/mcp/server_instance.h"

#include <inside_files.h>  // generated

#include <fstream>

#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

constexpr std::string_view kStateful = "2025-11-25", kStateless = "2026-07-28", kMeta = "io.modelcontextprotocol/";
constexpr std::size_t kMostSecret = 64 * 1024, kMostAskedBack = 16;
constexpr std::chrono::milliseconds kStartWithin{60'000}, kStopWithin{500};

json::Value client_info() { return {{"name", "caisson"}, {"title", "Caisson"}, {"version", CAISSON_VERSION}}; }

mcp::Failure unavailable(const Error& error) { return {.code = mcp::ErrorCode::internal, .text = error.text()}; }

ProgramSpec spec_of(const ServerInstance::Setup& setup) {
  const ServerConfig& config = setup.config;
  ProgramSpec spec{
      .name = "MCP server " + config.name, .domain = config.domain, .label = "mcp:" + config.name, .workspace = setup.workspace};
  spec.command.argv = config.argv;
  if (!config.url.empty()) spec.command.argv = {"/usr/bin/python3", "-I", "-c", std::string(inside::kPythonBoot)};
  spec.command.cwd = config.cwd;
  for (const auto& [name, value] : config.env) spec.command.env[name] = value;
  spec.has_protocol = true;
  spec.limits.idle = config.idle;
  spec.limits.ready_within = kStartWithin;
  spec.limits.stop_within = kStopWithin;
  return spec;
}

// Without the line's end that editors add.
Result<std::string> read_secret(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostSecret + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad() || (!file.is_open())) return fail(Code::not_found, path + " cannot be read");
  if (text.size() > kMostSecret) return fail(Code::limit, path + " has more than " + std::to_string(kMostSecret) + " bytes");
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  return text;
}

}  // namespace

// For as long as a request is under way.
struct ServerInstance::UnderWay {
  UnderWay(ServerInstance& owner, const AskerPtr& asker)
      : instance(owner), at(owner.askers_.insert(owner.askers_.end(), asker)) {}
  ~UnderWay() { instance.askers_.erase(at); }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
  ServerInstance& instance;
  std::list<AskerPtr>::iterator at;
};

ServerInstance::ServerInstance(bridge::LauncherClient& launcher, Setup setup)
    : launcher_(launcher), setup_(std::move(setup)), supervisor_(launcher, spec_of(setup_)) {}

ServerInstance::Pointer ServerInstance::make(bridge::LauncherClient& launcher, Setup setup) {
  Pointer self(new ServerInstance(launcher, std::move(setup)));
  const std::weak_ptr<ServerInstance> weak = self;
  ProgramSpec& spec = self->supervisor_.spec();
  spec.opened = [weak](Program::Pointer program) {
    const Pointer instance = weak.lock();
    if (!instance) return;
    instance->program_ = program;
    program->on_end([weak](const Program& ended) {
      if (const Pointer owner = weak.lock()) owner->last_tail_ = ended.tail();
    });
    instance->peer_ = LinePeer::over(std::move(program), instance->setup_.budget, [weak](mcp::Message message) {
      if (const Pointer owner = weak.lock()) owner->take(std::move(message));
    });
    if (!instance->setup_.config.url.empty()) instance->peer_->send_first(instance->remote_program());
  };
  spec.ready.ask = [weak](Program::Pointer, bridge::Clock::time_point deadline) { return greet(weak, deadline); };
  self->supervisor_.set_busy([weak] {
    const Pointer instance = weak.lock();
    return instance && !instance->askers_.empty();
  });
  return self;
}

// --- start ---

json::Value ServerInstance::client_meta() const {
  return {{std::string(kMeta) + "protocolVersion", kStateless},
          {std::string(kMeta) + "clientInfo", client_info()},
          {std::string(kMeta) + "clientCapabilities", setup_.capabilities}};
}

task<void> ServerInstance::greet(std::weak_ptr<ServerInstance> instance, bridge::Clock::time_point deadline) {
  const Pointer self = instance.lock();
  if (!self) co_return fail(Code::io, "it is not needed any more");
  const LinePeer::Pointer peer = self->peer_;
  const std::string name = self->setup_.config.name;
  const bool newest = self->setup_.config.newest;
  json::Value params = json::Value::object();
  if (newest) {
    params["_meta"] = self->client_meta();
  } else {
    params["protocolVersion"] = kStateful;
    params["capabilities"] = self->setup_.capabilities;
    params["clientInfo"] = client_info();
  }
  auto exchange = std::make_shared<Exchange>(self->launcher_.executor());
  mcp::Or<json::Value> told =
      co_await LinePeer::call(peer, std::move(exchange), newest ? "server/discover" : "initialize", std::move(params), deadline);
  if (!told) co_return fail(Code::io, told.error().text);
  if (!told->is_object()) co_return fail(Code::protocol, "its greeting is no object");
  ServerHello hello{.newest = newest};
  if (const auto found = told->find("capabilities"); found != told->end() && found->is_object()) hello.capabilities = *found;
  if (const auto found = told->find("serverInfo"); found != told->end() && found->is_object()) hello.info = *found;
  hello.instructions = json::text_of(*told, "instructions").substr(0, 16 * 1024);
  self->hello_ = std::move(hello);
  if (!newest) peer->send(mcp::notification_message("notifications/initialized", json::Value::object()));
  else spawn(self->launcher_.executor(), "MCP changes of " + name, listen(self, peer));
  co_return Status{};
}

// For as long as the program runs: since 2026-07-28 a server tells of changes only who asked.
task<void> ServerInstance::listen(std::weak_ptr<ServerInstance> instance, LinePeer::Pointer peer) {
  json::Value params = json::Value::object();
  if (const Pointer self = instance.lock()) params["_meta"] = self->client_meta();
  for (const char* list : {"toolsListChanged", "promptsListChanged", "resourcesListChanged"})
    params["notifications"][list] = true;
  auto exchange = std::make_shared<Exchange>(peer->executor());
  (void)co_await LinePeer::call(std::move(peer), std::move(exchange), "subscriptions/listen", std::move(params),
                                bridge::no_deadline());
  co_return Status{};
}

Status ServerInstance::add_secrets() {
  const ServerConfig& config = setup_.config;
  auto& env = supervisor_.spec().command.env;
  for (const auto& [name, path] : config.env_files) {
    TRY_ASSIGN(env[name], read_secret(path));
  }
  if (config.url.empty()) return {};
  json::Value headers = config.headers;
  for (const auto& [name, path] : config.header_files) {
    TRY_ASSIGN(headers[name], read_secret(path));
  }
  remote_settings_ =
      json::dump({{"url", config.url}, {"headers", headers}, {"events", config.events}, {"newest", config.newest}});
  return {};
}

// The program with its settings, behind eight digits of its length. Text in JSON is text in Python.
std::string ServerInstance::remote_program() const {
  const std::string program =
      "import json\nSETTINGS = json.loads(" + json::dump(remote_settings_) + ")\n" + std::string(inside::kMcpRemote);
  const std::string length = std::to_string(program.size());
  return std::string(8 - std::min<std::size_t>(8, length.size()), '0') + length + program;
}

std::uint64_t ServerInstance::start_number() const { return peer_ && peer_->alive() ? supervisor_.health().starts : 0; }

task<void> ServerInstance::ready(Pointer self) {
  if (self->supervisor_.health().state != Supervisor::State::ready) CO_TRY(self->add_secrets());
  CO_TRY(co_await self->supervisor_.program());
  co_return Status{};
}

task<void> ServerInstance::stop(Pointer self, std::string reason) {
  co_return co_await self->supervisor_.stop(std::move(reason));
}

std::string ServerInstance::stderr_tail() const { return program_ && program_->alive() ? program_->tail() : last_tail_; }

// --- requests ---

asio::awaitable<mcp::Or<json::Value>> ServerInstance::request(Pointer self, std::string method, json::Value params,
                                                              AskerPtr asker, ExchangePtr exchange) {
  const UnderWay here(*self, asker);
  if (Status started = co_await ready(self); !started) co_return std::unexpected(unavailable(started.error()));
  if (exchange->called_off)
    co_return std::unexpected(mcp::Failure{.code = mcp::ErrorCode::internal, .text = "the request was cancelled"});
  if (!params.is_object()) params = json::Value::object();
  json::Value& meta = params["_meta"];
  if (!meta.is_object()) meta = json::Value::object();
  if (self->hello_.newest) {
    const json::Value own = self->client_meta();
    for (const auto& [name, value] : own.items())
      if (!meta.contains(name)) meta[name] = value;
  } else {
    for (auto one = meta.begin(); one != meta.end();) one = one.key().starts_with(kMeta) ? meta.erase(one) : std::next(one);
    if (meta.empty() && !exchange->on_progress) params.erase("_meta");
  }
  exchange->is_waiting = [self] { return self->asked_back_ > 0; };
  const bridge::Clock::time_point deadline = bridge::Clock::now() + self->setup_.config.timeout;
  co_return co_await LinePeer::call(self->peer_, std::move(exchange), std::move(method), std::move(params), deadline);
}

void ServerInstance::notify(std::string_view method, json::Value params) {
  if (peer_ && peer_->alive()) peer_->send(mcp::notification_message(method, std::move(params)));
}

// --- what it says unasked ---

AskerPtr ServerInstance::sole_asker() const {
  if (askers_.empty()) return nullptr;
  const bool same = std::ranges::all_of(askers_, [this](const AskerPtr& one) { return one->owner == askers_.front()->owner; });
  return same ? askers_.back() : nullptr;
}

void ServerInstance::take(mcp::Message message) {
  const bool request = message.kind == mcp::Message::Kind::request;
  if (!request) {
    if (message.method.ends_with("/list_changed") || message.method == "notifications/resources/updated") {
      setup_.on_change(message);
    } else if (message.method == "notifications/message") {
      // A logger is a server's own name for a part of itself: the hub says first whose it is.
      const std::string logger = json::text_of(message.params, "logger");
      message.params["logger"] = setup_.config.name + (logger.empty() ? "" : "/" + logger);
      if (const AskerPtr asker = sole_asker(); asker && asker->tell)
        asker->tell(mcp::notification_message(message.method, std::move(message.params)));
    }
    return;
  }
  if (message.method == "ping") {
    peer_->send(mcp::result_message(std::move(message.id), json::Value::object()));
    return;
  }
  const AskerPtr asker = sole_asker();
  if (!asker || !asker->ask || asked_back_ >= kMostAskedBack) {
    peer_->send(mcp::error_message(std::move(message.id), mcp::not_offered(message.method)));
    return;
  }
  spawn(launcher_.executor(), "MCP question", answer(shared_from_this(), asker, std::move(message)));
}

task<void> ServerInstance::answer(Pointer self, AskerPtr asker, mcp::Message request) {
  struct Counted {
    std::size_t& count;
    explicit Counted(std::size_t& c) : count(c) { ++count; }
    ~Counted() { --count; }
  };
  const Counted counted(self->asked_back_);
  const LinePeer::Pointer peer = self->peer_;
  mcp::Or<json::Value> told = co_await asker->ask(std::move(request.method), std::move(request.params));
  peer->send(told ? mcp::result_message(std::move(request.id), std::move(*told))
                  : mcp::error_message(std::move(request.id), told.error()));
  co_return Status{};
}

}  // namespace caisson::services
