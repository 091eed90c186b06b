#include "agent/http/event_stream.h"

#include <algorithm>

namespace caisson::http {
namespace {

// One line: characters that could end it are dropped.
void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ");
  for (const char c : value)
    if (c != '\r' && c != '\n' && c != '\0') out += c;
  out += '\n';
}

}  // namespace

std::string format_event(const Event& event) {
  std::string out;
  if (!event.id.empty()) append_field(out, "id", event.id);
  if (!event.event.empty()) append_field(out, "event", event.event);
  // For clients CR ends a line as LF and CRLF do, so all three become line breaks of the data.
  std::string_view rest = event.data;
  while (true) {
    const std::size_t end = std::min(rest.find_first_of("\r\n"), rest.size());
    append_field(out, "data", rest.substr(0, end));
    if (end == rest.size()) break;
    rest.remove_prefix(end + (rest.substr(end).starts_with("\r\n") ? 2 : 1));
  }
  out += '\n';
  return out;
}

task<EventStream> EventStream::open(StreamWriter& writer) {
  CO_TRY(co_await writer.start("text/event-stream"));
  co_return EventStream(writer);
}

task<void> EventStream::send(Event event) {
  std::string bytes = format_event(event);
  co_return co_await writer_->write(std::move(bytes));
}

}  // namespace caisson::http
