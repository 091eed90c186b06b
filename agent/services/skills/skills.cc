#include "agent/services/skills/skills.h"

#include <algorithm>

#include "agent/services/program/run_once.h"
#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

constexpr std::chrono::seconds kReading{60};  // of one operation in its session
// Of all commands of one registration together. Each is then killed, and the rest is not begun.
constexpr std::chrono::seconds kInstalling{300};
constexpr std::size_t kMostSkillAnswer = 8 * 1024 * 1024;
constexpr std::size_t kKeptOfCommand = 16 * 1024;  // of each stream, its end

// Without a network pip and npm would try again for minutes.
std::map<std::string, std::optional<std::string>> install_environment() {
  return {{"PIP_RETRIES", "1"},
          {"PIP_DISABLE_PIP_VERSION_CHECK", "1"},
          {"NPM_CONFIG_FETCH_RETRIES", "1"},
          {"NPM_CONFIG_FETCH_RETRY_MINTIMEOUT", "1000"}};
}

std::optional<std::string> text_or_none(const json::Value& object, std::string_view key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_string()) return std::nullopt;
  return it->get<std::string>();
}

std::vector<std::string> words_of(const json::Value& list) {
  std::vector<std::string> out;
  if (!list.is_array()) return out;
  for (const json::Value& word : list)
    if (word.is_string()) out.push_back(word.get<std::string>());
  return out;
}

// Kept results are files of the workspace, which its sessions may have written: what has another form is left out.
std::vector<DependencyResult> results_of(const json::Value& list) {
  std::vector<DependencyResult> out;
  if (!list.is_array()) return out;
  for (const json::Value& one : list) {
    if (!one.is_object()) continue;
    DependencyResult result;
    if (const auto words = one.find("command"); words != one.end()) result.command = words_of(*words);
    const auto success = one.find("success");
    result.success = success != one.end() && success->is_boolean() && success->get<bool>();
    result.out = text_or_none(one, "stdout");
    result.err = text_or_none(one, "stderr");
    if (!result.command.empty()) out.push_back(std::move(result));
  }
  return out;
}

Skill skill_of(const json::Value& one) {
  Skill out{.name = json::text_of(one, "name"), .path = json::text_of(one, "path")};
  if (!one.is_object()) return out;
  if (const auto metadata = one.find("metadata"); metadata != one.end() && metadata->is_object()) out.metadata = *metadata;
  if (const auto results = one.find("dependency_commands"); results != one.end()) out.dependencies = results_of(*results);
  return out;
}

json::Value kept_results(const std::vector<DependencyResult>& results) {
  json::Value out = json::Value::array();
  for (const DependencyResult& one : results) {
    json::Value row = json::Value::object();
    row["command"] = one.command;
    row["success"] = one.success;
    if (one.out) row["stdout"] = *one.out;
    if (one.err) row["stderr"] = *one.err;
    out.push_back(std::move(row));
  }
  return out;
}

DependencyResult result_of(std::vector<std::string> command, Result<OneResult> ran) {
  DependencyResult out{.command = std::move(command)};
  if (!ran) {
    out.err = ran.error().text();
    return out;
  }
  const std::string why = failure_of(ran->exit);
  out.success = why.empty();
  out.out = std::move(ran->out);
  out.err = std::move(ran->err);
  if (!out.success && ran->exit.reason != "exit")
    out.err->append(out.err->empty() || out.err->ends_with('\n') ? "" : "\n").append(why);
  return out;
}

}  // namespace

Skills::Skills(bridge::LauncherClient& launcher, const Config& config)
    : launcher_(launcher),
      workspace_(config.workspace),
      root_(config.skills_path),
      lock_(std::make_shared<http::AsyncLock>(launcher.executor())) {}

void Skills::serve_workspace(std::string name) {
  workspace_ = std::move(name);
  lock_ = std::make_shared<http::AsyncLock>(launcher_.executor());
}

task<json::Value> Skills::ask(std::string op, json::Value job, std::string body) {
  OneRun run{.domain = "file", .workspace = workspace_, .label = "skills", .script = "skills.py"};
  run.limit = kReading;
  run.kept_bytes = kMostSkillAnswer;
  job["op"] = std::move(op);
  job["root"] = root_;
  return ask_script(launcher_, std::move(run), std::move(job), std::move(body));
}

task<std::vector<DependencyResult>> Skills::install(Skill skill, json::Value commands, bridge::Clock::time_point deadline) {
  std::vector<DependencyResult> out;
  for (const json::Value& words : commands) {
    std::vector<std::string> command = words_of(words);
    if (command.empty()) continue;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - bridge::Clock::now());
    OneRun run{.domain = "bash", .workspace = workspace_, .label = "skill " + skill.name, .argv = command, .cwd = skill.path};
    run.env = install_environment();
    run.limit = left;
    run.kept_bytes = kKeptOfCommand;
    Result<OneResult> ran = fail(Code::timeout, "there was no time left for it");
    if (left.count() > 0) ran = co_await run_once(launcher_, std::move(run));
    out.push_back(result_of(std::move(command), std::move(ran)));
  }
  co_return out;
}

task<std::vector<Skill>> Skills::add(SkillSource source) {
  const std::shared_ptr<http::AsyncLock> lock = lock_;
  const http::AsyncLock::Held held = co_await lock->acquire();
  json::Value job = json::Value::object();
  job["filename"] = std::move(source.filename);
  job["path"] = std::move(source.path);
  job["name"] = std::move(source.name);
  CO_TRY_ASSIGN(const json::Value done, co_await ask("register", std::move(job), std::move(source.bytes)));
  std::vector<Skill> out;
  if (!done.is_array()) co_return fail(Code::io, "skills: it did not answer");
  const bridge::Clock::time_point deadline = bridge::Clock::now() + kInstalling;
  for (const json::Value& one : done) {
    Skill skill = skill_of(one);
    const auto commands = one.find("commands");
    const bool needs = commands != one.end() && commands->is_array() && !commands->empty();
    if (needs) {
      CO_TRY_ASSIGN(skill.dependencies, co_await install(skill, *commands, deadline));
      json::Value kept = json::Value::object();
      kept["name"] = skill.name;
      kept["results"] = kept_results(skill.dependencies);
      CO_TRY(co_await ask("keep_results", std::move(kept)));
    }
    out.push_back(std::move(skill));
  }
  co_return out;
}

task<SkillList> Skills::list(std::vector<std::string> names) {
  json::Value job = json::Value::object();
  job["names"] = std::move(names);
  CO_TRY_ASSIGN(const json::Value done, co_await ask("list", std::move(job)));
  SkillList out;
  if (!done.is_object()) co_return fail(Code::io, "skills: it did not answer");
  if (const auto skills = done.find("skills"); skills != done.end() && skills->is_array())
    for (const json::Value& one : *skills) out.skills.push_back(skill_of(one));
  if (const auto problems = done.find("problems"); problems != done.end())
    for (const std::string& one : words_of(*problems)) out.problems.append(out.problems.empty() ? "" : "; ").append(one);
  co_return out;
}

task<SkillContent> Skills::content(std::string name) {
  json::Value job = json::Value::object();
  job["name"] = std::move(name);
  CO_TRY_ASSIGN(const json::Value done, co_await ask("content", std::move(job)));
  co_return SkillContent{json::text_of(done, "name"), json::text_of(done, "path"), json::text_of(done, "content")};
}

task<Skill> Skills::remove(std::string name) {
  const std::shared_ptr<http::AsyncLock> lock = lock_;
  const http::AsyncLock::Held held = co_await lock->acquire();
  json::Value job = json::Value::object();
  job["name"] = std::move(name);
  CO_TRY_ASSIGN(const json::Value done, co_await ask("delete", std::move(job)));
  co_return skill_of(done);
}

task<std::vector<std::string>> Skills::clear() {
  const std::shared_ptr<http::AsyncLock> lock = lock_;
  const http::AsyncLock::Held held = co_await lock->acquire();
  CO_TRY_ASSIGN(const json::Value done, co_await ask("clear", json::Value::object()));
  const auto deleted = done.is_object() ? done.find("deleted") : done.end();
  co_return deleted == done.end() ? std::vector<std::string>() : words_of(*deleted);
}

}  // namespace caisson::services
