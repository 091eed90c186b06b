#include "agent/session/toolchains.h"

#include <inside_files.h>  // generated

#include <algorithm>

namespace caisson::session {
namespace {

constexpr std::size_t kMostOutput = 1024 * 1024;
constexpr std::chrono::seconds kMostTime{30};
constexpr std::size_t kMostVersions = 32;

// "3.12" of "3.12.4" for Python, "22" of "22.1.0" for Node.js.
std::string series(Language language, std::string_view version) {
  std::size_t end = version.find('.');
  if (language == Language::python && end != std::string_view::npos) end = version.find('.', end + 1);
  return std::string(version.substr(0, end));
}

bool is_version(std::string_view text) {
  return !text.empty() && text.size() < 32 && text.find_first_not_of("0123456789.") == std::string_view::npos;
}

std::string_view take_field(std::string_view& line) {
  const std::size_t end = std::min(line.find('\t'), line.size());
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return field;
}

void add_line(ToolInventory& out, std::string_view line) {
  const std::string_view kind = take_field(line), name = take_field(line), path = line;
  if (!path.starts_with('/')) return;
  if (kind == "tool") out.tools.emplace(name, path);
  if ((kind != "python" && kind != "node") || !is_version(name)) return;
  std::vector<InstalledVersion>& list = kind == "python" ? out.python : out.node;
  if (list.size() < kMostVersions) list.push_back({std::string(name), std::string(path)});
}

}  // namespace

std::string_view language_name(Language language) { return language == Language::python ? "python" : "javascript"; }

std::string version_name(Language language, std::string_view version) {
  return (language == Language::python ? "python" : "node") + series(language, version);
}

ToolInventory parse_toolchains(std::string_view output) {
  ToolInventory out;
  while (!output.empty()) {
    const std::size_t end = std::min(output.find('\n'), output.size());
    add_line(out, output.substr(0, end));
    output.remove_prefix(std::min(end + 1, output.size()));
  }
  return out;
}

Result<InstalledVersion> ToolInventory::choose(Language language, std::string_view wanted) const {
  const std::vector<InstalledVersion>& list = of(language);
  const std::string_view name = language == Language::python ? "Python" : "Node.js";
  std::string_view number = wanted;
  for (const std::string_view prefix : {"python", "node", "v"})
    if (number.starts_with(prefix)) number.remove_prefix(prefix.size());
  if (list.empty()) return fail(Code::not_found, "no " + std::string(name) + " is installed in the sessions' view");
  if (number.empty() || (language == Language::python && number == "3")) return list.front();
  std::string there;
  for (const InstalledVersion& one : list) {
    if (one.version == number || one.version.starts_with(std::string(number) + ".")) return one;
    there += (there.empty() ? "" : ", ") + version_name(language, one.version) + " (" + one.version + ")";
  }
  return fail(Code::not_found, std::string(name) + " " + quote(wanted) + " is not installed; there is: " + there);
}

task<std::string> output_of(std::shared_ptr<CodeContext> context, SoloSession::Place place, std::vector<std::string> argv) {
  CO_TRY_ASSIGN(const SoloSession::Pointer session, co_await SoloSession::create(std::move(context), std::move(place)));
  bridge::ExecRequest request;
  request.argv = std::move(argv);
  request.cwd = "/";
  request.with_stdin = false;
  CO_TRY_ASSIGN(const SoloSession::CommandPtr command, co_await session->start(std::move(request)));
  if (!co_await await_end(command, bridge::Clock::now() + kMostTime))
    co_return fail(Code::timeout, "a probe of the toolchains hangs");
  if (command->exit_code != 0) co_return fail(Code::io, "a probe of the toolchains failed: " + quote(command->err.read(0, 200)));
  if (command->out.end() > kMostOutput) co_return fail(Code::limit, "a probe of the toolchains wrote too much");
  co_return command->out.read(0);
}

task<std::shared_ptr<const ToolInventory>> Toolchains::get(std::shared_ptr<CodeContext> context) {
  if (inventory_) co_return inventory_;
  if (!lock_) lock_ = std::make_unique<http::AsyncLock>(context->launcher.executor());
  const http::AsyncLock::Held held = co_await lock_->acquire();
  if (inventory_) co_return inventory_;
  SoloSession::Place place{.domain = "code", .label = "toolchains"};
  std::vector<std::string> argv{"/bin/sh", "-c", std::string(inside::kToolchains)};
  CO_TRY_ASSIGN(const std::string output, co_await output_of(std::move(context), std::move(place), std::move(argv)));
  inventory_ = std::make_shared<const ToolInventory>(parse_toolchains(output));
  co_return inventory_;
}

task<json::Value> Toolchains::node_packages(std::shared_ptr<CodeContext> context, std::string node) {
  if (const auto known = node_packages_.find(node); known != node_packages_.end()) co_return known->second;
  SoloSession::Place place{.domain = "nodejs", .label = "packages"};
  std::vector<std::string> argv{node, "-e", std::string(inside::kNodeInfo)};
  CO_TRY_ASSIGN(const std::string output, co_await output_of(std::move(context), std::move(place), std::move(argv)));
  CO_TRY_ASSIGN(json::Value value, json::parse(output, {.max_bytes = kMostOutput}));
  node_packages_[node] = value;
  co_return value;
}

void Toolchains::forget() {
  inventory_.reset();
  node_packages_.clear();
}

}  // namespace caisson::session
