// PublishedPorts: the ports of workspaces that the policies open to requests without a credential. What a domain's policy
// publishes counts in the workspaces in which a session of the domain runs, for only such a session could have been meant. It is
// known anew after each reload, and where it cannot be known, nothing is published. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "agent/bridge/launcher_client.h"

namespace caisson::proxy {

class PublishedPorts {
 public:
  explicit PublishedPorts(bridge::LauncherClient& launcher) : launcher_(launcher), read_(launcher.executor()) {}
  PublishedPorts(const PublishedPorts&) = delete;
  PublishedPorts& operator=(const PublishedPorts&) = delete;

  // Whether a request may come to that port without a credential. Waits while the policies are being read.
  [[nodiscard]] asio::awaitable<bool> admits(std::string workspace, std::uint16_t port);
  // The same for what has been admitted. While policies are read after a reload, the previous ones count, for kPatience at most.
  [[nodiscard]] bool keeps(const std::string& workspace, std::uint16_t port) const;
  // New policies are in force.
  void policies_changed();

  static constexpr std::chrono::seconds kPatience{5};

 private:
  using Ports = std::map<std::string, std::set<std::uint16_t>, std::less<>>;  // by domain
  void start_reading();
  [[nodiscard]] task<void> read();
  [[nodiscard]] task<Ports> ask();
  [[nodiscard]] bool is_current() const { return read_change_ == change_; }

  bridge::LauncherClient& launcher_;
  Ports ports_;
  std::uint64_t change_ = 1, read_change_ = 0;  // which reload the ports are of
  bridge::Clock::time_point changed_at_{}, failed_at_{};
  bool asked_ = false, reading_ = false;
  bridge::Notifier read_;
};

}  // namespace caisson::proxy
