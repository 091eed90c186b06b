#include "agent/services/workspace/packages.h"

#include <algorithm>
#include <tuple>

#include "agent/services/common/text.h"
#include "agent/services/program/run_once.h"
#include "launcher/common/base/json.h"

namespace caisson::services {
namespace {

constexpr std::chrono::seconds kLimit{20};
constexpr std::size_t kMaxBytes = 512 * 1024, kMaxPackages = 5000, kMaxName = 300;

// Without the current directory, where a file json.py would replace the module. The first package of a name is the one that is
// imported.
constexpr const char* kPython = R"(import sys
sys.path = [p for p in sys.path if p]
import json, importlib.metadata
found = {}
for d in importlib.metadata.distributions():
    try:
        name, version = d.metadata["Name"], d.version
    except Exception:
        continue
    if name and version:
        found.setdefault(name.lower().replace("_", "-").replace(".", "-"), [name, version])
print(json.dumps(list(found.values())))
)";

// The directories of `require` and npm: the interpreter's prefix, the user's, Debian's, and the working directory.
constexpr const char* kNodejs = R"(const fs = require('fs'), path = require('path'), found = new Map();
const prefix = path.resolve(process.execPath, '../..'), own = process.env.NPM_CONFIG_PREFIX;
const read = (dir) => { try { return fs.readdirSync(dir); } catch { return []; } };
const take = (dir) => {
  try {
    const text = fs.readFileSync(path.join(dir, 'package.json'), 'utf8'), p = JSON.parse(text);
    if (typeof p.name === 'string' && typeof p.version === 'string' && !found.has(p.name)) found.set(p.name, p.version);
  } catch {}
};
for (const dir of [path.resolve('node_modules'), ...(process.env.NODE_PATH || '').split(':'), own && own + '/lib/node_modules',
                   prefix + '/lib/node_modules', '/usr/local/lib/node_modules', '/usr/lib/node_modules', '/usr/share/nodejs'])
  for (const name of dir ? read(dir) : [])
    if (name[0] === '@') read(path.join(dir, name)).forEach((inner) => take(path.join(dir, name, inner)));
    else if (name[0] !== '.') take(path.join(dir, name));
console.log(JSON.stringify([...found]));
)";

task<std::vector<Package>> ask(bridge::LauncherClient& launcher, OneRun run) {
  CO_TRY_ASSIGN(const OneResult result, co_await run_once(launcher, std::move(run)));
  if (const std::string why = failure_of(result.exit); !why.empty()) {
    const std::string said = result.err.empty() ? "" : ": " + quote(result.err);
    co_return fail(Code::io, "the packages could not be listed: " + why + said);
  }
  if (result.out_cut) co_return fail(Code::limit, "the list of packages is longer than " + std::to_string(kMaxBytes) + " bytes");
  co_return parse_packages(result.out);
}

}  // namespace

Result<std::vector<Package>> parse_packages(std::string_view text) {
  const Error wrong(Code::io, "the interpreter did not print a list of packages");
  const auto list = json::parse(text, {.max_bytes = kMaxBytes, .max_depth = 3, .max_values = 4 * kMaxPackages});
  if (!list || !list->is_array() || list->size() > kMaxPackages) return std::unexpected(wrong);
  std::vector<Package> out;
  for (const json::Value& pair : *list) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) return std::unexpected(wrong);
    Package package{pair[0].get<std::string>(), pair[1].get<std::string>()};
    if (package.name.size() > kMaxName || package.version.size() > kMaxName) return std::unexpected(wrong);
    out.push_back(std::move(package));
  }
  std::ranges::sort(out, {}, [](const Package& p) { return std::tie(p.name, p.version); });
  return out;
}

PackageLists::PackageLists(bridge::LauncherClient& launcher, Config config) : launcher_(launcher), config_(std::move(config)) {
  serve_workspace(config_.workspace, config_.directory);
}

void PackageLists::serve_workspace(std::string name, std::string home) {
  config_.directory = std::move(home);
  config_.workspace = std::move(name);
  for (auto& entry : entries_) entry = std::make_shared<Entry>(launcher_.executor());
}

task<std::vector<Package>> PackageLists::list(PackageManager manager) {
  const std::shared_ptr<Entry> entry = entries_[static_cast<std::size_t>(manager)];
  if (!entry->running && bridge::Clock::now() >= entry->until) {
    entry->running = true;
    // In a coroutine of its own: a client that leaves must not cancel a list that others wait for.
    spawn(launcher_.executor(), "list packages", find_out(this, entry, manager));
  }
  const bridge::Clock::time_point deadline = bridge::Clock::now() + 3 * kLimit;
  while (entry->running)
    if (!co_await entry->changed.wait_until(deadline)) co_return fail(Code::timeout, "the packages could not be listed in time");
  co_return entry->found;
}

task<void> PackageLists::find_out(PackageLists* self, std::shared_ptr<Entry> entry, PackageManager manager) {
  const bool python = manager == PackageManager::pip;
  OneRun run{.domain = "bash", .workspace = self->config_.workspace, .label = python ? "python packages" : "nodejs packages"};
  if (python) run.argv = {"python3", "-c", kPython};
  else run.argv = {"node", "-e", kNodejs};
  run.cwd = self->config_.directory.empty() ? self->launcher_.greeting().workspace : self->config_.directory;
  run.limit = kLimit;
  run.kept_bytes = kMaxBytes;
  entry->found = co_await ask(self->launcher_, std::move(run));
  entry->until = bridge::Clock::now() + kKept;
  entry->running = false;
  entry->changed.notify_all();
  co_return Status{};
}

}  // namespace caisson::services
