#include "agent/traces/tracer.h"

#include <utility>

#include "agent/traces/otlp.h"

namespace caisson::traces {

std::shared_ptr<Span> Tracer::begin(std::string_view traceparent, std::string_view tracestate) const {
  const auto parent = parse_traceparent(traceparent);
  if (parent && !parent->sampled) return nullptr;
  auto span = std::make_shared<Span>();
  span->trace = parent ? parent->trace : new_id(16);
  span->id = new_id(8);
  if (!parent) return span;
  span->parent = parent->span;
  span->state = valid_tracestate(tracestate);
  return span;
}

void Tracer::end(Span& span) {
  if (std::exchange(span.ended, true) || !span.wanted) return;
  span.period.end();
  if (span.left_out > 0) settings_.dropped(span.left_out);
  add(spans_text(span), count_spans(span));
}

void Tracer::add(std::string text, std::uint32_t spans) {
  if (text.size() > kMostBytes) return settings_.dropped(spans);
  if (count_ + spans > kMostSpans || batch_.size() + text.size() >= kMostBytes) flush();
  if (batch_.empty()) {
    timer_.expires_after(kLongest);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) flush();
    });
  } else {
    batch_ += ',';
  }
  batch_ += text;
  count_ += spans;
}

void Tracer::flush() {
  if (batch_.empty()) return;
  timer_.cancel();
  const std::uint32_t spans = std::exchange(count_, 0);
  const std::string body = request_text(settings_.service, std::exchange(batch_, {}));
  if (!settings_.post(body, spans)) settings_.dropped(spans);
}

}  // namespace caisson::traces
