// A stub resolver of one kind of question: which addresses a name has. It asks the system's servers in turn, by UDP and, where an
// answer is too long, by TCP; from a new port with a new random id for each question, and believes only what answers that
// question. The C library's is not used: it waits, reads more files, and follows a search list.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "launcher/common/base/task.h"
#include "launcher/egress/dialer/name_files.h"
#include "launcher/egress/loop/stream.h"
#include "launcher/egress/parse/dns_answer.h"

namespace caisson::egress {

class Resolver {
 public:
  struct Found {
    enum class Kind { addresses, no_such_name, no_answer };
    Kind kind = Kind::no_answer;
    std::vector<Address> addresses;  // those of IPv4 first
    std::uint32_t ttl = 0;           // seconds
  };
  Resolver(Poll& poll, NameFiles& files, std::uint16_t port = 53) : poll_(poll), files_(files), port_(port) {}
  [[nodiscard]] Task<Found> find(Name name, std::int64_t deadline_us);

 private:
  struct Kept {
    Found found;
    std::int64_t until_us = 0;
  };
  struct Reply {
    bool came = false;
    DnsAnswer answer;
  };
  [[nodiscard]] Task<Reply> ask(Name name, std::uint16_t type, std::int64_t deadline_us);
  [[nodiscard]] Task<Reply> ask_by_udp(Name name, std::uint16_t type, Address server, std::int64_t deadline_us);
  [[nodiscard]] Task<Reply> ask_by_tcp(Name name, std::uint16_t type, Address server, std::int64_t deadline_us);
  void keep(const Name& name, const Found& found);

  Poll& poll_;
  NameFiles& files_;
  const std::uint16_t port_;
  std::map<std::string, Kept, std::less<>> kept_;
};

}  // namespace caisson::egress
