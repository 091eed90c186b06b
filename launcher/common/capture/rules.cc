#include "launcher/common/capture/rules.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <string_view>

#include "launcher/common/capture/netlink.h"

namespace caisson::capture {
namespace {

constexpr std::string_view kTable = "caisson", kChain = "prerouting";
constexpr std::uint32_t kMangle = static_cast<std::uint32_t>(-150);  // before routing decides, after nothing that we need
constexpr char kSyn = 0x02, kSynAck = 0x12;
constexpr std::string_view kTcp("\x06", 1);

std::uint16_t type(int message) { return static_cast<std::uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | message); }

std::string packed(int family, const char* address) {
  char bytes[16] = {};
  ::inet_pton(family, address, bytes);
  return {bytes, family == AF_INET6 ? 16U : 4U};
}
std::string packed(std::uint16_t port) {
  const std::uint16_t big = htons(port);
  return {reinterpret_cast<const char*>(&big), sizeof big};
}

// The expressions of one rule. Each loads register 1, changes it, or ends the rule where it does not hold.
class Rule {
 public:
  explicit Rule(Requests& to) : to_(to) {}

  void meta(nft_meta_keys key, std::string_view equal) {
    expression("meta", [&] {
      to_.put_big(NFTA_META_KEY, key);
      to_.put_big(NFTA_META_DREG, NFT_REG_1);
    });
    compare(NFT_CMP_EQ, equal);
  }
  void payload(nft_payload_bases base, std::uint32_t offset, nft_cmp_ops op, std::string_view value) {
    load(base, offset, static_cast<std::uint32_t>(value.size()));
    compare(op, value);
  }
  void begins_a_connection() {
    load(NFT_PAYLOAD_TRANSPORT_HEADER, 13, 1);
    expression("bitwise", [&] {
      to_.put_big(NFTA_BITWISE_SREG, NFT_REG_1);
      to_.put_big(NFTA_BITWISE_DREG, NFT_REG_1);
      to_.put_big(NFTA_BITWISE_LEN, 1);
      data(NFTA_BITWISE_MASK, {&kSynAck, 1});
      data(NFTA_BITWISE_XOR, std::string_view("\0", 1));
    });
    compare(NFT_CMP_EQ, {&kSyn, 1});
  }
  void tproxy(unsigned char family, std::string_view address, std::uint16_t port) {
    immediate(NFT_REG_1, address);
    immediate(NFT_REG_2, packed(port));
    expression("tproxy", [&] {
      to_.put_big(NFTA_TPROXY_FAMILY, family);
      to_.put_big(NFTA_TPROXY_REG_ADDR, NFT_REG_1);
      to_.put_big(NFTA_TPROXY_REG_PORT, NFT_REG_2);
    });
  }

 private:
  template <class Fill>
  void expression(std::string_view name, const Fill& fill) {
    to_.nest(NFTA_LIST_ELEM, [&] {
      to_.put_text(NFTA_EXPR_NAME, name);
      to_.nest(NFTA_EXPR_DATA, fill);
    });
  }
  void data(std::uint16_t attribute, std::string_view value) {
    to_.nest(attribute, [&] { to_.put(NFTA_DATA_VALUE, value); });
  }
  void load(nft_payload_bases base, std::uint32_t offset, std::uint32_t size) {
    expression("payload", [&] {
      to_.put_big(NFTA_PAYLOAD_DREG, NFT_REG_1);
      to_.put_big(NFTA_PAYLOAD_BASE, base);
      to_.put_big(NFTA_PAYLOAD_OFFSET, offset);
      to_.put_big(NFTA_PAYLOAD_LEN, size);
    });
  }
  void compare(nft_cmp_ops op, std::string_view value) {
    expression("cmp", [&] {
      to_.put_big(NFTA_CMP_SREG, NFT_REG_1);
      to_.put_big(NFTA_CMP_OP, op);
      data(NFTA_CMP_DATA, value);
    });
  }
  void immediate(nft_registers into, std::string_view value) {
    expression("immediate", [&] {
      to_.put_big(NFTA_IMMEDIATE_DREG, into);
      data(NFTA_IMMEDIATE_DATA, value);
    });
  }
  Requests& to_;
};

class Batch {
 public:
  Batch() { edge(NFNL_MSG_BATCH_BEGIN); }
  void message(int what, std::uint16_t flags) {
    to_.begin(type(what), flags, nfgenmsg{.nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0});
  }
  void table(int what, std::uint16_t flags = 0) {
    message(what, flags);
    to_.put_text(NFTA_TABLE_NAME, kTable);
  }
  void chain() {
    message(NFT_MSG_NEWCHAIN, NLM_F_CREATE);
    to_.put_text(NFTA_CHAIN_TABLE, kTable);
    to_.put_text(NFTA_CHAIN_NAME, kChain);
    to_.put_text(NFTA_CHAIN_TYPE, "filter");
    to_.put_big(NFTA_CHAIN_POLICY, NF_ACCEPT);
    to_.nest(NFTA_CHAIN_HOOK, [this] {
      to_.put_big(NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
      to_.put_big(NFTA_HOOK_PRIORITY, kMangle);
    });
  }
  template <class Fill>
  void rule(unsigned char family, const Fill& more, std::string_view listener, std::uint16_t port) {
    message(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
    to_.put_text(NFTA_RULE_TABLE, kTable);
    to_.put_text(NFTA_RULE_CHAIN, kChain);
    to_.nest(NFTA_RULE_EXPRESSIONS, [&] {
      Rule rule(to_);
      const char protocol = static_cast<char>(family);
      rule.meta(NFT_META_NFPROTO, {&protocol, 1});
      rule.meta(NFT_META_L4PROTO, kTcp);
      rule.begins_a_connection();
      more(rule);
      rule.tproxy(family, listener, port);
    });
  }
  [[nodiscard]] Status load() {
    edge(NFNL_MSG_BATCH_END);
    return to_.send(NETLINK_NETFILTER);
  }

 private:
  void edge(std::uint16_t which) {
    to_.begin(which, 0, nfgenmsg{.nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)},
              false);
  }
  Requests to_;
};

}  // namespace

Status load_rules(std::uint16_t port) {
  constexpr std::uint32_t kTo4 = 16, kTo6 = 24, kToPort = 2;  // where a packet says where it goes
  Batch batch;
  // One that is there already, or not, is gone then.
  batch.table(NFT_MSG_NEWTABLE, NLM_F_CREATE);
  batch.table(NFT_MSG_DELTABLE);
  batch.table(NFT_MSG_NEWTABLE, NLM_F_CREATE);
  batch.chain();
  const std::string own4 = packed(AF_INET, "127.0.0.1"), own6 = packed(AF_INET6, "::1"), names = packed(AF_INET, "127.0.0.53");
  batch.rule(NFPROTO_IPV4, [](Rule& rule) { rule.payload(NFT_PAYLOAD_NETWORK_HEADER, kTo4, NFT_CMP_NEQ, "\x7f"); }, own4, port);
  batch.rule(
      NFPROTO_IPV4,
      [&](Rule& rule) {
        rule.payload(NFT_PAYLOAD_NETWORK_HEADER, kTo4, NFT_CMP_EQ, names);
        rule.payload(NFT_PAYLOAD_TRANSPORT_HEADER, kToPort, NFT_CMP_EQ, packed(53));
      },
      own4, port);
  batch.rule(NFPROTO_IPV6, [&](Rule& rule) { rule.payload(NFT_PAYLOAD_NETWORK_HEADER, kTo6, NFT_CMP_NEQ, own6); }, own6, port);
  return batch.load();
}

}  // namespace caisson::capture
