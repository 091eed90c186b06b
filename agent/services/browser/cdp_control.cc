#include "agent/services/browser/cdp_control.h"

#include <boost/asio/write.hpp>

namespace caisson::services {
namespace {

constexpr std::size_t kMostEvent = 64 * 1024;
constexpr std::size_t kMostCommands = 8 * 1024 * 1024;  // two lists of patterns fit
constexpr std::size_t kEventsOfTurn = 64 * 1024;

}  // namespace

CdpControl::Pointer CdpControl::over(Program::Pointer program, Told told) {
  const Pointer self(new CdpControl(std::move(program), std::move(told)));
  spawn(self->program_->executor(), self->program_->name() + " events", read(self));
  return self;
}

Status CdpControl::take(std::string_view bytes) {
  line_.append(bytes);
  std::size_t begin = 0;
  for (std::size_t end = line_.find('\n'); end != std::string::npos; end = line_.find('\n', begin)) {
    const std::string_view text(line_.data() + begin, end - begin);
    begin = end + 1;
    TRY_ASSIGN(const json::Value event, json::parse(text, {.max_bytes = kMostEvent, .max_depth = 4, .max_values = 1024}));
    if (!event.is_object()) return fail(Code::protocol, "an event is no object");
    told_(event);
  }
  line_.erase(0, begin);
  if (line_.size() > kMostEvent) return fail(Code::protocol, "an event is longer than " + std::to_string(kMostEvent) + " bytes");
  return {};
}

task<void> CdpControl::read(Pointer self) {
  Program& program = *self->program_;
  while (program.alive() && !program.output_over()) {
    const auto [error] = co_await program.output().async_wait(Descriptor::wait_read, as_values);
    if (error || !program.alive()) break;
    Status taken;
    const auto keep = [&taken, &self](std::string_view bytes) {
      if (taken) taken = self->take(bytes);
    };
    if (read_available(program.output(), kEventsOfTurn, keep) == ReadEnd::closed) program.note_output_over();
    if (!taken) Program::fail(self->program_, taken.error(), bridge::end_of("init_protocol"));
  }
  co_return Status{};
}

Status CdpControl::tell(const Pointer& self, const json::Value& command) {
  if (!self->program_->alive()) return std::unexpected(*self->program_->end_error());
  std::string text = json::dump(command) + "\n";
  if (self->waiting_.size() + text.size() > kMostCommands)
    return fail(Code::limit, self->program_->name() + " does not read its input");
  self->waiting_ += text;
  if (!std::exchange(self->writing_, true)) spawn(self->program_->executor(), self->program_->name() + " commands", write(self));
  return {};
}

task<void> CdpControl::write(Pointer self) {
  while (!self->waiting_.empty() && self->program_->alive() && self->program_->input().is_open()) {
    const std::string text = std::exchange(self->waiting_, {});
    const asio::const_buffer bytes = asio::buffer(text);
    const auto [error, size] = co_await asio::async_write(self->program_->input(), bytes, as_values);
    if (error) break;  // the program's end is told by its owner
  }
  self->writing_ = false;
  co_return Status{};
}

}  // namespace caisson::services
