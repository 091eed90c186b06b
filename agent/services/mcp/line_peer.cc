#include "agent/services/mcp/line_peer.h"

#include <unistd.h>

#include "agent/http/lane.h"

namespace caisson::services {
namespace {

constexpr std::size_t kLineTurnBytes = 64 * 1024, kLongLine = 256 * 1024;
constexpr std::size_t kUncountedLine = 128 * 1024;
// A server that says more than that unasked in one turn is read again after a rest: a flood costs its own server time, and the
// others next to nothing.
constexpr std::size_t kMostUnasked = 64;
constexpr std::chrono::milliseconds kRest{50}, kLongestRest{5'000};
// Reading a long message keeps everybody waiting. It is paid for by a rest, as long for an answer, and ten times as long for what
// nobody asked for.
constexpr std::chrono::milliseconds kMostDebt{2};
constexpr int kUnaskedFactor = 10;
constexpr std::chrono::seconds kAfterAnswer{5};  // of a server whose question was answered

mcp::Failure failure(std::string text) { return {.code = mcp::ErrorCode::internal, .text = std::move(text)}; }

}  // namespace

// However a caller leaves, the server is told, and its late answer is dropped.
struct LinePeer::Forget {
  LinePeer& peer;
  Exchange& exchange;
  std::int64_t id;
  ~Forget() {
    if (peer.pending_.erase(id) == 0 || exchange.reply || !peer.alive()) return;
    peer.send(mcp::notification_message("notifications/cancelled", {{"requestId", id}, {"reason", "not awaited any more"}}));
  }
};

LinePeer::LinePeer(Program::Pointer program, std::shared_ptr<OutputBudget> budget, std::function<void(mcp::Message)> on_message)
    : program_(std::move(program)),
      on_message_(std::move(on_message)),
      from_(budget ? budget->share() : http::Budget::Share()),
      to_(budget ? budget->share() : http::Budget::Share()) {}

LinePeer::Pointer LinePeer::over(Program::Pointer program, std::shared_ptr<OutputBudget> budget,
                                 std::function<void(mcp::Message)> on_message) {
  Pointer self(new LinePeer(std::move(program), std::move(budget), std::move(on_message)));
  const std::weak_ptr<LinePeer> weak = self;
  self->program_->on_end([weak](const Program& ended) {
    if (const Pointer peer = weak.lock()) peer->ended(ended);
  });
  spawn(self->program_->executor(), self->program_->name() + " output", read_output(self));
  return self;
}

asio::awaitable<mcp::Or<json::Value>> LinePeer::call(Pointer self, ExchangePtr exchange, std::string method, json::Value params,
                                                     bridge::Clock::time_point deadline) {
  if (!self->alive()) co_return std::unexpected(failure(self->program_->end_error()->text()));
  if (self->pending_.size() >= kMostUnderWay) co_return std::unexpected(failure(self->program_->name() + " is busy"));
  const std::int64_t id = self->next_id_++;
  if (exchange->on_progress) params["_meta"]["progressToken"] = id;
  else if (const auto meta = params.find("_meta"); meta != params.end() && meta->is_object()) meta->erase("progressToken");
  self->pending_[id] = exchange;
  const Forget forget{*self, *exchange, id};
  if (!self->push(mcp::request_message(id, method, std::move(params))))
    co_return std::unexpected(failure(self->program_->name() + " does not read its input"));
  while (!exchange->reply && !exchange->called_off && self->alive()) {
    if (co_await exchange->changed.wait_until(deadline)) continue;
    if (!exchange->is_waiting || !exchange->is_waiting()) break;
    deadline = bridge::Clock::now() + kAfterAnswer;
  }
  if (exchange->reply) co_return std::move(*exchange->reply);
  if (!self->alive()) co_return std::unexpected(failure(self->program_->end_error()->text()));
  co_return std::unexpected(
      failure(exchange->called_off ? "the request was cancelled" : self->program_->name() + " did not answer"));
}

void LinePeer::send(const json::Value& message) { (void)push(message); }
void LinePeer::send_first(std::string_view text) { (void)push_text(text); }

// --- what it is told ---

bool LinePeer::push_text(std::string_view text) {
  if (!alive() || program_->input_broken()) return false;
  const std::size_t waiting = outbox_.size() - done_;
  if (waiting > 0 && waiting + text.size() > kMostUnread) return false;
  if (waiting + text.size() > kUncountedLine && to_.resize(waiting + text.size()) != http::Room::granted) return false;
  if (done_ > kLineTurnBytes) outbox_.erase(0, std::exchange(done_, 0));
  outbox_ += text;
  if (writing_ || !flush()) return true;
  writing_ = true;
  spawn(program_->executor(), program_->name() + " input", write_input(shared_from_this()));
  return true;
}

// Writes what the kernel takes now. True: something is left.
bool LinePeer::flush() {
  while (done_ < outbox_.size() && program_->input().is_open()) {
    const ssize_t n = ::write(program_->input().native_handle(), outbox_.data() + done_, outbox_.size() - done_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (n < 0) {
      program_->note_input_broken();
      return false;
    }
    done_ += static_cast<std::size_t>(n);
  }
  outbox_.clear();
  outbox_.shrink_to_fit();
  done_ = 0;
  to_.release();
  return false;
}

task<void> LinePeer::write_input(Pointer self) {
  while (self->alive() && !self->program_->input_broken() && self->flush()) {
    const auto [error] = co_await self->program_->input().async_wait(Descriptor::wait_write, as_values);
    if (error) break;
  }
  self->writing_ = false;
  co_return Status{};
}

// --- what it says ---

task<void> LinePeer::read_output(Pointer self) {
  while (self->alive() && !self->program_->output_over()) {
    const auto [error] = co_await self->program_->output().async_wait(Descriptor::wait_read, as_values);
    if (error || !self->alive()) break;
    self->unasked_ = 0;
    const Result<ReadEnd> turn = self->read_turn();
    if (!turn) {
      const bool flood = turn.error().code == Code::limit;
      Program::fail(self->program_, turn.error(), bridge::end_of(flood ? "output" : "init_protocol"));
    } else if (self->unasked_ > kMostUnasked || self->debt_ > kMostDebt) {
      const auto owed =
          std::chrono::duration_cast<std::chrono::milliseconds>(std::exchange(self->debt_, std::chrono::nanoseconds(0)));
      co_await sleep_for(std::min(self->unasked_ > kMostUnasked ? std::max(owed, kRest) : owed, kLongestRest));
    } else if (*turn == ReadEnd::more || self->line_.size() > kLongLine) {
      co_await http::pause();
    }
  }
  co_return Status{};
}

Result<ReadEnd> LinePeer::read_turn() {
  Status taken;
  const auto keep = [this, &taken](std::string_view bytes) {
    while (taken && !bytes.empty() && alive()) {
      const std::size_t end = bytes.find('\n');
      line_.append(bytes.substr(0, end));
      if (line_.size() > kMostLine) taken = fail(Code::limit, "a line of more than " + std::to_string(kMostLine) + " bytes");
      if (end == std::string_view::npos) break;
      bytes.remove_prefix(end + 1);
      if (taken) taken = take_line();
    }
  };
  const ReadEnd read = read_available(program_->output(), kLineTurnBytes, keep);
  if (read == ReadEnd::closed) program_->note_output_over();
  TRY(std::move(taken));
  if (line_.size() > kUncountedLine && from_.resize(line_.size()) != http::Room::granted)
    return fail(Code::limit, "the workspace has no room for its answer");
  return read;
}

Status LinePeer::take_line() {
  std::string line = std::exchange(line_, {});
  from_.release();
  if (line.ends_with('\r')) line.pop_back();
  if (line.find_first_not_of(" \t") == std::string::npos) return {};
  json::Value id;
  const std::size_t unasked = unasked_;
  const bridge::Clock::time_point begun = bridge::Clock::now();
  const auto owe = [&] {
    if (unasked_ > unasked) debt_ += (bridge::Clock::now() - begun) * kUnaskedFactor;
    else if (line.size() > kUncountedLine) debt_ += bridge::Clock::now() - begun;
  };
  auto message = mcp::parse_message(line, id);
  // Programs that print to stdout what belongs to stderr are common: such a line is dropped, as the official SDKs do. A long one
  // is an answer beyond the bounds of a message, and its asker would wait for nothing.
  if (!message) {
    if (line.size() > kUncountedLine) return fail(Code::protocol, "a message that cannot be read: " + message.error().text);
    ++unasked_;
    owe();
    return {};
  }
  take(std::move(*message));
  owe();
  return {};
}

void LinePeer::take(mcp::Message message) {
  if (message.kind == mcp::Message::Kind::response) {
    const auto found = message.id.is_number_integer() ? pending_.find(message.id.get<std::int64_t>()) : pending_.end();
    if (found == pending_.end() || found->second->reply) {  // forged, or too late
      ++unasked_;
      return;
    }
    found->second->reply = mcp::outcome_of(std::move(message));
    found->second->changed.notify_all();
    return;
  }
  ++unasked_;
  if (message.method == "notifications/progress") {
    const auto token = message.params.find("progressToken");
    const auto found =
        token != message.params.end() && token->is_number_integer() ? pending_.find(token->get<std::int64_t>()) : pending_.end();
    if (found != pending_.end() && found->second->on_progress && !found->second->reply)
      found->second->on_progress(std::move(message.params));
    return;
  }
  if (on_message_) on_message_(std::move(message));
}

void LinePeer::ended(const Program&) {
  on_message_ = nullptr;
  for (auto& [id, exchange] : pending_) exchange->changed.notify_all();
  line_ = {};
  outbox_ = {};
  done_ = 0;
  from_.release();
  to_.release();
}

}  // namespace caisson::services
