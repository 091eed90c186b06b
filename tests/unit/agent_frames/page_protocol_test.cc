#include "agent/frames/page_protocol.h"

#include <gtest/gtest.h>

#include <vector>

#include "launcher/common/base/word.h"

namespace caisson::frames {
namespace {

TEST(PageProtocol, EveryOperationIsFoundByItsName) {
  for (const PageOpRow& row : kPageOps) {
    EXPECT_EQ(page_op(row.name), row.op);
    EXPECT_EQ(page_op_name(row.op), row.name);
  }
  EXPECT_EQ(page_op(""), std::nullopt);
  EXPECT_EQ(page_op("clicks"), std::nullopt);
}

TEST(PageProtocol, NoMemberHasANameThatEveryFrameHas) {
  for (const PageOpRow& row : kPageOps)
    for (std::ptrdiff_t i = 0; i < count_words(row.members); ++i)
      for (const std::string_view taken : {"id", "op", "timeout_ms", "bytes"})
        EXPECT_NE(word(row.members, static_cast<std::size_t>(i)), taken) << row.name;
}

TEST(PageProtocol, ATableWithoutARowIsNoticed) {
  std::vector<PageOpRow> rows(kPageOps.begin(), kPageOps.end());
  EXPECT_TRUE(covers_page_ops(rows));
  std::swap(rows[0], rows[1]);
  EXPECT_FALSE(covers_page_ops(rows));
  std::swap(rows[0], rows[1]);
  rows.pop_back();
  EXPECT_FALSE(covers_page_ops(rows));
}

}  // namespace
}  // namespace caisson::frames
