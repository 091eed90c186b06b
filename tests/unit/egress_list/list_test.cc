// Lists: what they permit, and as bytes.
#include "launcher/egress/list/list.h"

#include <gtest/gtest.h>

#include <random>

#include "launcher/egress/list/prefix.h"

namespace caisson::egress {
namespace {

using Kind = Verdict::Kind;

Host host(std::string_view text) { return *read_host(text); }
Address address(std::string_view text) { return std::get<Address>(host(text)); }
Rule name_rule(std::string name) { return {.name = std::move(name)}; }
Rule suffix_rule(std::string suffix) { return {.suffix = std::move(suffix)}; }
Rule address_rule(std::string_view text, unsigned prefix, std::vector<Ports> ports) {
  return {.address = address(text), .prefix = prefix, .ports = std::move(ports)};
}
Rule deny(Rule rule) {
  rule.deny = true;
  return rule;
}
Kind kind(const List& list, std::string_view text, std::uint16_t port) { return decide(list, host(text), port).kind; }
bool reaches(const List& list, std::string_view asked, std::string_view to, std::uint16_t port) {
  return address_permitted(list, decide(list, host(asked), port), host(asked), address(to), port);
}

TEST(Decide, AnEmptyListPermitsNothing) {
  EXPECT_EQ(kind({}, "example.org", 443), Kind::none);
  EXPECT_EQ(kind({}, "8.8.8.8", 443), Kind::none);
  EXPECT_FALSE(reaches({}, "8.8.8.8", "8.8.8.8", 443));
}

TEST(Decide, ANameIsOneName) {
  const List list{.rules = {name_rule("example.org")}};
  EXPECT_EQ(kind(list, "Example.org.", 443), Kind::allow);
  EXPECT_EQ(kind(list, "example.org", 80), Kind::allow);
  for (const char* other : {"a.example.org", "xexample.org", "example.org.evil.com", "example.or", "org"})
    EXPECT_EQ(kind(list, other, 443), Kind::none) << other;
  EXPECT_EQ(kind(list, "example.org", 22), Kind::none);
}

TEST(Decide, ASuffixIsWhatIsBelow) {
  const List list{.rules = {suffix_rule("example.org")}};
  for (const char* below : {"a.example.org", "a.b.example.org", "A.EXAMPLE.ORG."})
    EXPECT_EQ(kind(list, below, 443), Kind::allow) << below;
  for (const char* other : {"example.org", "xexample.org", "a.xexample.org", "a.example.org.evil.com"})
    EXPECT_EQ(kind(list, other, 443), Kind::none) << other;
}

TEST(Decide, TheMostExactRuleSaysWhetherTlsIsOpened) {
  List list{.rules = {suffix_rule("example.org"), name_rule("api.example.org"), name_rule("web.test")}};
  EXPECT_FALSE(opens(list) || is_opened(list, host("a.example.org"), 443));
  list.rules[0].inspect = true;
  EXPECT_TRUE(opens(list) && is_opened(list, host("a.example.org"), 443) && decide(list, host("a.example.org"), 443).inspect);
  for (const char* other : {"api.example.org", "example.org", "web.test", "no.test", "8.8.8.8"})
    EXPECT_FALSE(is_opened(list, host(other), 443)) << other;
  EXPECT_FALSE(is_opened(list, host("a.example.org"), 80)) << "plain HTTP is not opened";
  EXPECT_FALSE(is_opened(list, host("a.example.org"), 8443)) << "not allowed";
  list.rules[2].inspect = true;
  list.rules[2].ports = {{8443, 8443}};
  EXPECT_TRUE(is_opened(list, host("web.test"), 8443));
  EXPECT_FALSE(is_opened(list, host("web.test"), 443));
  EXPECT_EQ(opened_hosts(list), (std::set<std::string>{"*.example.org", "web.test"}));
  list.rules.push_back(deny(name_rule("a.example.org")));
  EXPECT_FALSE(is_opened(list, host("a.example.org"), 443));
}

TEST(Decide, DenyWinsWhereverItStands) {
  for (const bool first : {false, true}) {
    List list{.rules = {suffix_rule("example.org"), name_rule("bad.example.org")}};
    list.rules.insert(first ? list.rules.begin() : list.rules.end(), deny(name_rule("bad.example.org")));
    const Verdict verdict = decide(list, host("bad.example.org"), 443);
    EXPECT_EQ(verdict.kind, Kind::deny);
    EXPECT_EQ(verdict.rule, first ? 0 : 2);
    EXPECT_EQ(kind(list, "bad.example.org", 9999), Kind::deny);  // every port
    EXPECT_EQ(kind(list, "good.example.org", 443), Kind::allow);
  }
  List all{.mode = Mode::open, .rules = {deny(suffix_rule("example.org"))}};
  EXPECT_EQ(kind(all, "a.example.org", 1), Kind::deny);
  EXPECT_EQ(kind(all, "example.org", 1), Kind::allow);
  all.rules[0].ports = {{25, 25}};
  EXPECT_EQ(kind(all, "a.example.org", 25), Kind::deny);
  EXPECT_EQ(kind(all, "a.example.org", 26), Kind::allow);
}

TEST(Decide, PortsAreThoseOfTheRule) {
  Rule rule = name_rule("example.org");
  rule.ports = {{22, 22}, {8000, 8010}};
  const List list{.rules = {rule}};
  for (const int port : {22, 8000, 8010})
    EXPECT_EQ(kind(list, "example.org", static_cast<std::uint16_t>(port)), Kind::allow) << port;
  for (const int port : {21, 23, 443, 80, 7999, 8011, 0, 65535})
    EXPECT_EQ(kind(list, "example.org", static_cast<std::uint16_t>(port)), Kind::none) << port;
  EXPECT_EQ(kind({.rules = {address_rule("8.8.8.8", 32, {})}}, "8.8.8.8", 443), Kind::none);
}

TEST(Decide, TheMostExactRuleSaysHow) {
  Rule wide = suffix_rule("org"), nearer = suffix_rule("example.org"), exact = name_rule("a.example.org");
  wide.private_ = true;
  nearer.read_only = true;
  exact.sni = Sni::optional;
  for (const List& list : {List{.rules = {wide, nearer, exact}}, List{.rules = {exact, nearer, wide}}}) {
    const Verdict verdict = decide(list, host("a.example.org"), 443);
    EXPECT_TRUE(verdict.sni == Sni::optional && !verdict.read_only && !verdict.private_);
    EXPECT_TRUE(decide(list, host("b.example.org"), 443).read_only);
    EXPECT_TRUE(decide(list, host("c.org"), 443).private_);
  }
}

TEST(Decide, ARuleThatIsAnAlarmIsTheOneThatDenies) {
  Rule bait = deny(name_rule("bait.example.org"));
  bait.alarm = true;
  const Rule wide = deny(suffix_rule("example.org"));
  for (const List& list :
       {List{.rules = {wide, bait}}, List{.rules = {bait, wide}}, List{.mode = Mode::open, .rules = {wide, bait, wide}}}) {
    const Verdict verdict = decide(list, host("bait.example.org"), 443);
    EXPECT_TRUE(verdict.kind == Kind::deny && verdict.alarm && list.rules[static_cast<std::size_t>(verdict.rule)].alarm);
    EXPECT_TRUE(decide_name(list, {"bait.example.org"}).alarm);
    const Verdict other = decide(list, host("other.example.org"), 443);
    EXPECT_TRUE(other.kind == Kind::deny && !other.alarm);
  }
  // Behind a rule that denies, none that allows counts.
  const List list{.rules = {wide, name_rule("other.example.org")}};
  EXPECT_EQ(decide(list, host("other.example.org"), 443).kind, Kind::deny);
  EXPECT_EQ(decide(list, host("other.example.org"), 443).rule, 0);
}

TEST(Decide, ANameHasAnAddressIfSomePortIsPermitted) {
  Rule ssh = name_rule("git.example.org");
  ssh.ports = {{22, 22}};
  Rule mail = deny(name_rule("mail.example.org"));
  mail.ports = {{25, 25}};
  const List list{.rules = {ssh, mail, deny(name_rule("bad.example.org")), suffix_rule("example.org")}};
  EXPECT_EQ(decide_name(list, {"git.example.org"}).kind, Kind::allow);
  EXPECT_EQ(decide_name(list, {"mail.example.org"}).kind, Kind::allow);
  EXPECT_EQ(decide_name(list, {"bad.example.org"}).kind, Kind::deny);
  EXPECT_EQ(decide_name(list, {"other.com"}).kind, Kind::none);
  EXPECT_EQ(decide_name({.mode = Mode::monitor}, {"other.com"}).kind, Kind::allow);
}

TEST(AddressPermitted, NamesLeadToGlobalAddresses) {
  const List list{.rules = {name_rule("example.org")}};
  EXPECT_TRUE(reaches(list, "example.org", "93.184.216.34", 443));
  EXPECT_TRUE(reaches(list, "example.org", "2606:2800::1", 443));
  for (const char* to :
       {"10.0.0.1", "100.64.0.1", "127.0.0.1", "::1", "169.254.169.254", "169.254.1.1", "fd00::1", "fe80::1", "0.0.0.0",
        "::", "224.0.0.1", "ff02::1", "198.18.0.1", "255.255.255.255", "64:ff9b::8.8.8.8", "2002:808:808::1", "::ffff:10.0.0.1"})
    EXPECT_FALSE(reaches(list, "example.org", to, 443)) << to;
  EXPECT_FALSE(reaches(list, "example.org", "93.184.216.34", 22));
  EXPECT_FALSE(reaches(list, "other.org", "93.184.216.34", 443));
}

TEST(AddressPermitted, APrivateNameStillDoesNotLeadToTheMachineItself) {
  Rule rule = name_rule("intern.example.org");
  rule.private_ = true;
  const List list{.rules = {rule}};
  for (const char* to : {"10.0.0.1", "192.168.1.1", "100.64.0.1", "fd00::1", "8.8.8.8"})
    EXPECT_TRUE(reaches(list, "intern.example.org", to, 443)) << to;
  for (const char* to :
       {"127.0.0.1", "169.254.169.254", "100.100.100.200", "fd00:ec2::254", "fe80::1", "0.0.0.0", "64:ff9b::127.0.0.1"})
    EXPECT_FALSE(reaches(list, "intern.example.org", to, 443)) << to;
}

TEST(AddressPermitted, AnAddressRulePermitsWhatItNames) {
  const List list{.rules = {address_rule("10.1.0.0", 16, {{5432, 5432}}), address_rule("169.254.0.0", 16, {{80, 80}}),
                            address_rule("169.254.170.2", 32, {{80, 80}}), address_rule("127.0.0.0", 8, {{80, 80}}),
                            address_rule("0.0.0.0", 0, {{53, 53}})}};
  EXPECT_TRUE(reaches(list, "10.1.2.3", "10.1.2.3", 5432));
  EXPECT_TRUE(reaches(list, "::ffff:10.1.2.3", "10.1.2.3", 5432));
  EXPECT_FALSE(reaches(list, "10.1.2.3", "10.1.2.4", 5432));  // not what was asked
  EXPECT_FALSE(reaches(list, "10.2.2.3", "10.2.2.3", 5432));
  EXPECT_FALSE(reaches(list, "10.1.2.3", "10.1.2.3", 443));
  EXPECT_TRUE(reaches(list, "169.254.170.2", "169.254.170.2", 80));       // named exactly
  EXPECT_FALSE(reaches(list, "169.254.169.254", "169.254.169.254", 80));  // within a block only
  EXPECT_FALSE(reaches(list, "127.0.0.1", "127.0.0.1", 80));
  EXPECT_TRUE(reaches(list, "8.8.8.8", "8.8.8.8", 53));
  EXPECT_FALSE(reaches(list, "::1", "::1", 53));
  EXPECT_FALSE(reaches(list, "2606:2800::1", "2606:2800::1", 53));  // of the other family
}

TEST(AddressPermitted, ADeniedAddressIsDeniedBehindAnyName) {
  Rule intern = suffix_rule("example.org");
  intern.private_ = true;
  const List list{.rules = {intern, deny(address_rule("10.66.0.0", 16, {})), deny(address_rule("93.184.216.34", 32, {}))}};
  EXPECT_TRUE(reaches(list, "a.example.org", "10.67.0.1", 443));
  EXPECT_FALSE(reaches(list, "a.example.org", "10.66.0.1", 443));
  EXPECT_FALSE(reaches(list, "a.example.org", "64:ff9b::10.66.0.1", 443));
  EXPECT_TRUE(reaches(list, "a.example.org", "64:ff9b::10.67.0.1", 443));
  EXPECT_FALSE(reaches(list, "a.example.org", "93.184.216.34", 443));
  EXPECT_EQ(kind(list, "2002:a42:1::1", 443), Kind::deny);
}

TEST(AddressPermitted, MonitorAndOpenMeanGlobalAddresses) {
  for (const Mode mode : {Mode::monitor, Mode::open}) {
    const List list{.mode = mode};
    EXPECT_TRUE(reaches(list, "example.org", "8.8.8.8", 12345));
    EXPECT_TRUE(reaches(list, "8.8.8.8", "8.8.8.8", 12345));
    for (const char* to : {"10.0.0.1", "169.254.169.254", "127.0.0.1", "::1", "2002:808:808::1"}) {
      EXPECT_FALSE(reaches(list, to, to, 443)) << to;
      EXPECT_FALSE(reaches(list, "example.org", to, 443)) << to;
    }
  }
}

TEST(AddressPermitted, AVerdictOfAnotherListPermitsNothing) {
  EXPECT_FALSE(address_permitted({}, {Kind::allow, 3}, host("example.org"), address("8.8.8.8"), 443));
  EXPECT_FALSE(address_permitted({}, {Kind::none, -1}, host("example.org"), address("8.8.8.8"), 443));
}

List sample() {
  Rule rule = suffix_rule("example.org");
  rule.ports = {{443, 443}, {8000, 9000}};
  rule.private_ = rule.read_only = true;
  rule.sni = Sni::optional;
  rule.why = "h\xc3\xa9, because";
  Rule bait = deny(address_rule("10.0.0.0", 8, {}));
  bait.alarm = true;
  Rule seen = name_rule("a.b");
  seen.inspect = true;
  seen.paths = {"/api/", "/repos/acme"};
  return {.mode = Mode::monitor,
          .rules = {rule, bait, address_rule("2a00::", 17, {{1, 65535}}), seen},
          .limits = {.connections = 7, .connections_per_second = 8, .bytes_per_second = 1ULL << 40, .idle_seconds = 9}};
}

TEST(ListBytes, ComeBackAsTheyWere) {
  const List list = sample();
  const auto read = read_list(list_bytes(list));
  ASSERT_TRUE(read);
  EXPECT_EQ(list_bytes(*read), list_bytes(list));
  EXPECT_EQ(read->mode, Mode::monitor);
  ASSERT_EQ(read->rules.size(), 4U);
  const Rule& rule = read->rules[0];
  EXPECT_TRUE(rule.private_ && rule.read_only && rule.sni == Sni::optional && !rule.deny);
  EXPECT_EQ(rule.suffix, "example.org");
  EXPECT_EQ(rule.ports, list.rules[0].ports);
  EXPECT_EQ(rule.why, list.rules[0].why);
  EXPECT_TRUE(read->rules[1].deny && read->rules[1].alarm && !rule.alarm);
  EXPECT_EQ(read->rules[1].address, address("10.0.0.0"));
  EXPECT_EQ(read->rules[2].prefix, 17U);
  EXPECT_TRUE(read->rules[3].inspect && !rule.inspect && rule.paths.empty());
  EXPECT_EQ(read->rules[3].paths, list.rules[3].paths);
  EXPECT_EQ(read->limits.bytes_per_second, 1ULL << 40);
  EXPECT_EQ(read->limits.idle_seconds, 9U);
}

TEST(ListBytes, NoPartOfAListIsAList) {
  const std::string bytes = list_bytes(sample());
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(read_list(bytes.substr(0, size))) << size;
  EXPECT_FALSE(read_list(bytes + '\0'));
}

TEST(ListBytes, OnlyCanonicalRulesAreRead) {
  const auto refused = [](Rule rule) { return !read_list(list_bytes({.rules = {std::move(rule)}})); };
  for (const char* name : {"", "Example.org", "example.org.", "1.2.3.4", "a b", "a..b", "::1"}) {
    EXPECT_TRUE(refused(name_rule(name))) << name;
    EXPECT_TRUE(refused(suffix_rule(name))) << name;
  }
  EXPECT_TRUE(refused(address_rule("10.0.0.1", 8, {})));
  EXPECT_TRUE(refused(address_rule("10.0.0.0", 33, {})));
  EXPECT_TRUE(refused(address_rule("2a00::", 129, {})));
  Rule odd = address_rule("10.0.0.0", 8, {});
  odd.address->bytes[9] = 1;
  EXPECT_TRUE(refused(odd));
  for (const Ports ports : {Ports{0, 1}, Ports{2, 1}}) {
    Rule rule = name_rule("a.b");
    rule.ports = {ports};
    EXPECT_TRUE(refused(rule));
  }
  Rule many = name_rule("a.b");
  many.ports.assign(kMaxRulePorts + 1, {1, 1});
  EXPECT_TRUE(refused(many));
  Rule why = name_rule("a.b");
  why.why = "two\nlines";
  EXPECT_TRUE(refused(why));
  why.why.assign(kMaxRuleWhy + 1, 'a');
  EXPECT_TRUE(refused(why));
}

TEST(ListBytes, WhatCouldNotBeInspectedIsRefused) {
  const auto refused = [](Rule rule, auto change) {
    change(rule);
    return !read_list(list_bytes({.rules = {std::move(rule)}}));
  };
  const auto inspect = [](Rule& rule) { rule.inspect = true; };
  const auto paths = [](Rule& rule) { rule.paths = {"/api"}; };
  EXPECT_FALSE(refused(name_rule("a.b"), inspect) || refused(suffix_rule("a.b"), paths));
  for (const Rule& other : {deny(name_rule("a.b")), address_rule("10.0.0.0", 8, {{443, 443}})})
    EXPECT_TRUE(refused(other, inspect) && refused(other, paths));
  EXPECT_TRUE(refused(name_rule("a.b"), [](Rule& rule) { rule.inspect = true, rule.sni = Sni::optional; }));
  for (const char* path : {"", "api", "/a/../b", "/a?b", "/%41", "/a\nb"})
    EXPECT_TRUE(refused(name_rule("a.b"), [path](Rule& rule) { rule.paths = {path}; })) << path;
  EXPECT_TRUE(refused(name_rule("a.b"), [](Rule& rule) { rule.paths.assign(kMaxRulePaths + 1, "/a"); }));
}

TEST(ListBytes, ListsOfTooManyRulesOrBytesAreRefused) {
  List list;
  list.rules.assign(kMaxRules, name_rule("a.b"));
  EXPECT_TRUE(read_list(list_bytes(list)));
  list.rules.push_back(name_rule("a.b"));
  EXPECT_FALSE(read_list(list_bytes(list)));
  list.rules.assign(300, name_rule("a.b"));
  for (Rule& rule : list.rules) rule.why.assign(1000, 'w');
  EXPECT_FALSE(read_list(list_bytes(list)));
}

// Whatever the bytes are, reading them ends; and bytes that are a list have no other form.
TEST(ListBytes, AnyBytesAreAListOrNone) {
  std::mt19937 random(20);
  const std::string whole = list_bytes(sample());
  int read_any = 0;
  for (int round = 0; round < 40000; ++round) {
    std::string bytes = whole;
    for (unsigned changes = random() % 4 + 1; changes > 0; --changes) {
      const std::size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
          break;
        case 2:
          bytes.erase(at, random() % 8 + 1);
          break;
        case 3:
          bytes.insert(at, random() % 8 + 1, static_cast<char>(random()));
          break;
      }
      if (bytes.empty()) bytes = "x";
    }
    const auto list = read_list(bytes);
    if (!list) continue;
    ++read_any;
    ASSERT_EQ(list_bytes(*list), bytes);
    (void)decide(*list, host("a.example.org"), 443);
    (void)reaches(*list, "10.0.0.1", "10.0.0.1", 443);
  }
  EXPECT_GT(read_any, 1000);  // else the test tries nothing
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    const auto list = read_list("egress4\n" + bytes);
    if (list) ASSERT_EQ(list_bytes(*list), "egress4\n" + bytes);
  }
}

TEST(Bindings, AreBytesAndBack) {
  Binding binding{.name = "token", .placeholder = "placeholder-0001", .host = "api.test", .port = 8443, .field = "authorization"};
  binding.methods = {"GET", "POST"};
  binding.path = "/repos/one";
  binding.file = "/etc/caisson/secrets/token";
  binding.env = "TOKEN";
  binding.why = "issues are read";
  const List list{.rules = {name_rule("api.test")}, .bindings = {binding}, .trust = "/run/caisson/trust/ca-certificates.crt"};
  const auto read = read_list(list_bytes(list));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->bindings, list.bindings);
  EXPECT_EQ(read->trust, list.trust);
  EXPECT_FALSE(read_list(list_bytes({.bindings = {binding}, .trust = "relative"})));
  EXPECT_TRUE(is_opened(*read, host("api.test"), 8443) && opens(*read));
  EXPECT_FALSE(is_opened(*read, host("api.test"), 443) || is_opened(*read, host("a.api.test"), 8443) ||
               is_opened(*read, host("8.8.8.8"), 8443));
}

TEST(Bindings, ThatAreNoneMakeNoList) {
  const Binding good{.name = "token", .placeholder = "placeholder-0001", .host = "api.test", .field = "x-api-key", .file = "/s"};
  ASSERT_EQ(fault_of(good), "");
  const auto with = [&good](auto change) {
    Binding one = good;
    change(one);
    EXPECT_NE(fault_of(one), "");
    EXPECT_FALSE(read_list(list_bytes({.bindings = {one}})));
  };
  with([](Binding& one) { one.name = "a \"name\""; });
  with([](Binding& one) { one.placeholder = "short"; });
  with([](Binding& one) { one.placeholder = "with a space in it"; });
  with([](Binding& one) { one.placeholder = "with:a:colon:in:it"; });
  with([](Binding& one) { one.host = "API.test"; });
  with([](Binding& one) { one.host = "8.8.8.8"; });
  with([](Binding& one) { one.port = 0; });
  with([](Binding& one) { one.methods = {"get"}; });
  with([](Binding& one) { one.path = "/a%2e"; });
  with([](Binding& one) { one.path = "a"; });
  for (const char* field : {"", "Authorization", "host", "content-length", "transfer-encoding", "a:b"})
    with([field](Binding& one) { one.field = field; });
  with([](Binding& one) { one.file = "secrets"; });
  with([](Binding& one) { one.command = "print it"; });
  with([](Binding& one) { one.file = "", one.command = "two\nlines"; });
  with([](Binding& one) { one.file = "", one.command = std::string(kMaxCommand + 1, 'x'); });
  with([](Binding& one) { one.refresh_seconds = kLeastRefresh - 1; });
  with([](Binding& one) { one.refresh_seconds = kMostRefresh + 1; });
}

}  // namespace
}  // namespace caisson::egress
