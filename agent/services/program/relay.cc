#include "agent/services/program/relay.h"

#include <boost/asio/write.hpp>

namespace caisson::services {

task<Relay::Pointer> Relay::start(bridge::LauncherClient& launcher, ProgramSpec spec) {
  spec.has_protocol = true;
  CO_TRY_ASSIGN(Program::Pointer program, co_await Program::launch(launcher, std::move(spec)));
  CO_TRY(co_await Program::make_ready(program));
  co_return Pointer(new Relay(std::move(program)));
}

Relay::~Relay() { end(); }

void Relay::end() {
  if (program_->alive()) spawn(program_->executor(), program_->name() + " end", Program::close(program_, "its client has left"));
}

task<std::string> Relay::read(Pointer self, std::size_t most) {
  Descriptor& from = self->program_->output();
  if (!from.is_open()) co_return std::string();
  std::string out(most, '\0');
  const asio::mutable_buffer bytes = asio::buffer(out);
  const auto [error, size] = co_await from.async_read_some(bytes, as_values);
  if (error && self->program_->alive()) self->program_->note_output_over();
  out.resize(error ? 0 : size);
  co_return out;
}

task<void> Relay::write(Pointer self, std::string bytes) {
  Descriptor& to = self->program_->input();
  if (!to.is_open()) co_return fail(Code::io, self->program_->name() + " has ended");
  const asio::const_buffer buffer = asio::buffer(bytes);
  const auto [error, size] = co_await asio::async_write(to, buffer, as_values);
  if (error) co_return asio_error("write to " + self->program_->name(), error);
  co_return Status{};
}

}  // namespace caisson::services
