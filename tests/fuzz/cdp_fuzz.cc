// What CDP clients and a hostile browser can send, mutated: the cutting into messages, the scanner, and the router with three
// clients. A broken promise aborts. NUL separates the records of one input; the first byte of each names its
// sender: 1 to 3 from that client, `b` from the browser, `o`, `g` with a digit: that client comes or goes, `h1`, `h0`: clients
// are held or not.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "agent/cdp/methods.h"
#include "agent/cdp/records.h"
#include "agent/cdp/router.h"
#include "launcher/common/base/json.h"

namespace caisson::cdp {
namespace {

void promise(bool kept, const char* what) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

// As strict as our own parser, which Chromium's is, where it matters.
std::optional<json::Value> parsed(std::string_view text) {
  auto value = json::parse(text, {.max_bytes = 1 << 20, .max_depth = kMaxDepth + 1, .max_values = 1 << 20});
  return value ? std::optional(std::move(*value)) : std::nullopt;
}

void check_scan(std::string_view text) {
  const auto message = scan(text);
  if (!message) return;
  const auto value = parsed(text);
  if (!value) return;  // bytes that are not UTF-8, numbers out of range, other keys that are there twice
  promise(value->is_object(), "only objects pass");
  const auto same = [&](const Member& member, const char* key) {
    promise(member.value.there() == value->contains(key), "a key is found where it is");
    if (!member.value.there()) return;
    promise(parsed(std::string("[") + std::string(member.value.of(text)) + "]")->at(0) == value->at(key), "and with its value");
    std::string cut(text);
    cut.erase(member.whole.begin, member.whole.size());
    json::Value without = *value;
    without.erase(key);
    promise(parsed(cut) == without, "cut out, all else stays");
  };
  same(message->id, "id");
  same(message->session_id, "sessionId");
  same(message->method, "method");
  same(message->params, "params");
}

// The three clients' sessions, as the router may know them.
struct Ends : Wires {
  void to_browser(Outgoing message) override {
    const std::string text = message.text();
    promise(!text.contains('\0'), "no message has a NUL inside");
    const auto said = scan(text);
    promise(said.has_value(), "what the browser is told is one message");
    const std::string method(unquoted(said->method.value.of(text)));
    const int id = std::atoi(std::string(said->id.value.of(text)).c_str());
    promise(id > 0 && asked.insert(id).second, "each command has an id of its own");
    if (!said->session_id.value.there()) {
      promise(method.starts_with("Target.attachTo") || method == "Target.detachFromTarget", "on the root session only we speak");
      if (method.starts_with("Target.attachTo")) attaching.push_back(id);
      return;
    }
    promise(decision_about(method) == nullptr, "what is refused does not reach the browser");
  }
  void to_client(ClientId client, Outgoing message) override {
    promise(!gone.contains(client), "a client that went hears nothing");
    promise(scan(message.text()).has_value(), "what a client is told is one message");
  }
  void opened(ClientId client, std::string why) override {
    if (!why.empty()) gone.insert(client);
  }
  void end(ClientId client, std::string) override { gone.insert(client); }
  std::set<int> asked;
  std::vector<int> attaching;
  std::set<ClientId> gone;
};

Buffer bytes(std::string_view text) {
  Buffer out;
  promise(out.append(text), "there is memory");
  return out;
}

void check_router(std::string_view input) {
  Ends ends;
  Router router(ends);
  ClientId last = 0;
  std::map<char, ClientId> names;
  const auto come = [&](char name) {
    names[name] = ++last;
    router.open(last, "");
    const int id = ends.attaching.back();
    router.from_browser(
        bytes("{\"id\":" + std::to_string(id) + ",\"result\":{\"sessionId\":\"S" + std::to_string(last) + "\"}}"));
  };
  for (const char name : {'1', '2', '3'}) come(name);
  Records records(1 << 16);
  while (!input.empty()) {
    if (records.take(input) != Records::Got::message) continue;
    const Buffer record = records.message();
    const std::string_view text = record.view();
    if (text.size() < 2) continue;
    const char from = text[0];
    if (names.contains(from)) router.from_client(names[from], bytes(text.substr(1)));
    else if (from == 'b') router.from_browser(bytes(text.substr(1)));
    else if (from == 'l') router.lost_from_browser(text.substr(1), text.substr(1));
    else if (from == 'h') router.hold(text[1] == '1');
    else if (from == 'g' && names.contains(text[1])) ends.gone.insert(names[text[1]]), router.gone(names[text[1]]);
    else if (from == 'o' && names.contains(text[1]) && ends.gone.contains(names[text[1]]) && last < 1000) come(text[1]);
    promise(router.clients() + ends.gone.size() == static_cast<std::size_t>(last), "a client is here or gone");
  }
  for (const auto& [name, client] : names) ends.gone.insert(client), router.gone(client);
  promise(router.clients() == 0 && router.sessions() == 0, "at the end of all clients no session is left");
}

}  // namespace
}  // namespace caisson::cdp

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  caisson::cdp::check_scan(input);
  caisson::cdp::check_router(input);
  return 0;
}
