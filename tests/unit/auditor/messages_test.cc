// The auditor's end of the protocol.
#include "launcher/auditor/messages.h"

#include <cstring>

#include <gtest/gtest.h>

namespace caisson::auditor {
namespace {

TEST(Messages, AnOrderIsReadAsItWasWritten) {
  const std::string message = part(Type::watch, "s-0123456789abcdef", "\n1 write seccomp/x\n");
  const auto order = parse_order(message, 1);
  ASSERT_TRUE(order);
  EXPECT_EQ(order->session, "s-0123456789abcdef");
  EXPECT_EQ(order->text, "\n1 write seccomp/x\n");
}

TEST(Messages, AWatchHasOneDescriptorAndAReleaseNone) {
  EXPECT_FALSE(parse_order(part(Type::watch, "s", ""), 0));
  EXPECT_FALSE(parse_order(part(Type::watch, "s", ""), 2));
  EXPECT_FALSE(parse_order(part(Type::release, "s", ""), 1));
  EXPECT_TRUE(parse_order(part(Type::release, "s", ""), 0));
}

TEST(Messages, WhatIsNotAnOrderIsRefused) {
  const std::string good = part(Type::release, "s", "text");
  EXPECT_FALSE(parse_order("", 0));
  EXPECT_FALSE(parse_order(good.substr(0, sizeof(Head) - 1), 0));
  EXPECT_FALSE(parse_order(good.substr(0, good.size() - 1), 0)) << "shorter than its head says";
  EXPECT_FALSE(parse_order(good + "x", 0)) << "longer";
  EXPECT_FALSE(parse_order(part(Type::denial, "s", ""), 0)) << "only we send these";
  std::string unterminated = good;
  std::memset(unterminated.data() + offsetof(Head, session), 'a', sizeof(Head::session));
  EXPECT_FALSE(parse_order(unterminated, 0));
}

TEST(Outbox, SendsWholePartsInOrder) {
  Outbox box;
  for (int i = 0; i < 20; ++i) box.put("<" + std::to_string(i) + ">");
  std::string all = box.next();
  EXPECT_EQ(all.find("<16>"), std::string::npos) << "at most kMostParts a message";
  EXPECT_EQ(box.next(), all) << "until it is taken";
  box.taken();
  all += box.next();
  box.taken();
  std::string wanted;
  for (int i = 0; i < 20; ++i) wanted += "<" + std::to_string(i) + ">";
  EXPECT_EQ(all, wanted);
  EXPECT_TRUE(box.empty());
}

TEST(Outbox, AMessageIsNeverLongerThanItMayBe) {
  Outbox box;
  for (int i = 0; i < 5; ++i) box.put(std::string(kMaxText, 'x'));
  while (!box.empty()) {
    const std::string message = box.next();
    EXPECT_LE(message.size(), kMaxMessage);
    EXPECT_EQ(message.size() % kMaxText, 0U);
    ASSERT_FALSE(message.empty());
    box.taken();
  }
}

}  // namespace
}  // namespace caisson::auditor
