// Connections to servers that may carry another request of plain HTTP. Of one workspace: nothing that one has opened serves
// another.
#pragma once

#include <list>
#include <memory>
#include <optional>

#include "launcher/egress/list/list.h"
#include "launcher/egress/loop/stream.h"

namespace caisson::egress {

class Kept {
 public:
  static constexpr std::size_t kMost = 32;
  static constexpr std::int64_t kKeepUs = 15'000'000;
  struct One {
    std::unique_ptr<Stream> stream;
    Host host;
    std::uint16_t port = 0;
    std::optional<Address> address;
    int rule = -1;
    std::shared_ptr<const List> by;  // the list that permitted it: another list's connections are not used again
    std::int64_t since_us = 0;
  };
  // total: of all workspaces, at most most_total: each has a descriptor that connections in use may need.
  Kept(Poll& poll, std::size_t& total, std::size_t most_total)
      : poll_(poll), total_(total), most_total_(most_total), timer_(poll, [this] { sweep(); }) {}
  ~Kept() { total_ -= ones_.size(); }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  void keep(One one);
  // One that is still open and silent, the one that was used last; nothing if there is none.
  [[nodiscard]] std::optional<One> take(const Host& host, std::uint16_t port, const std::shared_ptr<const List>& by);

 private:
  void sweep();
  [[nodiscard]] One take_out(std::list<One>::iterator which);

  Poll& poll_;
  std::size_t& total_;
  const std::size_t most_total_;
  std::list<One> ones_;  // the one that was kept first is in front
  Poll::Timer timer_;
};

}  // namespace caisson::egress
