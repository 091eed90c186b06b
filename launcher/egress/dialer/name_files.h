// What the system says about names: the servers of /etc/resolv.conf and the addresses of /etc/hosts. Read again when a file
// changes, so that a container whose servers change needs no new dialer.
#pragma once

#include <sys/stat.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/egress/list/host.h"

namespace caisson::egress {

inline constexpr std::size_t kMostServers = 3;  // as resolv.conf(5)

// The addresses of lines "nameserver ADDRESS", at most kMostServers. Without one 127.0.0.1 (resolv.conf(5)). Search lines and
// options mean nothing here: a name is asked as it is.
[[nodiscard]] std::vector<Address> servers_in(std::string_view resolv_conf);
// By canonical name, as hosts(5): all addresses of all lines that have the name. A line that is none is skipped.
[[nodiscard]] std::map<std::string, std::vector<Address>, std::less<>> hosts_in(std::string_view hosts);

class NameFiles {
 public:
  explicit NameFiles(std::string resolv_conf = "/etc/resolv.conf", std::string hosts = "/etc/hosts")
      : resolv_conf_{.path = std::move(resolv_conf)}, hosts_file_{.path = std::move(hosts)} {}
  [[nodiscard]] const std::vector<Address>& servers();
  // nullptr: the file does not have it.
  [[nodiscard]] const std::vector<Address>* addresses_of(const Name& name);

 private:
  struct Watched {
    std::string path;
    struct stat seen{};
    bool read = false;
    // The new text where it has changed. What cannot be read is empty.
    [[nodiscard]] bool changed(std::string& text);
  };
  Watched resolv_conf_, hosts_file_;
  std::vector<Address> servers_;
  std::map<std::string, std::vector<Address>, std::less<>> hosts_;
};

}  // namespace caisson::egress
