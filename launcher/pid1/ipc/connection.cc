#include "launcher/pid1/ipc/connection.h"

#include <sys/epoll.h>

#include <utility>

namespace caisson::ipc {
namespace {

std::uint64_t g_next_number = 1;

bool would_block(const Error& error) { return error.sys == EAGAIN || error.sys == ENOBUFS; }

}  // namespace

Connection::Connection(Fd socket, Loop& loop, Handler handler)
    : socket_(std::move(socket)), loop_(loop), handler_(std::move(handler)), number_(g_next_number++) {}

Connection::~Connection() { loop_.unwatch(socket_.get()); }

Status Connection::start() {
  return loop_.watch(socket_.get(), EPOLLIN, [this](std::uint32_t events) { on_ready(events); });
}

void Connection::on_ready(std::uint32_t events) {
  if (dead_) return;
  if ((events & EPOLLOUT) != 0 && !flush()) return violate("does not take its replies");
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read_messages();
}

void Connection::read_messages() {
  // Bounded, so that one busy peer cannot keep the loop from the others.
  for (int i = 0; i < 32 && !dead_; ++i) {
    auto message = receive(socket_.get(), Wait::no);
    if (!message) {
      if (message.error().code == Code::protocol) return violate(message.error().what);
      dead_ = true;
      return handler_.closed(*this);  // may destroy this
    }
    if (!*message) return;
    take(std::move(**message));
  }
}

void Connection::take(Message message) {
  if (!message.fds.empty()) return violate("descriptors in a request");
  const auto id = json::get_int(message.body, "id");
  const auto name = json::get_string(message.body, "op");
  if (!id || !*id || **id < 1) return violate("no usable id");
  if (!name || !*name) return violate("no op");
  const OpRow* row = find_op(**name);
  if (row == nullptr) return violate("unknown op " + quote(**name));
  if (row->permitted != state_) return violate("op '" + std::string(row->name) + "' in the wrong state");
  if (!pending_.insert(**id).second) return violate("an id that still waits for its reply");
  handler_.request(*this, {**id, row->op, std::move(message.body)});
}

void Connection::violate(const std::string& why) {
  if (dead_) return;
  dead_ = true;
  handler_.violation(*this, why);  // may destroy this
}

void Connection::reply(std::int64_t id, json::Value fields, std::vector<Fd> fds) {
  pending_.erase(id);
  fields["id"] = id;
  fields["ok"] = true;
  put({std::move(fields), std::move(fds)});
}

void Connection::reply_error(std::int64_t id, const Error& error, const std::string& step) {
  pending_.erase(id);
  json::Value e{{"code", code_name(error.code)}, {"what", error.what}};
  if (error.sys != 0) e["errno"] = errno_name(error.sys);
  if (!step.empty()) e["step"] = step;
  put({{{"id", id}, {"ok", false}, {"error", std::move(e)}}, {}});
}

void Connection::event(json::Value fields) { put({std::move(fields), {}}); }

void Connection::put(Outgoing message) {
  if (dead_) return;
  queue_.push_back(std::move(message));
  if (queue_.size() > kMaxQueued || !flush()) {
    // Not from here: the caller still holds references. The next turn of the loop ends it.
    queue_.clear();
    loop_.after(0, [this, alive = std::weak_ptr<int>(alive_)] {
      if (!alive.expired()) violate("does not take its replies");
    });
  }
}

bool Connection::flush() {
  while (!queue_.empty()) {
    std::vector<int> fds;
    for (const Fd& fd : queue_.front().fds) fds.push_back(fd.get());
    const Status sent = send(socket_.get(), queue_.front().body, fds);
    if (!sent && would_block(sent.error())) {
      waiting_ = true;
      return loop_.rewatch(socket_.get(), EPOLLIN | EPOLLOUT).has_value();
    }
    // A peer that is gone is noticed by reading; a reply that is too large must not look like silence.
    if (!sent && sent.error().code == Code::limit) {
      const json::Value id = queue_.front().body.value("id", json::Value());
      if (!id.is_null())
        (void)send(socket_.get(),
                   {{"id", id}, {"ok", false}, {"error", {{"code", "limit"}, {"what", "the reply is too large"}}}});
    }
    queue_.pop_front();
  }
  return !std::exchange(waiting_, false) || loop_.rewatch(socket_.get(), EPOLLIN).has_value();
}

}  // namespace caisson::ipc
