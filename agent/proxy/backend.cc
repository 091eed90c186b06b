#include "agent/proxy/backend.h"

#include <boost/asio/buffer.hpp>

namespace caisson::proxy {

task<bool> Backend::read(std::string* bytes) {
  const std::size_t before = bytes->size();
  bytes->resize_and_overwrite(before + kPiece, [](char*, std::size_t size) { return size; });  // read into, not filled first
  begin();
  auto [error, size] = co_await socket_.async_read_some(asio::buffer(bytes->data() + before, kPiece), as_values);
  end();
  bytes->resize(before + size);
  if (error == asio::error::eof) co_return false;
  if (error) co_return asio_error("read from the server", error);
  co_return true;
}

task<void> Backend::write(std::string bytes) {
  std::string_view rest = bytes;
  boost::system::error_code refused;  // an error shows again below
  rest.remove_prefix(socket_.write_some(asio::buffer(rest), refused));
  moved_ = Clock::now();
  while (!rest.empty()) {
    begin();
    auto [error, size] = co_await socket_.async_write_some(asio::buffer(rest), as_values);
    end();
    if (error) co_return asio_error("write to the server", error);
    rest.remove_prefix(size);
  }
  co_return Status{};
}

void Backend::close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
}

Clock::duration Backend::silent(Clock::time_point now) const { return waiting_ > 0 ? now - moved_ : Clock::duration::zero(); }

void Backend::begin() {
  ++waiting_;
  moved_ = Clock::now();
}

void Backend::end() {
  --waiting_;
  moved_ = Clock::now();
}

}  // namespace caisson::proxy
