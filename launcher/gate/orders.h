// What a process is told, in order. What its socket does not take waits: messages as they are, up to a bound; and how something
// stands as the wish to say so, which is put into words when its turn comes. So whoever is slow hears the newest, once, however
// often it changed, and a start with many workspaces keeps neither their messages nor more descriptors than those of one.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/loop.h"

namespace caisson::gate {

class Orders {
 public:
  // stuck: it does not take them, and gets no more until open().
  Orders(Loop& loop, std::function<void(const std::string& why)> stuck) : loop_(loop), stuck_(std::move(stuck)) {}
  ~Orders() { close(); }
  Orders(const Orders&) = delete;

  void open(int socket);  // watched for EPOLLIN by its owner, who calls flush() whenever it is writable
  void close();
  void message(std::string text, const std::vector<int>& fds);
  // `say` calls message(), at once or later; not again where `what` waits already.
  void state(std::string what, std::function<void()> say);
  [[nodiscard]] bool waits(const std::string& what) const { return states_.contains(what); }
  void flush();

 private:
  static constexpr std::size_t kMostMessages = 4096;
  static constexpr std::int64_t kPatienceUs = 20'000'000, kRetryUs = 50'000;
  struct Message {
    std::string text;
    std::vector<Fd> fds;
  };
  struct Waiting {
    Message message;
    std::string what;  // of a state; empty: it is the message
    std::function<void()> say;
  };
  bool put(const std::string& text, const std::vector<int>& fds);  // false: not now, or never
  void next();
  void keep(std::string text, const std::vector<int>& fds);
  void give_up(const std::string& why);

  Loop& loop_;
  const std::function<void(const std::string&)> stuck_;
  int socket_ = -1;
  std::deque<Message> messages_;  // of the state that is being said; before all of waiting_
  std::deque<Waiting> waiting_;
  std::size_t count_ = 0;         // messages in waiting_
  std::set<std::string> states_;  // in waiting_
  bool blocked_ = false, saying_ = false;
  Loop::TimerId late_ = 0, retry_ = 0;
};

}  // namespace caisson::gate
