#include "launcher/egress/dialer/upstreams.h"

#include <utility>

namespace caisson::egress {

// Who waits for a way to be told anew, and may go at any time.
class Upstreams::Waiting {
 public:
  Waiting(Poll& poll, std::int64_t deadline_us, std::shared_ptr<Way> way) : told(poll, deadline_us), way_(std::move(way)) {
    way_->waiting.insert(this);
  }
  ~Waiting() { way_->waiting.erase(this); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  Told told;

 private:
  const std::shared_ptr<Way> way_;
};

bool Upstreams::set(std::uint64_t workspace, std::string_view text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return false;
  const std::string_view bytes = text.substr(end + 1);
  auto read = bytes.empty() ? Result<Upstream>() : read_upstream(bytes);
  if (!read) return false;
  std::shared_ptr<Way>& way = ways_[workspace][std::string(text.substr(0, end))];
  if (!way) way = std::make_shared<Way>();
  way->upstream = bytes.empty() ? nullptr : std::make_shared<const Upstream>(std::move(*read));
  for (Waiting* waiting : way->waiting) waiting->told.tell();
  return true;
}

std::shared_ptr<Upstreams::Way> Upstreams::find(std::uint64_t workspace, const std::string& domain) const {
  const auto ways = ways_.find(workspace);
  if (ways == ways_.end()) return nullptr;
  const auto way = ways->second.find(domain);
  return way != ways->second.end() ? way->second : nullptr;
}

std::shared_ptr<const Upstream> Upstreams::of(std::uint64_t workspace, const std::string& domain) const {
  const auto way = find(workspace, domain);
  return way ? way->upstream : nullptr;
}

Task<std::shared_ptr<const Upstream>> Upstreams::renewed(std::uint64_t workspace, std::string domain,
                                                         std::shared_ptr<const Upstream> refused, std::int64_t deadline_us) {
  const auto way = find(workspace, domain);
  if (!way || way->upstream != refused) co_return way ? way->upstream : nullptr;  // it came meanwhile
  if (way->waiting.empty()) {
    const bool lately = way->asked_us != 0 && poll_.now_us() - way->asked_us < kAgainUs;
    if (lately || !launcher_.tell(Said::unauthorized, workspace, domain)) co_return nullptr;
    way->asked_us = poll_.now_us();
  }
  Waiting waiting(poll_, deadline_us, way);
  const bool told = co_await waiting.told;
  const auto& now = way->upstream;
  const bool other = told && now && (now->user != refused->user || now->password != refused->password);
  co_return other ? now : nullptr;
}

}  // namespace caisson::egress
