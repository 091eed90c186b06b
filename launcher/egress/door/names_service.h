// The names socket of a workspace: every question that its sessions ask, of whichever server, is answered here, and none is asked
// outside. So no name, allowed or not, carries anything out.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launcher/common/telling/token_bucket.h"
#include "launcher/egress/door/workspace.h"
#include "launcher/egress/parse/dns_question.h"

namespace caisson::egress {

class NamesService final : Poll::Source {
 public:
  static constexpr std::int64_t kBurst = 200, kPerSecond = 50;
  static constexpr std::uint32_t kTtl = 30;

  explicit NamesService(Workspace& workspace) : workspace_(workspace) {}
  ~NamesService();
  NamesService(const NamesService&) = delete;
  NamesService& operator=(const NamesService&) = delete;
  // Datagrams of the socket; its answers leave from the address that was asked (IP_PKTINFO, IPV6_PKTINFO: whoever made it has set
  // these).
  [[nodiscard]] Status begin(Fd fd);
  // nullopt: what came is no question, and gets none.
  [[nodiscard]] std::optional<std::string> answer(std::string_view message, bool by_udp);

 private:
  void ready(std::uint32_t events) override;
  bool answer_one();
  [[nodiscard]] DnsCode look_up(const DnsQuestion& question, std::optional<DnsRecord>& record);
  [[nodiscard]] DnsCode address(const Name& name, bool wanted, std::optional<DnsRecord>& record);
  [[nodiscard]] DnsCode pointer(const Name& name, std::optional<DnsRecord>& record);
  [[nodiscard]] Verdict decide_for_all(const Name& name) const;
  void refuse(const Name& name, Refusal refusal, int rule, std::string_view detail = {});

  Workspace& workspace_;
  Fd fd_;
  TokenBucket budget_{kBurst, kPerSecond};
};

}  // namespace caisson::egress
