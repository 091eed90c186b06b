#include "launcher/egress/door/dial_line.h"

#include <algorithm>
#include <cstring>

#include "launcher/common/base/word.h"

namespace caisson::egress {

PendingDial::PendingDial(Poll& poll, All& all, std::uint32_t id) : told(poll, poll.now_us() + kPatienceUs), all_(all), id_(id) {
  all_[id_] = this;
}

void DialLine::set_peer(Fd fd) {
  fail_all();
  dialer_.reset();
  dialer_ = std::make_unique<Link>(
      poll_, std::move(fd), [this](std::string_view message, std::vector<Fd> fds) { return heard(message, std::move(fds)); },
      [this] {
        if (dialer_->open()) return;
        fail_all();
        if (dialer_->broken()) broken_();
      });
}

void DialLine::fail_all() {
  for (const auto& [id, pending] : pending_) {
    pending->dialed = Dialed();
    pending->dialed.refusal = Refusal::dialer;
    pending->told.tell();
  }
}

bool DialLine::heard(std::string_view message, std::vector<Fd> fds) {
  DialAnswer answer;
  if (message.size() != sizeof answer || fds.size() > 1) return false;
  std::memcpy(&answer, message.data(), sizeof answer);
  const bool connected = answer.error == 0 && answer.refusal == 0;
  if (connected == fds.empty() || answer.refusal >= static_cast<std::uint32_t>(count_words(words(Refusal{})))) return false;
  const auto it = pending_.find(answer.id);
  if (it == pending_.end()) return true;
  Dialed& dialed = it->second->dialed;
  dialed.refusal = static_cast<Refusal>(answer.refusal);
  dialed.error = answer.error;
  dialed.rule = answer.rule;
  dialed.upstream = answer.upstream != 0;
  dialed.status = answer.status;
  dialed.address.emplace();
  std::ranges::copy(answer.address, dialed.address->bytes.begin());
  dialed.address->v6 = answer.v6 != 0;
  if (*dialed.address == Address{}) dialed.address.reset();
  if (connected) dialed.fd = std::move(fds.front());
  it->second->told.tell();
  return true;
}

Task<Dialed> DialLine::dial(std::uint64_t workspace, std::string domain, Host host, std::uint16_t port) {
  const std::string text = host_text(host);
  const DialRequest request{
      .workspace = workspace, .id = ++last_id_, .port = port, .host_bytes = static_cast<std::uint16_t>(text.size())};
  PendingDial pending(poll_, pending_, request.id);
  if (!dialer_ || !dialer_->say(message_of(request, text + domain))) pending.dialed.refusal = Refusal::dialer;
  if (pending.dialed.refusal != Refusal::none) co_return std::move(pending.dialed);
  const bool told = co_await pending.told;
  if (!told) pending.dialed.error = ETIMEDOUT;
  co_return std::move(pending.dialed);
}

}  // namespace caisson::egress
