#include "agent/worker/listing.h"

#include <algorithm>

#include "agent/worker/pattern.h"

namespace caisson::worker {
namespace {

// The most entries of a walk that are kept for sorting, and the most of one answer.
constexpr std::size_t kMostKept = 200'000;
constexpr std::size_t kMostKeptBytes = 64 * 1024 * 1024;

struct Found {
  Entry entry;
  Facts facts;
};

struct Collected {
  std::vector<Found> found;
  std::size_t bytes = 0;
  std::int64_t total = 0, directories = 0;
  bool complete = true;

  void add(const Entry& entry, int directory, bool with_facts) {
    ++total;
    directories += entry.directory ? 1 : 0;
    bytes += entry.relative.size() + entry.name.size() + sizeof(Found);
    if (found.size() >= kMostKept || bytes > kMostKeptBytes) {
      complete = false;
      return;
    }
    found.push_back({entry, with_facts ? facts_of(directory, entry) : Facts{}});
  }
};

std::string extension(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos || dot == 0 ? "" : name.substr(dot);
}

bool hidden(const Entry& entry) { return entry.name.front() == '.'; }

// Ties are sorted by path.
template <class Key>
void sort_by(std::vector<Found>& found, Key key) {
  std::ranges::sort(found, [&key](const Found& a, const Found& b) {
    const auto x = key(a), y = key(b);
    return x != y ? x < y : a.entry.relative < b.entry.relative;
  });
}

void sort_found(std::vector<Found>& found, const std::string& by, bool descending) {
  if (by == "name") sort_by(found, [](const Found& f) { return std::string_view(f.entry.name); });
  else if (by == "size") sort_by(found, [](const Found& f) { return f.facts.size; });
  else if (by == "modified") sort_by(found, [](const Found& f) { return f.facts.modified_ns; });
  else if (by == "type") sort_by(found, [](const Found& f) { return std::pair(!f.entry.directory, extension(f.entry.name)); });
  else sort_by(found, [](const Found& f) { return std::string_view(f.entry.relative); });
  if (descending) std::ranges::reverse(found);
}

Answer answer_of(Collected collected, const Request& request, const std::string& path, bool with_facts) {
  sort_found(collected.found, request.text("sort"), request.flag("descending"));
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(request.number("most").value_or(0), 0));
  const std::string prefix = path.ends_with('/') ? path : path + "/";
  Answer answer;
  bool truncated = !collected.complete || collected.found.size() > most;
  answer.body = "[";
  for (std::size_t i = 0; i < std::min(most, collected.found.size()); ++i) {
    const auto& [entry, facts] = collected.found[i];
    json::Value item = {{"p", prefix + entry.relative}, {"n", entry.name}, {"d", entry.directory}};
    if (with_facts) item.update({{"s", facts.size}, {"m", facts.modified_ns}, {"x", facts.mode}});
    const std::string text = json::dump(item);
    if (answer.body.size() + text.size() > kMostAnswer) {
      truncated = true;
      break;
    }
    if (answer.body.size() > 1) answer.body += ',';
    answer.body += text;
  }
  answer.body += ']';
  answer.head = {{"path", path}, {"total", collected.total}, {"directories", collected.directories}, {"truncated", truncated}};
  return answer;
}

}  // namespace

Outcome list_directory(const Request& request) {
  TRY_ASSIGN(const std::string path, absolute(request.text("path")));
  TRY_ASSIGN(const Fd top, open_directory(path));
  const bool recursive = request.flag("recursive"), show_hidden = request.flag("hidden");
  const std::int64_t deepest = recursive ? request.number("max_depth").value_or(INT64_MAX) : 1;
  const std::vector<std::string> types = request.texts("types");
  Collected collected;
  const auto visit = [&](const Entry& entry, int directory) {
    if (!show_hidden && hidden(entry)) return Next::skip;
    const bool wanted = types.empty() || entry.directory || std::ranges::find(types, extension(entry.name)) != types.end();
    if (wanted) collected.add(entry, directory, true);
    return static_cast<std::int64_t>(entry.depth) < deepest ? Next::descend : Next::skip;
  };
  bool complete = true;
  TRY(walk(top, path, request, visit, complete));
  collected.complete = collected.complete && complete;
  return answer_of(std::move(collected), request, path, true);
}

Outcome glob_files(const Request& request) {
  TRY_ASSIGN(const std::string path, absolute(request.text("path")));
  TRY_ASSIGN(const Fd top, open_directory(path));
  const Pattern pattern(request.text("pattern"));
  std::vector<Pattern> excluded;
  for (const std::string& text : request.texts("exclude")) excluded.emplace_back(text);
  const bool show_hidden = request.flag("hidden") || pattern.names_hidden();
  const bool files_only = request.flag("files_only"), facts = request.flag("facts"), by_name = request.flag("by_name");
  const std::size_t deepest = by_name && !pattern.has_slash() ? 0 : pattern.depth();
  Collected collected;
  const auto visit = [&](const Entry& entry, int directory) {
    if (!show_hidden && hidden(entry)) return Next::skip;
    if (std::ranges::any_of(excluded, [&](const Pattern& p) { return p.excludes(entry.relative); })) return Next::skip;
    const bool fits = by_name && !pattern.has_slash() ? pattern.matches(entry.name) : pattern.matches(entry.relative);
    if (fits && !(files_only && entry.directory)) collected.add(entry, directory, facts);
    return deepest == 0 || entry.depth < deepest ? Next::descend : Next::skip;
  };
  bool complete = true;
  TRY(walk(top, path, request, visit, complete));
  collected.complete = collected.complete && complete;
  return answer_of(std::move(collected), request, path, facts);
}

}  // namespace caisson::worker
