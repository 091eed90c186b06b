// One connection of a session to a host whose TLS is opened, between the session's TLS and the server's: requests one after the
// other.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "launcher/common/base/task.h"
#include "launcher/common/telling/json_text.h"
#include "launcher/egress/opener/bindings.h"
#include "launcher/egress/opener/place.h"
#include "launcher/egress/opener/tls.h"

namespace caisson::egress {

class Visit {
 public:
  struct To {
    HostPort place;
    std::string host, domain, session, ahead;  // host: the place's name. ahead: what was read of the session
  };
  Visit(Place& place, To to, Fd client, Fd server);
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  void begin();
  [[nodiscard]] const std::string& domain() const { return to_.domain; }

  std::list<std::unique_ptr<Visit>>::iterator entry;

 private:
  static constexpr std::int64_t kHandshakeUs = 10'000'000, kNextRequestUs = 60'000'000, kLingerUs = 2'000'000;

  struct Asked {  // of a request, for its record
    std::string method, path, secrets;
  };
  struct Use;
  [[nodiscard]] Task<bool> talk();
  [[nodiscard]] Task<bool> meet();
  [[nodiscard]] Task<bool> read_head(RequestHead& head, std::size_t& size);
  [[nodiscard]] Task<bool> one_request();
  [[nodiscard]] Task<bool> budget();  // until one more record may be made; always true
  // Records it, and tells the session, if that has come so far. Always false: the connection is over.
  [[nodiscard]] Task<bool> turn_away(Refusal refusal, std::string detail, std::string status);
  [[nodiscard]] Task<bool> send(std::string text);
  [[nodiscard]] Task<bool> linger();
  [[nodiscard]] JsonText record(std::string_view event) const;
  [[nodiscard]] bool server_is_quiet();
  [[nodiscard]] std::int64_t now_us() const { return place_.poll.now_us(); }

  Place& place_;
  const To to_;
  const std::shared_ptr<const List> list_;
  const Verdict verdict_;  // its own, whatever the door decided
  const std::shared_ptr<ByteBudget> bytes_;
  Stream client_stream_, server_stream_;
  std::unique_ptr<Tls> client_, server_;
  std::string ahead_;  // read of the session, and of no request yet
  Asked asked_;
  bool broken_ = false;  // in the middle of an answer
  Poll::Timer over_;
  std::optional<Task<bool>> talk_;  // the last member: what it uses outlives it
};

}  // namespace caisson::egress
