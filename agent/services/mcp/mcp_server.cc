#include "agent/services/mcp/mcp_server.h"

#include <algorithm>

#include "launcher/common/base/hash.h"
#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

constexpr int kMostPages = 64;
// Values take several times the bytes of their text.
constexpr std::size_t kTreeFactor = 4, kUncountedList = 64 * 1024;

mcp::Failure refused(std::string text) { return {.code = mcp::ErrorCode::internal, .text = std::move(text)}; }

std::string_view state_name(Supervisor::State state) {
  switch (state) {
    case Supervisor::State::stopped:
      return "stopped";
    case Supervisor::State::starting:
      return "starting";
    case Supervisor::State::ready:
      return "running";
    case Supervisor::State::failing:
      return "failing";
  }
  return "";
}

// What a model is told of a tool, and so what an approval is of.
std::string digest_of_tool(const json::Value& tool) {
  json::Value told = json::Value::object();
  for (const char* member : {"name", "title", "description", "inputSchema", "outputSchema", "annotations"})
    if (const auto found = tool.find(member); found != tool.end()) told[member] = *found;
  return sha256_hex(json::dump(told));
}

bool is_item(const json::Value& item, const KindRow& row) {
  if (!item.is_object()) return false;
  const std::string name = json::text_of(item, row.name);
  if (name.empty() || name.size() > 2048) return false;
  if (row.capability == "tools" && !(item.contains("inputSchema") && item["inputSchema"].is_object())) return false;
  return true;
}

}  // namespace

// One question for a list at a time, however it ends.
struct McpServer::Asking {
  Asking(Pointer owner, List& list) : server(std::move(owner)), of(list) { of.asking = true; }
  ~Asking() {
    of.asking = false;
    server->asked_.notify_all();
  }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;
  Pointer server;
  List& of;
};

McpServer::McpServer(bridge::LauncherClient& launcher, ServerInstance::Setup setup)
    : launcher_(launcher), setup_(std::move(setup)), asked_(launcher.executor()) {
  if (setup_.config.pin.size() == 64) approved_digest_ = setup_.config.pin;
}

// --- lists ---

Items McpServer::known(Kind kind) const {
  const List& list = lists_[static_cast<std::size_t>(kind)];
  return list.stale || (kind == Kind::tools && held_) ? nullptr : list.items;
}

asio::awaitable<mcp::Or<Items>> McpServer::list(Pointer self, Kind kind) {
  if (!self->shared_) self->shared_ = ServerInstance::make(self->launcher_, self->with_changes());
  if (kind == Kind::tools && self->held_) co_return std::unexpected(refused(*self->held_));
  List& list = self->lists_[static_cast<std::size_t>(kind)];
  while (list.asking) (void)co_await self->asked_.wait_until(bridge::no_deadline());
  if (Items items = self->known(kind)) co_return items;
  const Asking asking(self, list);
  auto found = co_await (kind == Kind::tools ? look_at_tools(self, self->shared_) : ask(self, self->shared_, kind));
  self->in_trouble = !found;
  if (!found) co_return std::unexpected(std::move(found).error());
  list.items = *found;
  list.stale = false;
  co_return found;
}

asio::awaitable<mcp::Or<Items>> McpServer::ask(Pointer self, ServerInstance::Pointer copy, Kind kind) {
  const KindRow& row = row_of(kind);
  if (Status started = co_await ServerInstance::ready(copy); !started) co_return std::unexpected(refused(started.error().text()));
  auto items = std::make_shared<ItemList>();
  if (self->setup_.budget) items->share = self->setup_.budget->share();
  if (!copy->offers(row.capability)) co_return Items(std::move(items));
  std::size_t bytes = 0, left_out = 0;
  std::set<std::string> names;
  json::Value params = json::Value::object();
  for (int page = 0; page < kMostPages; ++page) {
    auto exchange = std::make_shared<Exchange>(self->launcher_.executor());
    AskerPtr nobody = std::make_shared<Asker>();
    json::Value sent = params;
    auto told =
        co_await ServerInstance::request(copy, std::string(row.method), std::move(sent), std::move(nobody), std::move(exchange));
    if (!told) co_return std::unexpected(std::move(told).error());
    const auto list = told->find(row.member);
    if (!told->is_object() || list == told->end() || !list->is_array()) co_return std::unexpected(refused("its list is no list"));
    for (json::Value& item : *list) {
      const std::size_t size = json::dump(item).size();
      const bool taken = is_item(item, row) && size <= kMostItemBytes && bytes + size <= kMostListBytes &&
                         items->size() < kMostItems && names.insert(json::text_of(item, row.name)).second;
      if (!taken) {
        ++left_out;
        continue;
      }
      bytes += size;
      items->push_back(std::move(item));
    }
    const std::string next = json::text_of(*told, "nextCursor");
    if (next.empty() || next.size() > 4096) break;
    params["cursor"] = next;
  }
  if (kind == Kind::tools) self->left_out_ = left_out;
  if (items->share.resize(bytes > kUncountedList ? bytes * kTreeFactor : 0) != http::Room::granted)
    co_return std::unexpected(refused("the workspace has no room for its list"));
  co_return Items(std::move(items));
}

asio::awaitable<mcp::Or<Items>> McpServer::look_at_tools(Pointer self, ServerInstance::Pointer copy) {
  const std::uint64_t changes = self->changes_;  // one that comes meanwhile calls for another look
  auto found = co_await ask(self, copy, Kind::tools);
  if (!found) co_return std::unexpected(std::move(found).error());
  copy->compared = {copy->start_number(), changes};
  self->judge(**found);
  if (self->held_) co_return std::unexpected(refused(*self->held_));
  List& list = self->lists_[static_cast<std::size_t>(Kind::tools)];
  list.items = *found;
  list.stale = false;
  co_return found;
}

// --- what is approved ---

void McpServer::judge(const std::vector<json::Value>& tools) {
  seen_.clear();
  std::string all;
  for (const json::Value& tool : tools) seen_[json::text_of(tool, "name")] = digest_of_tool(tool);
  for (const auto& [name, digest] : seen_) all += name + " " + digest + "\n";
  seen_digest_ = sha256_hex(all);
  const std::string& pin = setup_.config.pin;
  if (pin == "off") return;
  if (approved_digest_.empty()) return approve();
  if (approved_digest_ == seen_digest_) return;
  std::string what;
  const auto note = [&what](const std::string& name, const char* how) {
    if (what.size() < 512) what += (what.empty() ? "" : ", ") + quote(name, 64) + how;
  };
  for (const auto& [name, digest] : seen_) {
    const auto before = approved_.find(name);
    if (before == approved_.end()) {
      if (!approved_.empty()) note(name, " is new");
    } else if (before->second != digest) {
      note(name, " differs");
    }
  }
  for (const auto& [name, digest] : approved_)
    if (!seen_.contains(name)) note(name, " is gone");
  held_ = "MCP server " + setup_.config.name + " is held back: its tools are not those that were approved" +
          (what.empty() ? "" : " (" + what + ")");
}

void McpServer::approve() {
  approved_digest_ = seen_digest_;
  approved_ = seen_;
  held_.reset();
  lists_[static_cast<std::size_t>(Kind::tools)].stale = true;
}

// --- requests ---

ServerInstance::Setup McpServer::with_changes() const {
  ServerInstance::Setup setup = setup_;
  setup.on_change =
      [weak = std::weak_ptr<McpServer>(std::const_pointer_cast<McpServer>(shared_from_this()))](const mcp::Message& message) {
        if (const Pointer server = weak.lock()) server->changed(message);
      };
  return setup;
}

ServerInstance::Pointer McpServer::copy_for(json::Value capabilities) const {
  ServerInstance::Setup setup = with_changes();
  setup.capabilities = std::move(capabilities);
  return ServerInstance::make(launcher_, std::move(setup));
}

void McpServer::changed(const mcp::Message& message) {
  if (message.method == "notifications/tools/list_changed") ++changes_;
  bool news = message.method == "notifications/resources/updated";
  // Who has not asked since the last change has heard of it already.
  for (std::size_t i = 0; i < kKinds.size(); ++i)
    if (message.method == "notifications/" + std::string(kKinds[i].capability) + "/list_changed")
      news = !std::exchange(lists_[i].stale, true) || news;
  if (news && setup_.on_change) setup_.on_change(message);
}

asio::awaitable<mcp::Or<json::Value>> McpServer::request(Pointer self, ServerInstance::Pointer copy, std::string method,
                                                         json::Value params, AskerPtr asker, ExchangePtr exchange) {
  if (!copy) {
    if (!self->shared_) self->shared_ = ServerInstance::make(self->launcher_, self->with_changes());
    copy = self->shared_;
  }
  if (method == "tools/call") {
    if (self->held_) co_return std::unexpected(refused(*self->held_));
    if (copy->start_number() == 0 || copy->compared != std::pair(copy->start_number(), self->changes_)) {
      auto seen = co_await look_at_tools(self, copy);
      if (!seen) co_return std::unexpected(std::move(seen).error());
    }
  }
  co_return co_await ServerInstance::request(std::move(copy), std::move(method), std::move(params), std::move(asker),
                                             std::move(exchange));
}

task<void> McpServer::stop(Pointer self, std::string reason) {
  if (!self->shared_) co_return Status{};
  co_return co_await ServerInstance::stop(self->shared_, std::move(reason));
}

json::Value McpServer::status() const {
  json::Value out = {{"name", setup_.config.name}, {"domain", setup_.config.domain}, {"state", "stopped"}, {"starts", 0}};
  if (!setup_.config.added_by.empty()) out["added"] = true;
  if (shared_) {
    const Supervisor::Health health = shared_->health();
    out["state"] = state_name(health.state);
    out["starts"] = health.starts;
    if (health.last_error) out["last_error"] = health.last_error->text();
    out["stderr"] = shared_->stderr_tail();
    out["under_way"] = shared_->under_way();
  }
  if (!seen_digest_.empty()) out["tools_digest"] = seen_digest_;
  if (held_) {
    out["state"] = "held_back";
    out["held_back"] = *held_;
  }
  if (left_out_ > 0) out["tools_left_out"] = left_out_;
  return out;
}

}  // namespace caisson::services
