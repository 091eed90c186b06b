#include "agent/services/program/toolchains.h"

#include <inside_files.h>  // generated

#include <algorithm>

namespace caisson::services {
namespace {

constexpr std::size_t kMostOutput = 1024 * 1024;
constexpr std::chrono::seconds kMostTime{30};
constexpr std::size_t kMostVersions = 32, kMostTools = 64, kLongestPath = 256;

// "3.12" of "3.12.4" for Python, "22" of "22.1.0" for Node.js.
std::string series(Language language, std::string_view version) {
  std::size_t end = version.find('.');
  if (language == Language::python && end != std::string_view::npos) end = version.find('.', end + 1);
  return std::string(version.substr(0, end));
}

// "3", "3.11", "3.11.2".
bool is_version(std::string_view text) {
  if (text.size() >= 32) return false;
  while (true) {
    const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
    if (end == 0) return false;
    if (end == text.size()) return true;
    if (text[end] != '.') return false;
    text.remove_prefix(end + 1);
  }
}

// /usr/bin/NAME, /opt/python/3.12/bin/NAME: in a directory that belongs to root in every session, in its canonical spelling.
bool is_program(std::string_view path, std::string_view name) {
  constexpr std::string_view kRoots[] = {"/usr/", "/bin/", "/sbin/", "/opt/python/", "/opt/nodejs/"};
  const auto plain = [](char c) { return c > ' ' && c < 0x7f; };
  return path.size() < kLongestPath &&
         std::ranges::any_of(
             kRoots, [&](std::string_view root) { return path.starts_with(root); }) &&
         path.substr(path.rfind('/') + 1) == name && !name.empty() && name.find_first_not_of(".") != std::string_view::npos &&
         std::ranges::all_of(path, plain) && !path.contains("//") && !path.contains("/./") && !path.contains("/../");
}

std::string_view take_field(std::string_view& line) {
  const std::size_t end = std::min(line.find('\t'), line.size());
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return field;
}

void add_line(ToolInventory& out, std::string_view line) {
  const std::string_view kind = take_field(line), name = take_field(line), path = line;
  if (kind == "tool" && is_program(path, name) && out.tools.size() < kMostTools) out.tools.emplace(name, path);
  if ((kind != "python" && kind != "node") || !is_version(name)) return;
  if (!is_program(path, kind == "python" ? "python3" : "node")) return;
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
  return fail(Code::not_found, std::string(name) + " " + quote(wanted) + " is not installed; available: " + there);
}

task<std::shared_ptr<const ToolInventory>> Toolchains::get(std::string workspace) {
  const std::shared_ptr<Known> known = known_;
  if (known->inventory) co_return known->inventory;
  const http::AsyncLock::Held held = co_await known->lock.acquire();
  if (known->inventory) co_return known->inventory;
  OneRun run{.domain = "code", .workspace = std::move(workspace), .label = "toolchains", .limit = kMostTime};
  run.argv = {"/bin/sh", "-c", std::string(inside::kToolchains)};
  run.kept_bytes = kMostOutput;
  CO_TRY_ASSIGN(const std::string output, co_await ask_system(launcher_, std::move(run)));
  known->inventory = std::make_shared<const ToolInventory>(parse_toolchains(output));
  co_return known->inventory;
}

task<json::Value> Toolchains::node_packages(std::string workspace, std::string node) {
  const std::shared_ptr<Known> known = known_;
  if (const auto it = known->node_packages.find(node); it != known->node_packages.end()) co_return it->second;
  OneRun run{.domain = "nodejs", .workspace = std::move(workspace), .label = "packages", .limit = kMostTime};
  run.argv = {node, "-e", std::string(inside::kNodeInfo)};
  run.kept_bytes = kMostOutput;
  CO_TRY_ASSIGN(const std::string output, co_await ask_system(launcher_, std::move(run)));
  CO_TRY_ASSIGN(json::Value value, json::parse(output, {.max_bytes = kMostOutput}));
  known->node_packages[node] = value;
  co_return value;
}

void Toolchains::forget() { known_ = std::make_shared<Known>(launcher_.executor()); }

}  // namespace caisson::services
