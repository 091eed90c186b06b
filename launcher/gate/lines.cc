#include "launcher/gate/lines.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <utility>

#include "launcher/common/base/scm.h"
#include "launcher/common/tables/way_ops.h"

namespace caisson::gate {
namespace {

constexpr json::Bounds kRequest{.max_bytes = way::kMaxMessage, .max_depth = 4, .max_values = 64};

}  // namespace

void Lines::add(const From& from, Fd line) {
  const auto alike = std::ranges::count(lines_, from.operator_, [](const auto& one) { return one.second.from.operator_; });
  if (std::cmp_greater_equal(alike, kMost)) return;
  const std::uint64_t number = ++last_;
  // A taken-over agent keeps no operator from taking back what was allowed.
  Share share = from.operator_ ? std::make_shared<const int>() : asking_.take(from.workspace);
  Line& added = lines_[number] = {std::move(line), from, std::move(share)};
  added.late = loop_.after(kPatienceUs, [this, number] { end(number); });
  if (!loop_.watch(added.fd.get(), EPOLLIN, [this, number](std::uint32_t) { hear(number); })) end(number);
}

void Lines::hear(std::uint64_t number) {
  const Line& line = lines_.at(number);
  std::string text(way::kMaxMessage + 1, '\0');
  const ssize_t size = ::recv(line.fd.get(), text.data(), text.size(), MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) return end(number);
  text.resize(static_cast<std::size_t>(size));
  loop_.unwatch(line.fd.get());
  auto request = json::parse(text, kRequest);
  if (request && !request->is_object()) request = fail(Code::invalid_argument, "no object");
  if (request && !line.share) request = fail(Code::limit, "too many ask of this workspace's way out at once: try again");
  if (!request) return reply(number, std::move(request));
  asked_(line.from, *request, [this, number](const Result<json::Value>& result) { reply(number, result); });
}

void Lines::reply(std::uint64_t number, const Result<json::Value>& result) {
  const auto line = lines_.find(number);
  if (line == lines_.end()) return;  // it was late
  json::Value body = {{"result", result ? *result : json::Value()}};
  if (!result) body = {{"error", code_name(result.error().code)}, {"what", result.error().text()}};
  const std::string text = json::dump(body);
  // What is too long for the line is not sent: who waits hears of its end.
  (void)scm::send(line->second.fd.get(), text.data(), text.size(), nullptr, 0, MSG_DONTWAIT);
  end(number);
}

void Lines::end(std::uint64_t number) {
  const auto line = lines_.extract(number);
  if (line.empty()) return;
  loop_.cancel(line.mapped().late);
  loop_.unwatch(line.mapped().fd.get());
}

}  // namespace caisson::gate
