// Coroutines of the agent: the one include for Boost.Asio. One io_context, one thread, so nothing here is locked.
// A coroutine is a named function that takes its parameters by value and returns task<T>; errors are values. No `{` and
// no lambda stands inside a statement with co_await: name it first, then move it in.
#pragma once

#include <chrono>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "launcher/common/base/result.h"

namespace caisson {

namespace asio = boost::asio;

template <class T>
using task = asio::awaitable<Result<T>>;

// The completion token of every Asio operation: auto [error, n] = co_await socket.async_read_some(buffer, as_values);
inline constexpr auto as_values = asio::as_tuple(asio::use_awaitable);

// An Error (Code::io; timeout and cancellation keep their errno) from Asio's error code.
[[nodiscard]] std::unexpected<Error> asio_error(std::string what, const boost::system::error_code& error);

// Sleeps; ends early, without an exception, when its coroutine is cancelled.
[[nodiscard]] asio::awaitable<void> sleep_for(std::chrono::milliseconds time);

// Runs `work` with a deadline; Code::timeout when it passes. `work` is cancelled, and has ended, before this returns.
template <class T>
[[nodiscard]] task<T> with_timeout(task<T> work, std::chrono::milliseconds limit, std::string what) {
  using asio::experimental::awaitable_operators::operator||;
  asio::awaitable<void> timer = sleep_for(limit);
  auto race = std::move(work) || std::move(timer);
  auto outcome = co_await std::move(race);
  if (outcome.index() == 1) co_return fail(Code::timeout, std::move(what));
  co_return std::get<0>(std::move(outcome));
}

// Starts a coroutine that nobody waits for. Its error or exception is logged once, under `name`.
void spawn(const asio::any_io_executor& executor, std::string name, task<void> work);

}  // namespace caisson
