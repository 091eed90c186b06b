#include "agent/http/multipart.h"

#include <algorithm>

#include "agent/http/token.h"

namespace caisson::http {
namespace {

constexpr std::size_t kMostHeaders = 16 * 1024;
constexpr std::size_t kMostPreamble = 64 * 1024;

// The value of `name` among `; name=value; name="quoted value"`.
std::optional<std::string> parameter(std::string_view text, std::string_view name) {
  std::size_t at = std::min(text.find(';'), text.size());
  while (at < text.size()) {
    const std::size_t equals = text.find('=', ++at);
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view key = trim(text.substr(at, equals - at));
    std::string value;
    at = equals + 1;
    if (at < text.size() && text[at] == '"') {
      // Browsers escape a quote as %22 and leave backslashes alone; others write \".
      for (++at; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] == '\\' && at + 1 < text.size() && (text[at + 1] == '"' || text[at + 1] == '\\')) ++at;
        value += text[at];
      }
      at = std::min(text.find(';', at), text.size());
    } else {
      const std::size_t end = std::min(text.find(';', at), text.size());
      value = trim(text.substr(at, end - at));
      at = end;
    }
    if (same_ignoring_case(key, name)) return value;
  }
  return std::nullopt;
}

std::unexpected<Error> malformed(const char* what) {
  return caisson::fail(Code::invalid_argument, std::string("malformed multipart body: ") + what);
}

}  // namespace

std::optional<std::string> multipart_boundary(std::string_view content_type) {
  if (!same_ignoring_case(trim(content_type.substr(0, content_type.find(';'))), "multipart/form-data")) return std::nullopt;
  auto boundary = parameter(content_type, "boundary");
  if (!boundary || boundary->empty() || boundary->size() > 70) return std::nullopt;
  return boundary;
}

Result<std::optional<Multipart::Event>> Multipart::next_headers() {
  // After a delimiter, "--" ends the form and a line break begins a part.
  if (buffer_.size() < 2) return std::nullopt;
  if (buffer_.starts_with("--")) {
    state_ = State::done;
    return Event{};
  }
  if (!buffer_.starts_with("\r\n")) return malformed("text after a boundary");
  const std::size_t end = buffer_.find("\r\n\r\n");
  if (end == std::string::npos) {
    if (buffer_.size() > kMostHeaders) return malformed("the headers of a part are too long");
    return std::nullopt;
  }
  Event event{.kind = Kind::begin};
  bool named = false;
  std::string_view lines = std::string_view(buffer_).substr(0, end);
  while (!lines.empty()) {
    const std::size_t size = std::min(lines.find("\r\n"), lines.size());
    const std::string_view line = lines.substr(0, size);
    lines.remove_prefix(std::min(size + 2, lines.size()));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !same_ignoring_case(trim(line.substr(0, colon)), "content-disposition")) continue;
    const std::string_view value = line.substr(colon + 1);
    if (auto name = parameter(value, "name")) {
      event.name = std::move(*name);
      named = true;
    }
    event.filename = parameter(value, "filename");
  }
  if (!named) return malformed("a part without a name");
  buffer_.erase(0, end + 2);  // the CRLF in front of the data may be the start of the next delimiter
  state_ = State::data;
  at_start_ = true;
  return event;
}

Result<std::optional<Multipart::Event>> Multipart::next() {
  if (state_ == State::done) return Event{};
  if (state_ == State::headers) return next_headers();
  const std::size_t at = buffer_.find(delimiter_);
  if (state_ == State::preamble) {
    if (at == std::string::npos) {
      if (buffer_.size() > kMostPreamble) return malformed("no boundary");
      return std::nullopt;
    }
    buffer_.erase(0, at + delimiter_.size());
    state_ = State::headers;
    return next_headers();
  }
  // Data. It begins after the line break of the headers, or after one that an earlier piece left over.
  const std::size_t skip = at_start_ ? 2 : 0;
  if (at != std::string::npos) {
    if (at > skip) {
      Event event{.kind = Kind::data, .data = buffer_.substr(skip, at - skip)};
      buffer_.erase(0, at);
      at_start_ = false;
      return event;
    }
    buffer_.erase(0, at + delimiter_.size());
    at_start_ = false;
    state_ = State::headers;
    return Event{.kind = Kind::end};
  }
  const std::size_t kept = delimiter_.size() - 1;
  if (buffer_.size() <= skip + kept) return std::nullopt;
  Event event{.kind = Kind::data, .data = buffer_.substr(skip, buffer_.size() - kept - skip)};
  buffer_.erase(0, buffer_.size() - kept);
  at_start_ = false;
  return event;
}

}  // namespace caisson::http
