// Both ends of the connections are here; the other end says what a client would.
#include "launcher/pid1/session/clients.h"

#include "tests/unit/session/tables.h"

namespace caisson::session {
namespace {

using Role = ipc::Role;

struct ClientsTest : testing::Test {
  // The client's end, and its number here.
  std::pair<Fd, std::uint64_t> connect(Role role) {
    auto [ours, theirs] = sys::seqpacket_pair().value();
    const std::uint64_t number = clients.serve(std::move(ours), role, [this](const std::string& why) { log += "closed:" + why; });
    return {std::move(theirs), number};
  }
  static json::Value next(const Fd& client) {
    auto message = ipc::receive(client.get(), ipc::Wait::no);
    return message && *message ? (*message)->body : json::Value();
  }

  Tables tables;
  std::string log;
  Clients clients{tables.host,
                  [](ipc::Connection& c, const ipc::Connection::Request& request) {
                    c.opened();
                    c.reply(request.id, {{"heard", request.body.value("op", "")}});
                  },
                  [this](std::uint64_t, Role role) { log += role == Role::agent ? "agent gone " : "operator gone "; }};
};

TEST_F(ClientsTest, TheAgentSeesItsOwnAndAnOperatorSeesAll) {
  const auto [one, agent] = connect(Role::agent);
  const auto [other, second] = connect(Role::agent);
  const auto [control, operator_] = connect(Role::operator_);
  EXPECT_TRUE(clients.sees(agent, agent));
  EXPECT_FALSE(clients.sees(agent, second));
  EXPECT_FALSE(clients.sees(agent, operator_));
  EXPECT_TRUE(clients.sees(operator_, agent));
  EXPECT_TRUE(clients.sees(operator_, ~0ULL)) << "left by an agent that is gone";
  EXPECT_FALSE(clients.sees(operator_, 0)) << "given to nobody yet";
  EXPECT_FALSE(clients.sees(agent, 0));
}

TEST_F(ClientsTest, EachHearsItsAnswersAndAllHearEvents) {
  const auto [one, first] = connect(Role::agent);
  const auto [other, second] = connect(Role::operator_);
  ASSERT_TRUE(ipc::send(one.get(), {{"id", 1}, {"op", "hello"}}));
  tables.turn();
  EXPECT_EQ(next(one).value("heard", ""), "hello");
  EXPECT_TRUE(next(other).is_null());
  clients.tell_all({{"event", "policy_reload"}});
  EXPECT_EQ(next(one).value("event", ""), "policy_reload");
  EXPECT_EQ(next(other).value("event", ""), "policy_reload");
  clients.answer(second + 1000, 1, {{"too", "late"}});
  EXPECT_TRUE(next(other).is_null());
}

TEST_F(ClientsTest, OneThatIsDroppedIsGoneOnceAndClosedByTheLoop) {
  const auto [one, number] = connect(Role::agent);
  clients.drop(number);
  clients.drop(number);
  EXPECT_EQ(clients.find(number), nullptr);
  EXPECT_EQ(log, "agent gone ");
  tables.turn();
  EXPECT_EQ(log, "agent gone closed:");
}

TEST_F(ClientsTest, AViolationOrTheEndOfItsConnectionEndsAClient) {
  auto [one, first] = connect(Role::agent);
  ASSERT_TRUE(ipc::send(one.get(), {{"id", 1}, {"op", "no_such_operation"}}));
  tables.turn();
  EXPECT_TRUE(log.starts_with("agent gone closed:")) << log;
  EXPECT_GT(log.size(), std::string("agent gone closed:").size()) << "the violation is said";
  auto [other, second] = connect(Role::operator_);
  log.clear();
  other.reset();
  tables.turn();
  EXPECT_EQ(log, "operator gone closed:");
  EXPECT_EQ(clients.find(second), nullptr);
}

TEST_F(ClientsTest, RefusalsBeyondTheBurstAreCountedAndRecordedWithItsEnd) {
  const auto [one, number] = connect(Role::agent);
  const auto [other, second] = connect(Role::agent);
  int recorded = 0;
  for (int i = 0; i < 200; ++i) recorded += clients.record_refused(number, {{"op", "session_stat"}}) ? 1 : 0;
  EXPECT_LT(recorded, 70);
  EXPECT_GE(recorded, 64);
  EXPECT_EQ(tables.records("request_refused"), static_cast<std::size_t>(recorded));
  EXPECT_TRUE(clients.record_refused(second, {{"op", "session_stat"}})) << "another client's are not meant";
  clients.drop(number);
  EXPECT_EQ(tables.records("dropped"), 1U);
  EXPECT_FALSE(clients.record_refused(number, {{"op", "session_stat"}})) << "it is not there";
}

}  // namespace
}  // namespace caisson::session
