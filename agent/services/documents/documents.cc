#include "agent/services/documents/documents.h"

#include <algorithm>

#include "agent/http/target.h"
#include "agent/http/token.h"
#include "agent/services/common/counted.h"
#include "agent/services/program/run_once.h"
#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

constexpr std::chrono::seconds kFetching{60}, kConverting{60}, kWaiting{120};
constexpr std::size_t kDocumentPart = 1024 * 1024;
constexpr std::size_t kMostName = 1024;
constexpr std::size_t kSaidByCurl = 300;
// Of all workspaces: each holds its document in the agent's memory, for a moment twice.
constexpr std::size_t kMostOfAll = 4;
std::size_t g_documents = 0;

// Gives back a place, however the conversion ends.
struct QuotaPlace {
  std::shared_ptr<Quota> quota;
  explicit QuotaPlace(std::shared_ptr<Quota> from) : quota(std::move(from)) { ++quota->used; }
  ~QuotaPlace() { quota->give_back(); }
  QuotaPlace(const QuotaPlace&) = delete;
  QuotaPlace& operator=(const QuotaPlace&) = delete;
};

Error too_large(const std::string& what) {
  return {Code::limit, what + " is larger than " + std::to_string(Documents::kMostBytes >> 20) + " MiB"};
}

// "https" of "https://…"; "": it is a path. One letter is none: no scheme has it.
std::string scheme_of(std::string_view uri) {
  const std::size_t colon = uri.find(':');
  if (colon == std::string_view::npos || colon < 2) return "";
  const std::string_view name = uri.substr(0, colon);
  const auto in_scheme = [](unsigned char c) { return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '.'; };
  if (std::isalpha(static_cast<unsigned char>(name.front())) == 0 || !std::ranges::all_of(name, in_scheme)) return "";
  return http::lower(name);
}

Result<std::string> path_of_file_uri(std::string_view uri) {
  std::string_view rest = uri.substr(std::string_view("file:").size());
  if (rest.starts_with("//")) {
    rest.remove_prefix(2);
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    const std::string host = http::lower(rest.substr(0, slash));
    if (!host.empty() && host != "localhost")
      return fail(Code::invalid_argument, "a file: URI names a file of the workspace, not of " + quote(host));
    rest.remove_prefix(slash);
  }
  const auto path = http::percent_decoded(rest);
  if (!path || !path->starts_with('/') || path->contains('\0'))
    return fail(Code::invalid_argument, "a file: URI has an absolute path: file:///home/gem/report.docx");
  return *path;
}

std::string last_segment(std::string_view path) {
  path = path.substr(0, std::min(path.find_first_of("?#"), path.size()));
  return std::string(path.substr(path.rfind('/') + 1)).substr(0, kMostName);
}

std::string why_not_read(const FileFailure& why, const std::string& path) {
  std::string text = why.number != 0 ? std::string(::strerror(why.number)) : why.text;
  return quote(path) + " cannot be read: " + text;
}

}  // namespace

Documents::Documents(bridge::LauncherClient& launcher, const Config& config, FileService& files)
    : launcher_(launcher),
      files_(files),
      workspace_(config.workspace),
      quota_(std::make_shared<Quota>(launcher.executor(), kMostAtOnce)) {}

void Documents::serve_workspace(std::string name) {
  workspace_ = std::move(name);
  quota_ = std::make_shared<Quota>(launcher_.executor(), kMostAtOnce);
}

task<std::string> Documents::to_markdown(std::string uri) {
  const std::shared_ptr<Quota> quota = quota_;
  const bridge::Clock::time_point deadline = bridge::Clock::now() + kWaiting;
  while (g_documents >= kMostOfAll || quota->used >= quota->most) {
    if (bridge::Clock::now() >= deadline) co_return fail(Code::limit, "too many documents are being converted; try again later");
    co_await sleep_for(std::chrono::milliseconds(50));
  }
  const QuotaPlace place(quota);
  const Counted counted(g_documents);
  const std::string scheme = scheme_of(uri);
  if (scheme == "data") co_return co_await convert(Source(), std::move(uri));
  Source source;
  if (scheme == "http" || scheme == "https") {
    CO_TRY_ASSIGN(source, co_await fetch(std::move(uri)));
  } else if (scheme == "file") {
    CO_TRY_ASSIGN(std::string path, path_of_file_uri(uri));
    CO_TRY_ASSIGN(source, co_await read_file(std::move(path)));
  } else if (scheme.empty()) {
    if (uri.starts_with("~/")) uri.erase(0, 2);  // the worker has relative paths begin at the home
    CO_TRY_ASSIGN(source, co_await read_file(std::move(uri)));
  } else {
    co_return fail(Code::invalid_argument, "a URI of " + quote(scheme) + " cannot be converted; http, https, file and data can");
  }
  co_return co_await convert(std::move(source), "");
}

task<Documents::Source> Documents::fetch(std::string uri) {
  OneRun run{.domain = "bash", .workspace = workspace_, .label = "fetch a document"};
  // -q: without the ~/.curlrc that a session may have written. -g: braces of the address are not patterns.
  run.argv = {"/usr/bin/curl", "-q", "-sS", "-g", "-L", "--fail", "--proto", "=http,https", "--proto-redir", "=http,https"};
  run.argv.insert(run.argv.end(),
                  {"--max-redirs", "10", "--connect-timeout", "15", "--max-filesize", std::to_string(kMostBytes)});
  run.argv.insert(run.argv.end(), {"-w", "%{stderr}\n%{json}", "--url", uri});
  run.cwd = "/";
  run.limit = kFetching;
  run.kept_bytes = kMostBytes;
  CO_TRY_ASSIGN(OneResult ran, co_await run_once(launcher_, std::move(run)));
  const std::string shown = quote(uri.substr(0, kMostName));
  constexpr int kTooLarge = 63;  // curl's own code for --max-filesize
  if (ran.out_cut || ran.exit.exit_code == kTooLarge) co_return std::unexpected(too_large(shown));
  if (const std::string why = failure_of(ran.exit); !why.empty()) {
    const std::string said = ran.err.substr(0, std::min(ran.err.find('\n'), kSaidByCurl));
    co_return fail(Code::io, shown + " cannot be fetched, with the network of the domain bash: " + (said.empty() ? why : said));
  }
  Source out{.bytes = std::move(ran.out), .name = last_segment(uri), .media_type = {}};
  const std::size_t line = ran.err.rfind('\n');
  const auto facts =
      json::parse(line == std::string::npos ? std::string_view(ran.err) : std::string_view(ran.err).substr(line + 1));
  if (!facts || !facts->is_object()) co_return out;
  out.media_type = json::text_of(*facts, "content_type").substr(0, kMostName);
  if (const std::string last = json::text_of(*facts, "url_effective"); !last.empty()) out.name = last_segment(last);
  co_return out;
}

task<Documents::Source> Documents::read_file(std::string path) {
  CO_TRY_ASSIGN(const Worker::Pointer worker, co_await files_.worker());
  json::Value head = json::Value::object();
  head["path"] = path;
  auto opened = co_await FileService::call_on(worker, frames::FileOp::download_open, std::move(head));
  if (!opened) co_return fail(Code::io, why_not_read(opened.error(), path));
  const std::int64_t handle = json::number_of(opened->head, "handle").value_or(0);
  const std::int64_t size = json::number_of(opened->head, "size").value_or(0);
  Source out{.bytes = {}, .name = last_segment(path), .media_type = {}};
  std::string why = size > static_cast<std::int64_t>(kMostBytes) ? too_large(quote(path)).text() : "";
  while (why.empty() && static_cast<std::int64_t>(out.bytes.size()) < size) {
    json::Value part = json::Value::object();
    part["handle"] = handle;
    part["offset"] = static_cast<std::int64_t>(out.bytes.size());
    part["most"] = std::min(static_cast<std::int64_t>(kDocumentPart), size - static_cast<std::int64_t>(out.bytes.size()));
    auto read = co_await FileService::call_on(worker, frames::FileOp::download_part, std::move(part));
    if (!read) why = why_not_read(read.error(), path);
    else if (read->body.empty() || out.bytes.size() + read->body.size() > kMostBytes)
      why = quote(path) + " changed while it was read";
    else out.bytes += read->body;
  }
  json::Value close = json::Value::object();
  close["handle"] = handle;
  (void)co_await FileService::call_on(worker, frames::FileOp::download_close, std::move(close));
  if (!why.empty()) co_return fail(Code::io, why);
  co_return out;
}

task<std::string> Documents::convert(Source source, std::string data_uri) {
  OneRun run{.domain = "document", .workspace = workspace_, .label = "the conversion", .script = "to_markdown.py"};
  run.limit = kConverting;
  run.kept_bytes = 2 * kMostMarkdown;  // as JSON
  json::Value job = json::Value::object();
  job["name"] = std::move(source.name);
  job["media_type"] = std::move(source.media_type);
  if (!data_uri.empty()) job["data_uri"] = std::move(data_uri);
  CO_TRY_ASSIGN(const json::Value done, co_await ask_script(launcher_, std::move(run), std::move(job), std::move(source.bytes)));
  const auto text = done.is_object() ? done.find("markdown") : done.end();
  if (text == done.end() || !text->is_string()) co_return fail(Code::io, "the conversion: it did not answer");
  co_return text->get<std::string>();
}

}  // namespace caisson::services
