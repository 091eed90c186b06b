// Client: requests to one server, one after the other, over one connection that is kept. https is verified by the system's store,
// or by the operator's (SSL_CERT_FILE, SSL_CERT_DIR). No redirect is followed, and no proxy is asked.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/courier/url.h"
#include "agent/http/coro.h"

namespace caisson::courier {

struct Ask {
  std::string method = "GET", body = {}, content_type = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
};

struct Answer {
  unsigned status = 0;
  std::string body;
  std::chrono::seconds retry_after{0};  // as the server asks; at most a minute
};

class Client {
 public:
  Client(Url url, std::chrono::milliseconds limit);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Code::io, Code::timeout, Code::unavailable: no whole answer of at most kMaxAnswer bytes came in time. `limit` is that of all
  // of it.
  [[nodiscard]] task<Answer> exchange(Ask ask);

 private:
  struct Connection;
  [[nodiscard]] task<void> open();

  const Url url_;
  const std::chrono::milliseconds limit_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace caisson::courier
