#include "agent/services/mcp/mcp_hub.h"

#include <algorithm>

#include "agent/http/log.h"
#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

constexpr std::size_t kMostFileBytes = 1024 * 1024, kMostAtOnce = 4;
constexpr std::chrono::seconds kListWithin{15}, kSlow{1};
constexpr std::chrono::milliseconds kMoment{500};

// Why an added server cannot be beside another one; nullopt: it can. Without a prefix of its own, a configured one comes first.
std::optional<std::string> clash(const ServerConfig& added, const ServerConfig& other) {
  const bool is_configured = other.added_by.empty();
  if (added.name == other.name)
    return is_configured ? std::optional("the operator has configured a server " + quote(other.name)) : std::nullopt;
  if ((is_configured && other.prefix.empty()) || !overlap(added.prefix, other.prefix)) return std::nullopt;
  return "the prefix " + quote(added.prefix) + " overlaps " + quote(other.prefix) + " of the server " + quote(other.name) +
         ": choose another";
}

task<void> stop_server(McpServer::Pointer server) {
  co_return co_await McpServer::stop(std::move(server), "its configuration has changed");
}

}  // namespace

// Shared with the coroutines that ask, which go on after the time is over.
struct McpHub::Listing {
  Listing(const asio::any_io_executor& executor, std::shared_ptr<Life> hub_life) : life(std::move(hub_life)), changed(executor) {}
  std::shared_ptr<Life> life;
  std::size_t asking = 0, in_trouble = 0;  // how many of those that are asked
  bool late = false;
  std::function<void()> tell;
  bridge::Notifier changed;
};

McpHub::McpHub(bridge::LauncherClient& launcher, const Config& config)
    : sessions(launcher.executor(), config.budget),
      calls(launcher.executor(), config.budget),
      launcher_(launcher),
      workspace_(config.workspace),
      budget_(config.budget),
      file_(config.mcp_servers, kMostFileBytes),
      life_(std::make_shared<Life>(launcher.executor())) {
  if (config.extra_mcp_servers.empty()) return;
  auto read = parse_servers(config.extra_mcp_servers);
  if (read) extra_ = std::move(*read);
  else if (config.workspace == "default") log::error("EXTRA_MCP_SERVERS: " + read.error().text() + "; none of them is there");
}

McpHub::~McpHub() { life_->over = true; }

void McpHub::serve_workspace(std::string name) {
  workspace_ = std::move(name);
  sessions.clear();
  calls.clear();
  added_.clear();
  servers_.clear();  // their sessions have ended with the workspace
  taken_ = false;
}

// --- which there are ---

const std::vector<McpServer::Pointer>& McpHub::servers() {
  look();
  return servers_;
}

McpServer::Pointer McpHub::find(std::string_view name) {
  look();
  const auto found = std::ranges::find_if(servers_, [name](const McpServer::Pointer& one) { return one->config().name == name; });
  return found == servers_.end() ? nullptr : *found;
}

void McpHub::look() {
  bool changed = !taken_;
  if (!file_.path().empty()) {
    if (const auto content = file_.look(http::WatchedFile::Clock::now())) {
      // A file that cannot be used changes nothing: those that were there go on. Without a file there are none.
      const bool absent = !*content && content->error().code == Code::not_found;
      auto read = *content ? parse_servers(**content)
                  : absent ? Result<std::vector<ServerConfig>>()
                           : std::unexpected(content->error());
      if (read) from_file_ = std::move(*read);
      else log::error("MCP servers: " + file_.path() + ": " + read.error().text());
      changed = changed || read.has_value();
    }
  }
  if (changed) renew();
}

std::vector<ServerConfig> McpHub::configured() const {
  std::vector<ServerConfig> all = from_file_;
  for (const ServerConfig& one : extra_)
    if (std::ranges::find(all, one.name, &ServerConfig::name) == all.end()) all.push_back(one);
  std::ranges::sort(all, {}, &ServerConfig::name);
  return all;
}

void McpHub::renew() {
  std::vector<ServerConfig> all = configured();
  std::erase_if(added_, [&all](const ServerConfig& added) {
    for (const ServerConfig& one : all)
      if (const auto why = clash(added, one)) {
        log::warn("MCP server " + added.name + ", which a client added, is removed: " + *why);
        return true;
      }
    return false;
  });
  for (const ServerConfig& added : added_)
    if (!added.disabled) all.push_back(added);
  take(all);
  taken_ = true;
}

// --- which clients add ---

Status McpHub::add(ServerConfig config, bool of_all) {
  look();
  for (const ServerConfig& one : configured())
    if (auto why = clash(config, one)) return fail(Code::already_exists, std::move(*why));
  auto before = added_.end();
  for (auto one = added_.begin(); one != added_.end(); ++one) {
    if (one->name == config.name) before = one;
    else if (auto why = clash(config, *one)) return fail(Code::already_exists, std::move(*why));
  }
  if (before == added_.end()) {
    if (added_.size() >= kMostAdded)
      return fail(Code::limit, "at most " + std::to_string(kMostAdded) + " servers can be added to a workspace");
    added_.insert(std::ranges::upper_bound(added_, config.name, {}, &ServerConfig::name), std::move(config));
  } else {
    if (!of_all && before->added_by != config.added_by)
      return fail(Code::already_exists, "another credential has added the server " + quote(config.name));
    *before = std::move(config);
  }
  renew();
  return {};
}

Status McpHub::remove(const std::string& name, const std::string& owner, bool of_all) {
  look();
  const auto found = std::ranges::find(added_, name, &ServerConfig::name);
  if (found == added_.end()) {
    const std::vector<ServerConfig> all = configured();
    if (std::ranges::find(all, name, &ServerConfig::name) == all.end()) return fail(Code::not_found, "MCP server not found");
    return fail(Code::already_exists, "the operator has configured the server " + quote(name) + ": change the configuration");
  }
  if (!of_all && found->added_by != owner)
    return fail(Code::already_exists, "another credential has added the server " + quote(name));
  added_.erase(found);
  renew();
  return {};
}

void McpHub::take(const std::vector<ServerConfig>& configured) {
  std::vector<McpServer::Pointer> before = std::exchange(servers_, {});
  bool changed = false;
  for (const ServerConfig& config : configured) {
    const auto same = std::ranges::find_if(before, [&config](const auto& one) { return one && one->config() == config; });
    if (same != before.end()) {
      servers_.push_back(std::exchange(*same, nullptr));
      continue;
    }
    changed = true;
    ServerInstance::Setup setup{.config = config, .workspace = workspace_, .budget = budget_};
    setup.on_change = [this, life = life_](const mcp::Message& message) {
      if (!life->over) heard(message);
    };
    servers_.push_back(std::make_shared<McpServer>(launcher_, std::move(setup)));
  }
  for (McpServer::Pointer& gone : before)
    if (gone) {
      changed = true;
      sessions.drop(gone->config().name);
      calls.drop(gone->config().name);
      spawn(launcher_.executor(), "MCP server", stop_server(std::move(gone)));
    }
  if (!changed || !taken_) return;
  for (const KindRow& row : kKinds)
    if (row.name != "uriTemplate")
      sessions.tell(
          mcp::notification_message("notifications/" + std::string(row.capability) + "/list_changed", json::Value::object()));
}

void McpHub::heard(const mcp::Message& message) {
  if (message.method == "notifications/resources/updated") {
    const std::string uri = json::text_of(message.params, "uri");
    sessions.tell_of(uri, mcp::notification_message(message.method, {{"uri", uri}}));
  } else {
    sessions.tell(mcp::notification_message(message.method, json::Value::object()));
  }
}

// --- what they offer ---

task<void> McpHub::list_one(std::shared_ptr<Listing> listing, McpServer::Pointer server, Kind kind) {
  const bool in_trouble = server->in_trouble;
  if (in_trouble) ++listing->in_trouble;
  auto found = co_await McpServer::list(std::move(server), kind);
  if (in_trouble) --listing->in_trouble;
  --listing->asking;
  listing->changed.notify_all();
  if (found && listing->late && !listing->life->over && listing->tell) listing->tell();
  co_return Status{};
}

asio::awaitable<std::vector<McpHub::Listed>> McpHub::list(std::vector<McpServer::Pointer> of, Kind kind) {
  const bridge::Clock::time_point deadline = bridge::Clock::now() + kListWithin;
  auto listing = std::make_shared<Listing>(launcher_.executor(), life_);
  const KindRow& row = row_of(kind);
  listing->tell = [this, method = "notifications/" + std::string(row.capability) + "/list_changed"] {
    sessions.tell(mcp::notification_message(method, json::Value::object()));
  };
  for (const McpServer::Pointer& server : of) {
    if (server->known(kind) || (server->in_trouble && server->is_asked(kind))) continue;
    while (listing->asking >= kMostAtOnce)  // a slow one holds the next only for a moment
      if (!co_await listing->changed.wait_until(bridge::Clock::now() + kSlow)) break;
    ++listing->asking;
    spawn(launcher_.executor(), "MCP list", list_one(listing, server, kind));
  }
  while (listing->asking > listing->in_trouble)
    if (!co_await listing->changed.wait_until(deadline)) break;
  if (listing->asking > 0) (void)co_await listing->changed.wait_until(bridge::Clock::now() + kMoment);
  listing->late = listing->asking > 0;
  if (listing->late)
    for (const McpServer::Pointer& server : of) server->in_trouble = server->in_trouble || !server->known(kind);
  std::vector<Listed> out;
  for (McpServer::Pointer& server : of)
    if (Items items = server->known(kind)) out.push_back({std::move(server), std::move(items)});
  co_return out;
}

// Copies of sessions and of calls together are bounded.
bool McpHub::has_room_for_copy() {
  return sessions.has_room_for_copy(kMostCopies - std::min(calls.size(), kMostCopies)) || calls.drop_idle();
}

PendingCallPtr McpHub::begin_call(const McpServer::Pointer& server, const std::string& owner, json::Value capabilities,
                                  const std::string& binding) {
  PendingCalls::Whose whose{.server = server->config().name, .owner = owner, .capabilities = capabilities};
  if (PendingCallPtr call = calls.reuse(whose, binding)) return call;
  if (!calls.has_room_of(owner) || (!has_room_for_copy() && !calls.drop_of(owner))) return nullptr;
  return calls.begin(std::move(whose), server->copy_for(std::move(capabilities)), binding);
}

ServerInstance::Pointer McpHub::copy_of(const McpServer::Pointer& server, const ClientSessionPtr& session) {
  if (!session || session->id.empty() || !session->may_be_asked() || server->config().newest) return nullptr;
  const auto found = session->copies.find(server->config().name);
  if (found != session->copies.end()) return found->second;
  if (!has_room_for_copy()) return nullptr;
  return session->copies[server->config().name] = server->copy_for(session->capabilities);
}

}  // namespace caisson::services
