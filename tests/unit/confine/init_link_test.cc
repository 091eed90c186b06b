// What the launcher takes from the other end of a session's socket, and what it refuses.
#include "launcher/common/confine/init_link.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "launcher/common/base/scm.h"
#include "launcher/common/base/sys.h"

namespace caisson::confine {
namespace {

class Link : public testing::Test {
 protected:
  void SetUp() override {
    auto pair = sys::seqpacket_pair();
    ASSERT_TRUE(pair);
    theirs_ = std::move(pair->second);
    link_.emplace(std::move(pair->first));
  }
  Result<std::optional<InitEvent>> after(const void* bytes, std::size_t size, std::vector<int> fds = {}) {
    EXPECT_EQ(scm::send(theirs_.get(), bytes, size, fds.data(), fds.size()), static_cast<ssize_t>(size));
    return link_->receive();
  }
  void refused(const Result<std::optional<InitEvent>>& event) {
    ASSERT_FALSE(event);
    EXPECT_EQ(event.error().code, Code::protocol);
  }
  Fd theirs_;
  std::optional<InitLink> link_;
};

TEST_F(Link, TakesStepsWithWhatWasMade) {
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Steps steps{.records = {{Step::root, kNoEntry, 0, 5, 0}, {Step::done, kNoEntry, 0, 6, 0}}};
  const auto event = after(&steps, Steps::size(2), {null.get(), null.get()});
  ASSERT_TRUE(event && *event);
  ASSERT_EQ((*event)->steps.size(), 2U);
  EXPECT_EQ((*event)->steps[1].step, Step::done);
  EXPECT_EQ((*event)->made.size(), 2U);
}

TEST_F(Link, RefusesStepsOfAnotherSizeOrWithoutAName) {
  Steps steps{.records = {{Step::root, kNoEntry, 0, 5, 0}}};
  for (const std::size_t size : {sizeof steps.type, Steps::size(0), Steps::size(1) - 1, Steps::size(1) + 1})
    refused(after(&steps, size));
  steps.records[0].step = static_cast<Step>(kStepCount);
  refused(after(&steps, Steps::size(1)));
  char much[sizeof(Steps) + 64] = {};
  std::memcpy(much, &steps.type, sizeof steps.type);
  refused(after(much, sizeof much));
}

TEST_F(Link, RefusesADescriptorWithAReplyThatHasNone) {
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (const init::Type type : {init::Type::ready, init::Type::exited, init::Type::probed}) {
    const init::Reply reply{.type = type};
    refused(after(&reply, sizeof reply, {null.get()}));
  }
  const init::Reply listener{.type = init::Type::listener};
  refused(after(&listener, sizeof listener, {null.get(), null.get()}));
  EXPECT_TRUE(after(&listener, sizeof listener, {null.get()}));
}

// The kernel tells first of a request that nobody read.
TEST_F(Link, HearsWhatWasSaidBeforeAnEndThatLeftARequestUnread) {
  ASSERT_TRUE(link_->go(1));
  const Steps steps{.records = {{Step::exec, kNoEntry, ENOSPC, 5, 0}}};
  ASSERT_EQ(scm::send(theirs_.get(), &steps, Steps::size(1), nullptr, 0), static_cast<ssize_t>(Steps::size(1)));
  theirs_.reset();
  const auto event = link_->receive();
  ASSERT_TRUE(event && *event);
  ASSERT_EQ((*event)->steps.size(), 1U);
  EXPECT_EQ((*event)->steps[0].error, ENOSPC);
  const auto after = link_->receive();
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().code, Code::not_found);
}

TEST_F(Link, SaysWhenTheOtherEndIsGone) {
  ASSERT_TRUE(link_->receive());
  theirs_.reset();
  const auto event = link_->receive();
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().code, Code::not_found);
}

}  // namespace
}  // namespace caisson::confine
