// `caisson ask ls|allow|deny|revoke`: what sessions were refused outside, and what of it is allowed. Asks caisson-gate, over a
// line that the running launcher gives to whoever reached its control socket.
#include <charconv>

#include "launcher/cli/args.h"
#include "launcher/cli/audit/show.h"
#include "launcher/cli/commands.h"
#include "launcher/cli/gate_line.h"
#include "launcher/cli/logs.h"
#include "launcher/common/tables/way_ops.h"

namespace caisson::cli {
namespace {

Result<json::Value> ask(const Args& args, const Options& options, way::Op op, json::Value request) {
  if (const auto who = args.last("--who")) request["who"] = *who;
  TRY_ASSIGN(const GateLine line, GateLine::connect(args.last("--workspace").value_or("default"), options));
  return line.ask(op, std::move(request));
}

Result<std::int64_t> id_of(const Args& args) {
  const std::string& text = args.words().front();
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 1)
    return fail(Code::invalid_argument, quote(text) + " is no number of `caisson ask ls`");
  return id;
}

// Names come from sessions: they are escaped, so that a terminal can show them.
std::string cell(const json::Value& of, const char* member) {
  const auto it = of.find(member);
  return it == of.end() || it->is_null() ? "-" : audit::show_value(*it);
}

void print_all(const json::Value& all, std::initializer_list<const char*> columns) {
  std::vector<std::vector<std::string>> rows(1);
  for (const char* column : columns) {
    std::string title = column;
    for (char& c : title) c = c == '_' ? ' ' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    rows.front().push_back(std::move(title));
  }
  for (const json::Value& one : all) {
    auto& row = rows.emplace_back();
    for (const char* column : columns) row.push_back(cell(one, column));
  }
  print(table(rows));
}

Result<int> decide(const Args& args, const Options& options, way::Op op, json::Value request) {
  TRY_ASSIGN(request["id"], id_of(args));
  TRY_ASSIGN(const json::Value done, ask(args, options, op, std::move(request)));
  if (options.json) print_json(done);
  else if (done.contains("rule"))
    print("into \"egress\" of the policy " + cell(done, "domain") + ":\n  " + json::dump(done["rule"]) + "\n");
  else
    print(cell(done, "ask") + " " + cell(done, "host") + ":" + cell(done, "port") + " of " +
          cell(done, done.contains("session") ? "session" : "domain") + "\n");
  return 0;
}

}  // namespace

Result<int> ask_ls(const Args& args, const Options& options) {
  TRY_ASSIGN(const json::Value found, ask(args, options, way::Op::asks, json::Value::object()));
  if (options.json) return print_json(found), 0;
  print_all(found.value("asked", json::Value::array()),
            {"id", "session", "domain", "host", "port", "refusal", "programs", "times", "seconds_ago"});
  print("\n");
  print_all(found.value("granted", json::Value::array()),
            {"id", "session", "domain", "host", "port", "once", "used", "seconds_left"});
  return 0;
}

Result<int> ask_allow(const Args& args, const Options& options) {
  const std::string how = args.last("--for").value_or("once");
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(how.data(), how.data() + how.size(), seconds);
  if (error == std::errc() && end == how.data() + how.size())
    return decide(args, options, way::Op::allow, {{"for", "time"}, {"seconds", seconds}});
  if (how != "once" && how != "session" && how != "policy")
    return fail(Code::invalid_argument, "--for takes once, session, policy or a number of seconds, not " + quote(how));
  return decide(args, options, way::Op::allow, {{"for", how}});
}

Result<int> ask_deny(const Args& args, const Options& options) {
  return decide(args, options, way::Op::deny, json::Value::object());
}

Result<int> ask_revoke(const Args& args, const Options& options) {
  return decide(args, options, way::Op::revoke, json::Value::object());
}

}  // namespace caisson::cli
