// The link from the launcher's work to the request that needs it. The handler of a traced request runs with an executor that
// carries the span, and every coroutine that it awaits can ask for that executor. Work that outlives the handler (sessions kept
// ready, services) has executors of its own, and so belongs to no request.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "agent/traces/span.h"

namespace caisson::traces {

namespace asio = boost::asio;

// Any executor, with a span. Whatever is asked of it, the executor inside answers.
class TracedExecutor {
 public:
  TracedExecutor(asio::any_io_executor inner, std::shared_ptr<Span> span) noexcept
      : inner_(std::move(inner)), span_(std::move(span)) {}

  [[nodiscard]] const std::shared_ptr<Span>& span() const { return span_; }
  [[nodiscard]] const asio::any_io_executor& inner() const { return inner_; }

  template <class F>
  void execute(F&& f) const {
    inner_.execute(std::forward<F>(f));
  }
  template <class P>
    requires asio::can_query_v<const asio::any_io_executor&, const P&>
  decltype(auto) query(const P& property) const {
    return asio::query(inner_, property);
  }
  template <class P>
    requires asio::can_require_v<const asio::any_io_executor&, const P&>
  TracedExecutor require(const P& property) const {
    return {asio::require(inner_, property), span_};
  }
  template <class P>
    requires asio::can_prefer_v<const asio::any_io_executor&, const P&>
  TracedExecutor prefer(const P& property) const {
    return {asio::prefer(inner_, property), span_};
  }
  friend bool operator==(const TracedExecutor& a, const TracedExecutor& b) noexcept {
    return a.inner_ == b.inner_ && a.span_ == b.span_;
  }
  friend bool operator!=(const TracedExecutor& a, const TracedExecutor& b) noexcept { return !(a == b); }

 private:
  asio::any_io_executor inner_;
  std::shared_ptr<Span> span_;
};

// `work` for the request of this span.
template <class T>
asio::awaitable<T> with_span(asio::awaitable<T> work, std::shared_ptr<Span> span) {
  const asio::any_io_executor carrier = TracedExecutor(co_await asio::this_coro::executor, std::move(span));
  co_return co_await asio::co_spawn(carrier, std::move(work), asio::use_awaitable);
}

// One piece of the launcher's work: from here until it is done or forgotten.
class ChildSpan {
 public:
  ChildSpan(const asio::any_io_executor& executor, std::string_view name) {
    const auto* traced = executor.target<TracedExecutor>();
    if (traced == nullptr || traced->span()->ended) return;
    span_ = traced->span();
    child_.emplace().name = name;
  }
  void about(std::string_view key, std::string_view value) {
    if (child_) child_->attributes.emplace_back(key, value);
  }
  void session(std::string_view id) {
    if (child_) span_->session = id;
    about("caisson.session.id", id);
  }
  // error: the code of what went wrong, empty for success.
  void done(std::string_view error = {}) {
    if (!child_ || span_->ended) return;
    if (span_->children.size() >= Span::kMostChildren) {
      ++span_->left_out;
      return child_.reset();
    }
    child_->error = error;
    child_->period.end();
    span_->children.push_back(std::move(*child_));
    child_.reset();
  }

 private:
  std::shared_ptr<Span> span_;
  std::optional<Child> child_;  // of a request that is traced: nothing is made for others
};

}  // namespace caisson::traces
