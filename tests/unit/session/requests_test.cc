// Members of requests, and the client that an operation is for, by the operation's row.
#include "launcher/pid1/session/requests.h"

#include <gtest/gtest.h>

namespace caisson::session {
namespace {

std::string refusal(const char* op, json::Value body, ipc::Role role = ipc::Role::agent) {
  body.update({{"id", 1}, {"op", op}});
  const Status fit = fits(body, *ipc::find_op(op), role);
  return fit ? "" : std::string(code_name(fit.error().code)) + " " + fit.error().text();
}

TEST(Requests, MembersAreThoseOfTheRow) {
  EXPECT_EQ(refusal("exec_signal", {{"session", "s"}, {"exec", "e"}, {"signal", "SIGINT"}}), "");
  EXPECT_EQ(refusal("exec_release", {{"session", "s"}, {"exec", "e"}}), "") << "the end is optional";
  EXPECT_EQ(refusal("exec_signal", {{"session", "s"}, {"exec", "e"}}), "invalid_argument 'signal' is missing");
  EXPECT_EQ(refusal("session_stat", {{"session", "s"}, {"force", true}}), "invalid_argument unknown member 'force'");
  EXPECT_EQ(refusal("session_stat", {{"session", "s"}, {"sess", "s"}}), "invalid_argument unknown member 'sess'");
}

TEST(Requests, AnOperationWithoutMembersTakesNone) {
  EXPECT_EQ(refusal("workspace_list", json::Value::object()), "");
  EXPECT_EQ(refusal("workspace_list", {{"", 1}}), "invalid_argument unknown member ''");
  EXPECT_EQ(refusal("policy_reload", {{"force", true}}), "invalid_argument unknown member 'force'");
}

TEST(Requests, AnOperationForOneClientIsRefusedToTheOther) {
  const std::string refused = "permission_denied this operation is not for this client";
  EXPECT_EQ(refusal("agent_restart", json::Value::object()), refused);
  EXPECT_EQ(refusal("agent_restart", json::Value::object(), ipc::Role::operator_), "");
  EXPECT_EQ(refusal("session_adopt", json::Value::object()), "");
  EXPECT_EQ(refusal("session_adopt", json::Value::object(), ipc::Role::operator_), refused);
}

TEST(Requests, EveryMemberIsNamedOnceInItsRow) {
  for (const ipc::OpRow& row : ipc::kOps) {
    json::Value all = json::Value::object();
    for (std::ptrdiff_t i = 0; !row.members.empty() && i < count_words(row.members); ++i) {
      std::string_view name = word(row.members, static_cast<std::size_t>(i));
      if (name.starts_with('!')) name.remove_prefix(1);
      EXPECT_FALSE(name.empty() || all.contains(name)) << row.name;
      all[std::string(name)] = 1;
    }
    EXPECT_TRUE(fits(all, row, row.only.value_or(ipc::Role::agent))) << row.name;
  }
}

}  // namespace
}  // namespace caisson::session
