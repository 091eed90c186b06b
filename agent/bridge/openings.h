// Openings: what the policies open of workspaces: ports to requests without a credential, and areas of the API to programs in
// sessions. It is known anew after each reload, and where it cannot be known, nothing is open. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/bridge/launcher_client.h"

namespace caisson::bridge {

class Openings {
 public:
  // Of a domain's policy.
  struct Opening {
    std::set<std::uint16_t> ports;  // published_ports
    std::vector<std::string> api;   // in the order of the file
    bool goes_out = false;          // its sessions are in the workspace's network with a way out
  };

  explicit Openings(LauncherClient& launcher) : launcher_(launcher), read_(launcher.executor()) {}
  Openings(const Openings&) = delete;
  Openings& operator=(const Openings&) = delete;

  // Whether a request may come to that port without a credential. What a domain publishes counts in the workspaces in which a
  // session of the domain runs, for only such a session could have been meant. Waits while the policies are being read.
  [[nodiscard]] asio::awaitable<bool> admits(std::string workspace, std::uint16_t port);
  // The same for what has been admitted. While policies are read after a reload, the previous ones count, for kPatience at most.
  [[nodiscard]] bool keeps(const std::string& workspace, std::uint16_t port) const;
  // What is open to sessions of that domain. Waits, and keeps what was, in the same way.
  [[nodiscard]] asio::awaitable<Opening> of(std::string domain);
  [[nodiscard]] std::vector<std::string> areas(const std::string& domain) const;
  // New policies are in force.
  void policies_changed();

  static constexpr std::chrono::seconds kPatience{5};

 private:
  using ByDomain = std::map<std::string, Opening, std::less<>>;
  void start_reading();
  [[nodiscard]] task<void> read();
  [[nodiscard]] task<ByDomain> ask();
  [[nodiscard]] asio::awaitable<void> settle();
  [[nodiscard]] bool is_current() const { return read_change_ == change_; }
  [[nodiscard]] bool counts() const { return is_current() || Clock::now() < changed_at_ + kPatience; }

  LauncherClient& launcher_;
  ByDomain open_;
  std::uint64_t change_ = 1, read_change_ = 0;  // which reload they are of
  Clock::time_point changed_at_{}, failed_at_{};
  bool asked_ = false, reading_ = false;
  Notifier read_;
};

}  // namespace caisson::bridge
