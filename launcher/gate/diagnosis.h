// What a request for a URL would meet, step by step: mapping, list, upstream proxy, connection.
#pragma once

#include <cstdint>
#include <string>

#include "launcher/common/base/json.h"
#include "launcher/common/egress/protocol.h"
#include "launcher/gate/settings.h"

namespace caisson::gate {

class Diagnosis {
 public:
  static constexpr std::int64_t kPatienceUs = 15'000'000;  // longer than the dialer's own
  enum class Next { none, inside, dial };

  // url, and for which domain: "bash", where it has a way out, or else the first one that has. Errors: of the request.
  [[nodiscard]] static Result<Diagnosis> begin(const Settings& settings, const json::Value& request);
  // How it goes on, and where to.
  [[nodiscard]] Next next() const { return next_; }
  [[nodiscard]] const std::string& domain() const { return domain_; }
  [[nodiscard]] const std::string& host() const { return host_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  // There is no listener at its port, which nothing meets by itself then.
  void by_proxy_alone() { step("without nf_tables only programs that use the proxy, at 127.0.0.1, go out at this port"); }
  void reached(int error);  // Next::inside
  void dialed(const egress::DialAnswer& answer);

  [[nodiscard]] bool refused() const { return refusal_ != egress::Refusal::none; }
  [[nodiscard]] std::string record(const std::string& workspace) const;
  [[nodiscard]] const json::Value& result() const { return out_; }

 private:
  void step(std::string text) { out_["steps"].push_back(std::move(text)); }
  void refuse(egress::Refusal refusal, const std::string& why);
  [[nodiscard]] bool lead(const Settings& settings);
  void judge(const egress::List& list);
  void judge_request(const egress::Rule& rule);
  void choose_way(const Settings& settings);

  json::Value out_;
  std::string domain_, host_, path_;
  egress::Host place_;
  std::uint16_t port_ = 0;
  bool plain_ = false;  // http://
  int rule_ = -1, error_ = 0;
  egress::Refusal refusal_ = egress::Refusal::none;
  Next next_ = Next::none;
};

}  // namespace caisson::gate
