// /v1/file/upload and /v1/file/download: files of any size, never held in memory as a whole. Both move parts of a MiB and request
// the next part when the last one has been taken, so the slower side sets the pace. Decisions where the contract is silent:
// - upload without a path puts the file into the home under its own name; a path that is a directory takes it under its own name.
// - a download supports one Range, If-Range and ETag; change_policy=abort ends the connection if the announced length cannot be
//   kept.
#include <algorithm>
#include <charconv>
#include <ctime>

#include "agent/http/multipart.h"
#include "agent/http/target.h"
#include "agent/routes/file_calls.h"
#include "agent/routes/table.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::routes {
namespace {

using services::FileService;
using services::Worker;

constexpr FileOperation kUpload{"upload", "Failed to upload file"};
constexpr FileOperation kDownload{"download", "Failed to download file"};
constexpr std::size_t kPart = 1024 * 1024;
constexpr std::size_t kHeldParts = 2 * kPart;               // one on its way, the next in hand
constexpr std::size_t kUploadLimit = std::size_t{1} << 40;  // the policy limits the size of a file
constexpr std::size_t kMostPath = 4096;
// How much of a failed upload is still read, so that its client sees the reason.
constexpr std::size_t kDrained = 64 * 1024 * 1024;

json::Value with_handle(std::int64_t handle) {
  json::Value head = json::Value::object();
  head["handle"] = handle;
  return head;
}

// --- upload ---

// A form on its way into a file.
struct Upload {
  Worker::Pointer worker;
  std::optional<std::string> path;
  std::string name = "upload";
  std::int64_t handle = 0;
  bool begun = false;
  std::string waiting;
  enum class Field { none, path, file } field = Field::none;
};
using Uploaded = std::expected<void, services::FileFailure>;

// The last segment of the client's file name.
std::string base_name(const std::string& filename) {
  const std::string name = filename.substr(filename.find_last_of("/\\") + 1);
  return name.empty() || name == "." || name == ".." ? "upload" : name;
}

asio::awaitable<Uploaded> send_part(Upload& upload) {
  if (upload.waiting.empty()) co_return Uploaded();
  std::string part = std::exchange(upload.waiting, {});
  auto sent =
      co_await FileService::call_on(upload.worker, frames::FileOp::upload_part, with_handle(upload.handle), std::move(part));
  if (!sent) co_return std::unexpected(std::move(sent).error());
  co_return Uploaded();
}

asio::awaitable<Uploaded> begin_file(Upload& upload, const http::Multipart::Event& event) {
  upload.name = base_name(event.filename.value_or("upload"));
  json::Value head = json::Value::object();
  head["name"] = upload.name;
  if (upload.path) head["path"] = *upload.path;
  auto begun = co_await FileService::call_on(upload.worker, frames::FileOp::upload_begin, std::move(head));
  if (!begun) co_return std::unexpected(std::move(begun).error());
  upload.handle = number_in(begun->head, "handle");
  upload.begun = true;
  co_return Uploaded();
}

asio::awaitable<Uploaded> take_event(Upload& upload, http::Multipart::Event event) {
  using Kind = http::Multipart::Kind;
  if (event.kind == Kind::begin) {
    upload.field = event.name == "file" && !upload.begun ? Upload::Field::file
                   : event.name == "path"                ? Upload::Field::path
                                                         : Upload::Field::none;
    if (upload.field == Upload::Field::path) upload.path.emplace();
    if (upload.field == Upload::Field::file) co_return co_await begin_file(upload, event);
  } else if (event.kind == Kind::data && upload.field == Upload::Field::path) {
    upload.path->append(event.data);
    if (upload.path->size() > kMostPath)
      co_return std::unexpected(services::FileFailure{ENAMETOOLONG, upload.path->substr(0, 64), "", ""});
  } else if (event.kind == Kind::data && upload.field == Upload::Field::file) {
    upload.waiting += event.data;
    if (upload.waiting.size() >= kPart) co_return co_await send_part(upload);
  } else if (event.kind == Kind::end && upload.field == Upload::Field::file) {
    co_return co_await send_part(upload);
  }
  co_return Uploaded();
}

struct FormEnd {
  Status read;        // of the body
  Uploaded uploaded;  // of the file
};

asio::awaitable<FormEnd> take_form(Call& call, Upload& upload, http::Multipart form) {
  FormEnd end;
  for (std::size_t after_failure = 0; after_failure < kDrained;) {
    auto piece = co_await call.writer->read_piece();
    if (!piece) {
      end.read = std::unexpected(std::move(piece).error());
      break;
    }
    if (piece->empty()) {
      end.read = fail(Code::invalid_argument, "malformed multipart body: it ends too early");
      break;
    }
    if (!end.uploaded) {
      after_failure += piece->size();
      continue;
    }
    form.feed(*piece);
    auto event = form.next();
    for (; event && *event && end.uploaded; event = form.next()) {
      if ((*event)->kind == http::Multipart::Kind::done) co_return end;
      end.uploaded = co_await take_event(upload, std::move(**event));
    }
    if (!event) {
      end.read = std::unexpected(std::move(event).error());
      break;
    }
  }
  co_return end;
}

http::Response missing_file(std::string_view msg) {
  Issues issues;
  issues.add(json::Value::array({"body", "file"}), "missing", msg);
  return validation_response(issues);
}

task<http::Response> upload_file(Call call) {
  const auto boundary = http::multipart_boundary(call.request.header("content-type").value_or(""));
  if (!boundary) co_return missing_file("Field required: a body of multipart/form-data with a part named file");
  Upload upload;
  auto worker = co_await call.services.workspace->file.worker();
  if (!worker) co_return answer_failure({0, "", "io_error", worker.error().text()}, kUpload, "");
  upload.worker = std::move(*worker);
  CO_TRY(co_await call.writer->reserve(kHeldParts));
  FormEnd end = co_await take_form(call, upload, http::Multipart(*boundary));
  const std::string path = upload.path.value_or(upload.name);
  if (!end.read || !end.uploaded) {
    if (upload.begun)
      (void)co_await FileService::call_on(upload.worker, frames::FileOp::upload_abort, with_handle(upload.handle));
    if (!end.uploaded) co_return answer_failure(end.uploaded.error(), kUpload, path);
    if (end.read.error().code == Code::invalid_argument) co_return http::error_response(400, end.read.error().what);
    co_return answer_failure({0, path, "io_error", end.read.error().text()}, kUpload, path);
  }
  if (!upload.begun) co_return missing_file("Field required");
  json::Value head = with_handle(upload.handle);
  head["name"] = upload.name;
  if (upload.path) head["path"] = *upload.path;
  auto done = co_await FileService::call_on(upload.worker, frames::FileOp::upload_end, std::move(head));
  if (!done) co_return answer_failure(done.error(), kUpload, path);
  FileUploadResult result{.file_path = text_in(done->head, "path"), .file_size = number_in(done->head, "size"), .success = true};
  co_return http::ok(encode(result), "File uploaded successfully");
}

// --- download ---

struct Span {
  std::int64_t first = 0, size = 0;
};

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || text.front() == '-' || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

enum class RangeKind { whole, part, unsatisfiable };
// RFC 9110 14.2: a malformed header, or more than one range, is ignored.
RangeKind parse_range(std::string_view text, std::int64_t size, Span& span) {
  span = {0, size};
  if (!text.starts_with("bytes=") || text.contains(',')) return RangeKind::whole;
  text.remove_prefix(6);
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return RangeKind::whole;
  const auto first = number_of(text.substr(0, dash)), last = number_of(text.substr(dash + 1));
  if (dash == 0) {
    if (!last) return RangeKind::whole;
    if (*last == 0 || size == 0) return RangeKind::unsatisfiable;
    span = {std::max<std::int64_t>(0, size - *last), std::min(*last, size)};
    return RangeKind::part;
  }
  if (!first || (!last && dash + 1 < text.size()) || (last && *last < *first)) return RangeKind::whole;
  if (*first >= size) return RangeKind::unsatisfiable;
  const std::int64_t end = last ? std::min(*last, size - 1) : size - 1;
  span = {*first, end - *first + 1};
  return RangeKind::part;
}

std::string http_date(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[40];
  return {text, std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts)};
}

// RFC 6266: an ASCII name for old clients, the real one for all others.
std::string disposition(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  std::string plain;
  for (const char c : name) plain += http::percent_encoded({&c, 1}).size() == 1 || c == ' ' ? c : '_';
  return "attachment; filename=\"" + plain + "\"; filename*=UTF-8''" + http::percent_encoded(name);
}

http::Response download_failure(const services::FileFailure& why, const std::string& path) {
  const FileOperationError error = file_error(why, kDownload, path);
  return http::json_response(file_status(error),
                             {{"success", false}, {"message", error.message}, {"data", encode(error)}, {"hint", nullptr}});
}

asio::awaitable<services::FileReply> next_part(const Worker::Pointer& worker, std::int64_t handle, const Span& span,
                                               std::int64_t done) {
  json::Value head = with_handle(handle);
  head["offset"] = span.first + done;
  head["most"] = std::min(static_cast<std::int64_t>(kPart), span.size - done);
  co_return co_await FileService::call_on(worker, frames::FileOp::download_part, std::move(head));
}

struct Source {
  Worker::Pointer worker;
  std::int64_t handle = 0;
  std::string version;
  bool abort_on_change = false;
};

bool still_good(const Source& source, const services::FileReply& part) {
  return part && !part->body.empty() && (!source.abort_on_change || text_in(part->head, "version") == source.version);
}

// Sends the span, and reads the next part while one is being sent. A failure leaves the answer short.
task<void> send_span(Call& call, const Source& source, const Span& span, services::FileReply part) {
  using asio::experimental::awaitable_operators::operator&&;
  for (std::int64_t done = 0; done < span.size;) {
    if (!still_good(source, part)) co_return fail(Code::io, "the file changed or ended while it was sent");
    const auto size = static_cast<std::int64_t>(part->body.size());
    if (done + size > span.size) co_return fail(Code::io, "the file worker sent more than it was asked for");
    done += size;
    std::string bytes = std::move(part->body);
    if (done == span.size) co_return co_await call.writer->write(std::move(bytes));
    auto writing = call.writer->write(std::move(bytes));
    auto reading = next_part(source.worker, source.handle, span, done);
    auto both = std::move(writing) && std::move(reading);
    auto [written, next] = co_await std::move(both);
    CO_TRY(std::move(written));
    part = std::move(next);
  }
  co_return Status{};
}

http::Response range_refused(std::int64_t size) {
  http::Response response = http::error_response(416, "Range Not Satisfiable");
  response.headers = {{"content-range", "bytes */" + std::to_string(size)}};
  return response;
}

task<http::Response> send_file(Call& call, const Source& source, const json::Value& opened) {
  const std::int64_t size = number_in(opened, "size");
  if (size < 0) co_return download_failure({0, "", "io_error", "the file worker answered nonsense"}, text_in(opened, "path"));
  const std::string tag = "\"" + source.version + "\"", modified = http_date(number_in(opened, "modified"));
  const auto if_range = call.request.header("if-range");
  Span span{0, size};
  CO_TRY(co_await call.writer->reserve(std::min(static_cast<std::size_t>(size), kHeldParts)));
  RangeKind kind = RangeKind::whole;
  if (const auto range = call.request.header("range"); range && (!if_range || *if_range == tag || *if_range == modified))
    kind = parse_range(*range, size, span);
  if (kind == RangeKind::unsatisfiable) co_return range_refused(size);
  // Reads the first part before sending the head, so that the status still reports a change or a read error.
  services::FileReply part;
  const bool wanted = span.size > 0 && call.request.method != http::Method::head;
  if (wanted) part = co_await next_part(source.worker, source.handle, span, 0);
  if (!part) co_return download_failure(part.error(), text_in(opened, "path"));
  if (wanted && source.abort_on_change && text_in(part->head, "version") != source.version)
    co_return http::error_response(409, "The file changed before it was sent");
  http::Response head;
  head.status = kind == RangeKind::part ? 206 : 200;
  head.content_type = "application/octet-stream";
  head.headers = {{"content-disposition", disposition(text_in(opened, "path"))},
                  {"accept-ranges", "bytes"},
                  {"etag", tag},
                  {"last-modified", modified}};
  if (kind == RangeKind::part)
    head.headers.emplace_back("content-range", "bytes " + std::to_string(span.first) + "-" +
                                                   std::to_string(span.first + span.size - 1) + "/" + std::to_string(size));
  CO_TRY(co_await call.writer->start_sized(std::move(head), static_cast<std::uint64_t>(span.size)));
  if (wanted)
    (void)co_await send_span(call, source, span, std::move(part));  // a short answer ends the connection, which shows the failure
  co_return http::already_sent();
}

http::Response query_refused(std::string_view name, std::string_view type, std::string_view msg) {
  Issues issues;
  issues.add(json::Value::array({"query", name}), type, msg);
  return validation_response(issues);
}

task<http::Response> download_file(Call call) {
  const auto path = call.request.query_value("path");
  const std::string policy(call.request.query_value("change_policy").value_or("ignore"));
  if (!path) co_return query_refused("path", "missing", "Field required");
  if (policy != "ignore" && policy != "abort")
    co_return query_refused("change_policy", "enum", "Input should be 'ignore' or 'abort'");
  auto worker = co_await call.services.workspace->file.worker();
  if (!worker) co_return download_failure({0, "", "io_error", worker.error().text()}, std::string(*path));
  json::Value head = json::Value::object();
  head["path"] = *path;
  auto opened = co_await FileService::call_on(*worker, frames::FileOp::download_open, std::move(head));
  if (!opened) co_return download_failure(opened.error(), std::string(*path));
  const Source source{.worker = *worker,
                      .handle = number_in(opened->head, "handle"),
                      .version = text_in(opened->head, "version"),
                      .abort_on_change = policy == "abort"};
  auto sent = co_await send_file(call, source, opened->head);
  (void)co_await FileService::call_on(source.worker, frames::FileOp::download_close, with_handle(source.handle));
  co_return sent;
}

using http::Method;

constexpr std::string_view kChangePolicies[] = {"ignore", "abort"};
constexpr Parameter kDownloadQuery[] = {
    {"path", "string", "Path; a relative one starts at the home", true},
    {"change_policy",
     "string",
     "abort: 409, or an answer cut short, when the file changes",
     false,
     {.one_of = kChangePolicies},
     "\"ignore\""},
};

constexpr Route kTransfer[] = {
    {Method::post, "/v1/file/upload", "upload_file", Scope::file, kStreamedBody, Unknown::ignore, "Upload a file",
     bind_form<upload_file, OrFailure<FileUploadResult>>(), kUploadLimit},
    {Method::get, "/v1/file/download", "download_file", Scope::file, kBinary | kConflict, Unknown::ignore,
     "Download a file, or a range of it", bind<download_file>(), 0, kDownloadQuery},
};

}  // namespace

Area file_transfer_routes() { return kTransfer; }

}  // namespace caisson::routes
