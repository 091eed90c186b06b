#include "agent/frames/file_protocol.h"

#include <gtest/gtest.h>

namespace caisson::frames {
namespace {

TEST(FileProtocol, EveryOperationIsFoundByItsName) {
  for (const FileOpRow& row : kFileOps) {
    EXPECT_EQ(file_op(row.name), row.op);
    EXPECT_EQ(file_op_name(row.op), row.name);
  }
  EXPECT_EQ(file_op(""), std::nullopt);
  EXPECT_EQ(file_op("reads"), std::nullopt);
}

TEST(FileProtocol, WhatAnOperationDoesNotTakeIsNamed) {
  EXPECT_EQ(unknown_member(FileOp::read, {{"id", 1}, {"op", "read"}, {"path", "/x"}, {"start", 1}, {"end", 2}}), std::nullopt);
  EXPECT_EQ(unknown_member(FileOp::read, {{"path", "/x"}, {"append", true}}), "append");
  EXPECT_EQ(unknown_member(FileOp::watch_stop, {{"watch", "w"}}), "watch") << "the start of a member's name is not the member";
  EXPECT_EQ(unknown_member(FileOp::watch_stop, {{"", 1}}), "");
}

TEST(FileProtocol, ATableWithoutARowIsNoticed) {
  std::vector<FileOpRow> rows(kFileOps.begin(), kFileOps.end());
  EXPECT_TRUE(covers_file_ops(rows));
  std::swap(rows[0], rows[1]);
  EXPECT_FALSE(covers_file_ops(rows));
  std::swap(rows[0], rows[1]);
  rows.pop_back();
  EXPECT_FALSE(covers_file_ops(rows));
}

}  // namespace
}  // namespace caisson::frames
