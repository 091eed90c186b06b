#include "launcher/egress/list/ports.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace caisson::egress {
namespace {

constexpr std::uint16_t kDoor = 312;

Rule allowing(std::vector<Ports> ports) {
  Rule out;
  out.name = "api.test", out.ports = std::move(ports), out.why = "a test";
  return out;
}

NamedPorts named(std::vector<Rule> rules) {
  Lists lists;
  lists.of.emplace("bash", std::make_shared<const List>(List{.rules = std::move(rules), .limits = {}}));
  return named_ports(lists, kDoor);
}

bool has(const NamedPorts& in, std::uint16_t port) { return std::ranges::find(in.ports, port) != in.ports.end(); }

TEST(NamedPorts, SomeAreThereWhateverTheRulesSay) {
  const NamedPorts none = named_ports(Lists(), kDoor);
  EXPECT_EQ(none.ports.front(), 80);
  EXPECT_EQ(ports_text(none.ports), "22, 53, 80, 443");
  EXPECT_TRUE(none.all);
}

TEST(NamedPorts, ARuleThatDeniesNamesNone) {
  Rule denial = allowing({{9000, 9000}});
  denial.deny = true;
  EXPECT_FALSE(has(named({denial}), 9000));
  EXPECT_TRUE(has(named({denial, allowing({{9000, 9000}})}), 9000));
}

TEST(NamedPorts, OfAllDomainsEachOnce) {
  Lists lists;
  lists.of.emplace("bash", std::make_shared<const List>(List{.rules = {allowing({{8000, 8002}, {443, 443}})}, .limits = {}}));
  lists.of.emplace("code", std::make_shared<const List>(List{.rules = {allowing({{8001, 8003}})}, .limits = {}}));
  const NamedPorts both = named_ports(lists, kDoor);
  EXPECT_EQ(ports_text(both.ports), "22, 53, 80, 443, 8000-8003");
  EXPECT_EQ(both.ports.size(), 8U);
  EXPECT_TRUE(both.all);
}

TEST(NamedPorts, AWideRangeTakesNoOthersPort) {
  const NamedPorts found = named({allowing({{1, 65535}}), allowing({{9000, 9000}}), allowing({{30000, 30001}})});
  EXPECT_FALSE(found.all);
  EXPECT_EQ(found.ports.size(), kMostPorts);
  for (const int port : {9000, 30000, 30001, 80, 443, 53, 22}) EXPECT_TRUE(has(found, static_cast<std::uint16_t>(port))) << port;
  EXPECT_FALSE(has(found, 0));
}

TEST(NamedPorts, TheirNumberIsBounded) {
  EXPECT_TRUE(named({allowing({{20000, 20059}})}).all);
  EXPECT_EQ(named({allowing({{20000, 20059}})}).ports.size(), kMostPorts);
  EXPECT_FALSE(named({allowing({{20000, 20060}})}).all);
  EXPECT_EQ(named({allowing({{20000, 20060}})}).ports.size(), kMostPorts);
}

TEST(NamedPorts, TheDoorsOwnIsNone) {
  const NamedPorts found = named({allowing({{311, 313}})});
  EXPECT_FALSE(found.all);
  EXPECT_TRUE(has(found, 311) && !has(found, kDoor) && has(found, 313));
}

TEST(NamedPorts, TextJoinsNeighbours) {
  EXPECT_EQ(ports_text({}), "");
  EXPECT_EQ(ports_text({65535}), "65535");
  EXPECT_EQ(ports_text({5, 3, 4, 9, 1}), "1, 3-5, 9");
}

}  // namespace
}  // namespace caisson::egress
