#include "agent/http/coro.h"

#include "agent/http/log.h"

namespace caisson {
namespace {

struct LogEnd {
  std::string name;
  void operator()(const std::exception_ptr& thrown, const Status& status) const {
    if (thrown) {
      try {
        std::rethrow_exception(thrown);
      } catch (const std::exception& e) {
        log::error(name + ": " + e.what());
      } catch (...) {
        log::error(name + ": unknown exception");
      }
    } else if (!status) {
      log::warn(name + ": " + status.error().text());
    }
  }
};

}  // namespace

std::unexpected<Error> asio_error(std::string what, const boost::system::error_code& error) {
  if (error.category() == boost::system::system_category()) return sys_error(std::move(what), error.value());
  what.append(": ").append(error.message());
  return fail(Code::io, std::move(what));
}

asio::awaitable<void> sleep_for(std::chrono::milliseconds time) {
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  co_await timer.async_wait(as_values);
}

void spawn(const asio::any_io_executor& executor, std::string name, task<void> work) {
  asio::co_spawn(executor, std::move(work), LogEnd{std::move(name)});
}

}  // namespace caisson
