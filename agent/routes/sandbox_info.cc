#include "agent/routes/sandbox_info.h"

#include <algorithm>
#include <array>

#include <sys/utsname.h>

#include "launcher/common/base/sys.h"

namespace caisson::routes {
namespace {

struct KnownTool {
  std::string_view name, category, description;
};
constexpr std::array<KnownTool, 21> kKnownTools{{
    {"python3", "python", ""},
    {"node", "nodejs", ""},
    {"pip3", "Package management", "Python package installer"},
    {"npm", "Package management", "Node.js package manager"},
    {"uv", "Package management", "Python package and project manager"},
    {"git", "Development", "Version control"},
    {"make", "Development", "Build tool"},
    {"gcc", "Development", "C compiler"},
    {"gdb", "Development", "Debugger"},
    {"curl", "Network", "Transfers data by URL"},
    {"wget", "Network", "Downloads files"},
    {"jq", "Text and data", "JSON processor"},
    {"rg", "Text and data", "Recursive search by regular expression"},
    {"sed", "Text and data", "Stream editor"},
    {"awk", "Text and data", "Pattern scanning and processing"},
    {"tar", "Archives", "Archiver"},
    {"zip", "Archives", "Packs zip archives"},
    {"unzip", "Archives", "Unpacks zip archives"},
    {"sqlite3", "Text and data", "SQLite shell"},
    {"codex", "Coding agents", "OpenAI's Codex"},
    {"opencode", "Coding agents", "OpenCode"},
}};

// KEY=value or KEY="value" of an os-release file.
std::string os_release_value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(key) || !line.substr(key.size()).starts_with('=')) continue;
    line.remove_prefix(key.size() + 1);
    if (line.size() >= 2 && line.front() == '"' && line.back() == '"') line = line.substr(1, line.size() - 2);
    return std::string(line);
  }
  return {};
}

std::string clean(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 200))
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) out += c;
  return out;
}

// "3.13.5" from "Python 3.13.5", "20.19.2" from "v20.19.2".
std::string version_number(std::string_view line) {
  const std::size_t begin = std::min(line.find_first_of("0123456789"), line.size());
  const std::size_t end = std::min(line.find_first_not_of("0123456789.", begin), line.size());
  return std::string(line.substr(begin, end - begin));
}

void add_util(ToolInventory& tools, const KnownTool& known) {
  auto category = std::ranges::find(tools.utils, known.category, &ToolCategory::category);
  if (category == tools.utils.end()) {
    tools.utils.push_back({std::string(known.category), {}});
    category = tools.utils.end() - 1;
  }
  if (std::ranges::find(category->tools, known.name, &AvailableTool::name) == category->tools.end())
    category->tools.push_back({std::string(known.name), std::string(known.description)});
}

void add_line(ToolInventory& tools, std::string_view line) {
  const std::size_t first = line.find('\t');
  if (first == std::string_view::npos) return;
  const std::size_t second = line.find('\t', first + 1);
  if (second == std::string_view::npos) return;
  const auto known = std::ranges::find(kKnownTools, line.substr(0, first), &KnownTool::name);
  if (known == kKnownTools.end()) return;
  if (known->category == "Coding agents") tools.coding[std::string(known->name)] = version_number(clean(line.substr(second + 1)));
  const bool python = known->category == "python";
  if (!python && known->category != "nodejs") return add_util(tools, *known);
  std::vector<ToolSpec>& list = python ? tools.python : tools.nodejs;
  if (!list.empty()) return;
  ToolSpec spec;
  spec.ver = version_number(clean(line.substr(second + 1)));
  spec.bin = clean(line.substr(first + 1, second - first - 1));
  spec.alias = {std::string(known->name)};
  list.push_back(std::move(spec));
}

void describe_runtime(std::string& out, std::string_view name, const std::vector<ToolSpec>& tools) {
  for (const ToolSpec& tool : tools)
    out += "- " + std::string(name) + " " + tool.ver.value_or("") + " (" + tool.bin.value_or("") + ")\n";
}

// The block that clients paste into a model's prompt.
std::string describe(const std::string& version, const SandboxDetail& detail) {
  const SystemEnv& system = detail.system;
  std::string out = "System Environment (v" + version + ")\n";
  out += "- OS: " + system.os + " " + system.os_version + " (" + system.arch + ")\n";
  out += "- User: " + system.user + ", home directory " + system.home_dir + "\n";
  out += "- Working directory: " + system.workspace.value_or(system.home_dir) + "\n";
  out += "- Time zone: " + system.timezone + "\n";
  out += "- Ports in use:";
  for (const std::string& port : system.occupied_ports) out += " " + port;
  out += "\n\nRuntimes\n";
  describe_runtime(out, "Python", detail.runtime.python);
  describe_runtime(out, "Node.js", detail.runtime.nodejs);
  for (const ToolCategory& category : detail.utils) {
    out += "\n" + category.category + "\n";
    for (const AvailableTool& tool : category.tools) out += "- " + tool.name + ": " + tool.description.value_or("") + "\n";
  }
  return out;
}

}  // namespace

const char* const kToolProbe =
    R"(for t in python3 node pip3 npm uv git make gcc gdb curl wget jq rg sed awk tar zip unzip sqlite3 codex opencode
do
  p=$(command -v "$t" 2>/dev/null) || continue
  v=
  case $t in python3|node|codex) v=$(timeout 5 "$t" --version 2>/dev/null </dev/null | head -n 1);; esac
  printf '%s\t%s\t%s\n' "$t" "$p" "$v"
done)";

ToolInventory parse_tools(std::string_view output) {
  ToolInventory tools;
  output = output.substr(0, 64 * 1024);
  while (!output.empty()) {
    const std::size_t end = std::min(output.find('\n'), output.size());
    add_line(tools, output.substr(0, end));
    output.remove_prefix(std::min(end + 1, output.size()));
  }
  return tools;
}

SandboxInfo::SandboxInfo(SandboxSettings settings) : settings_(std::move(settings)) {
  if (settings_.timezone.empty()) settings_.timezone = "UTC";
  if (const auto release = sys::read_file("/etc/os-release", 16 * 1024)) {
    if (std::string name = os_release_value(*release, "NAME"); !name.empty()) os_ = std::move(name);
    os_version_ = os_release_value(*release, "VERSION");
    if (os_version_.empty()) os_version_ = os_release_value(*release, "VERSION_ID");
  }
  utsname machine{};
  if (::uname(&machine) == 0) arch_ = machine.machine;
}

void SandboxInfo::set_places(std::string home, std::string workspace) {
  if (!home.empty()) settings_.home = std::move(home);
  if (!workspace.empty()) settings_.workspace = std::move(workspace);
  text_.clear();
}

void SandboxInfo::set_tools(ToolInventory tools) {
  tools_ = std::move(tools);
  text_.clear();
}

std::optional<std::string> SandboxInfo::coding_version(std::string_view name) const {
  const auto found = tools_.coding.find(name);
  return found == tools_.coding.end() ? std::nullopt : std::optional(found->second);
}

const std::string& SandboxInfo::text() const {
  if (text_.empty()) text_ = json::dump(encode(context()));
  return text_;
}

SandboxResponse SandboxInfo::context() const {
  SandboxResponse out;
  out.version = CAISSON_VERSION;
  out.home_dir = settings_.home;
  out.workspace = settings_.workspace;
  out.detail.system = {os_,
                       os_version_,
                       arch_,
                       settings_.user,
                       settings_.home,
                       settings_.workspace,
                       settings_.timezone,
                       {std::to_string(settings_.port)}};
  out.detail.runtime = {tools_.python, tools_.nodejs};
  out.detail.utils = tools_.utils;
  out.data = describe(out.version, out.detail);
  return out;
}

}  // namespace caisson::routes
