// The configuration of MCP servers, and streams of messages: what is refused, and what is kept.
#include <gtest/gtest.h>

#include "agent/http/coro.h"
#include "agent/services/mcp/message_stream.h"
#include "agent/services/mcp/server_config.h"

namespace caisson::services {
namespace {

std::string error_of(const std::string& server) {
  const auto read = parse_servers(R"({"mcpServers": {"one": )" + server + "}}");
  return read ? "" : read.error().what;
}

TEST(McpServers, AreReadAsOtherProgramsWriteThem) {
  const auto read = parse_servers(R"({"mcpServers": {
    "time": {"command": "mcp-server-time", "args": ["--local-timezone", "UTC"], "env": {"A": "b"}, "description": "x"},
    "web": {"type": "http", "url": "https://mcp.example.org/mcp", "domain": "mcp-web", "headers": {"X-A": "b"}},
    "old": {"command": "x", "disabled": true}}})");
  ASSERT_TRUE(read) << read.error().what;
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ(read->at(0).argv, (std::vector<std::string>{"mcp-server-time", "--local-timezone", "UTC"}));
  EXPECT_EQ(read->at(0).prefix, "time_");
  EXPECT_EQ(read->at(0).domain, "mcp");
  EXPECT_EQ(read->at(1).url, "https://mcp.example.org/mcp");
}

TEST(McpServers, WhatMakesNoSenseIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"command": "x", "blok": []})", "there is no member 'blok'"},
      {R"({})", "either a command or a url"},
      {R"({"args": ["x"]})", "args without a command"},
      {R"({"command": "x", "url": "https://x"})", "either a command or a url"},
      {R"({"url": "https://x"})", "a url needs a domain"},
      {R"({"url": "ftp://x", "domain": "mcp-x"})", "https:// or http://"},
      {R"({"command": "x", "domain": "bash"})", "begin with mcp-"},
      {R"({"command": "x", "type": "sse"})", "type must be"},
      {R"({"command": "x", "prefix": "a b"})", "prefix"},
      {R"({"command": "x", "pin": "ABC"})", "pin"},
      {R"({"command": "x", "timeout": 0})", "seconds"},
      {R"({"command": "x", "envFiles": {"T": "/etc/shadow"}})", "below /etc/caisson/mcp"},
      {R"({"command": "x", "envFiles": {"T": "/etc/caisson/mcp/../auth/keys"}})", "below /etc/caisson/mcp"},
      {R"({"command": "x", "rules": [{"allow": []}]})", "identities"},
      {R"({"command": "x", "rules": [{"identities": ["a"], "alow": []}]})", "'alow'"},
      {R"({"command": 7})", "must be text"},
      {R"([])", "is an object"},
  };
  for (const auto& [server, text] : cases)
    EXPECT_NE(error_of(server).find(text), std::string::npos) << server << error_of(server);
  EXPECT_FALSE(parse_servers(R"({"mcpServers": {"a b": {"command": "x"}}})"));
  EXPECT_FALSE(parse_servers("[]"));
  EXPECT_FALSE(parse_servers("{"));
}

TEST(McpServers, RulesDecideByCredentialAndTool) {
  const auto read = parse_servers(R"({"s": {"command": "x", "allow": ["get_*", "put"], "block": ["get_secret*"],
    "rules": [{"identities": ["ci-*"], "allow": ["get_*"]}, {"identities": ["admin"], "block": ["get_x"]}]}})");
  ASSERT_TRUE(read) << read.error().what;
  const ServerConfig& s = read->front();
  EXPECT_TRUE(s.permits("ci-1"));
  EXPECT_FALSE(s.permits("guest"));
  EXPECT_TRUE(s.permits("ci-1", "get_a"));
  EXPECT_FALSE(s.permits("ci-1", "put"));
  EXPECT_TRUE(s.permits("admin", "put"));
  EXPECT_FALSE(s.permits("admin", "get_x"));
  EXPECT_FALSE(s.permits("admin", "get_secrets"));
  EXPECT_FALSE(s.permits("admin", "other"));
  EXPECT_FALSE(s.permits("guest", "get_a"));
}

TEST(McpServers, PatternsTakeLinearTime) {
  const std::string pattern = std::string(200, '*') + "b", name(4000, 'a');
  EXPECT_FALSE(matches({pattern, "*a*a*a*a*a*a*a*a*b"}, name));
  EXPECT_TRUE(matches({"*"}, ""));
  EXPECT_TRUE(matches({"a*c"}, "abc"));
  EXPECT_FALSE(matches({"a*c"}, "abd"));
}

TEST(MessageStream, ForgetsTheOldestAndNeverTheAnswer) {
  asio::io_context io;
  MessageStream stream(io.get_executor(), "1");
  for (int i = 0; i < 5000; ++i) stream.push(i);
  ASSERT_NE(stream.after(0), nullptr);
  EXPECT_GT(stream.after(0)->number, 1U);
  EXPECT_EQ(stream.last(), 5000U);
  stream.finish(std::string(3 * MessageStream::kMostBytes, 'x'));
  EXPECT_TRUE(stream.over());
  EXPECT_EQ(stream.after(0)->number, 5001U);
  stream.push("late");
  EXPECT_EQ(stream.last(), 5001U);
}

}  // namespace
}  // namespace caisson::services
