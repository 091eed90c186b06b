#include "agent/proxy/pool.h"

#include <gtest/gtest.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/write.hpp>

namespace caisson::proxy {
namespace {

using asio::ip::tcp;

const Pool::Place kPlace{"w", 80};

class PoolTest : public testing::Test {
 protected:
  struct Pair {
    tcp::socket ours, theirs;
  };
  Pair pair() {
    tcp::acceptor acceptor(io_, {asio::ip::make_address("127.0.0.1"), 0});
    tcp::socket ours(io_);
    ours.connect(acceptor.local_endpoint());
    return {std::move(ours), acceptor.accept()};
  }
  // The server's end of a connection that is kept.
  tcp::socket kept(const Pool::Place& place = kPlace) {
    Pair made = pair();
    pool_.keep(place, std::move(made.ours), pool_.age());
    return std::move(made.theirs);
  }
  asio::io_context io_;
  Pool pool_{io_.get_executor()};
};

TEST_F(PoolTest, AConnectionIsTakenOnce) {
  const tcp::socket theirs = kept();
  EXPECT_TRUE(pool_.take(kPlace));
  EXPECT_FALSE(pool_.take(kPlace));
}

TEST_F(PoolTest, AnotherPortOrWorkspaceDoesNotGetIt) {
  const tcp::socket theirs = kept();
  EXPECT_FALSE(pool_.take({"w", 81}));
  EXPECT_FALSE(pool_.take({"x", 80}));
  EXPECT_EQ(pool_.size(), 1u);
}

TEST_F(PoolTest, WhatTheServerClosedIsNotTaken) {
  tcp::socket theirs = kept();
  theirs.close();
  EXPECT_FALSE(pool_.take(kPlace));
}

TEST_F(PoolTest, WhatTheServerWroteOnUnaskedIsNotTaken) {
  tcp::socket theirs = kept();
  asio::write(theirs, asio::buffer("HTTP/1.1 200 OK\r\n\r\n", 19));
  EXPECT_FALSE(pool_.take(kPlace));
}

TEST_F(PoolTest, WhatTheServerWroteOnBeforeIsNotKept) {
  Pair made = pair();
  asio::write(made.theirs, asio::buffer("x", 1));
  pool_.keep(kPlace, std::move(made.ours), pool_.age());
  EXPECT_EQ(pool_.size(), 0u);
}

TEST_F(PoolTest, AForgottenWorkspaceLosesItsConnectionsAlone) {
  const tcp::socket gone = kept(), stays = kept({"x", 80});
  pool_.forget("w");
  EXPECT_FALSE(pool_.take(kPlace));
  EXPECT_TRUE(pool_.take({"x", 80}));
}

TEST_F(PoolTest, AConnectionThatIsOlderThanTheEndOfAWorkspaceIsNotKept) {
  const std::uint64_t born = pool_.age();
  Pair made = pair();
  pool_.forget("w");
  pool_.keep(kPlace, std::move(made.ours), born);
  EXPECT_EQ(pool_.size(), 0u);
}

TEST_F(PoolTest, APortHasABound) {
  std::vector<tcp::socket> theirs;
  for (std::size_t i = 0; i < Pool::kOfPort + 3; ++i) theirs.push_back(kept());
  EXPECT_EQ(pool_.size(), Pool::kOfPort);
}

TEST_F(PoolTest, AnIdleOneEnds) {
  const tcp::socket theirs = kept();
  io_.run();  // there is no work once nothing is kept
  EXPECT_EQ(pool_.size(), 0u);
}

TEST_F(PoolTest, WhatIsKeptGivesWayToARequestThatWaits) {
  bool gave_way = false;
  for (int i = 0; i < 10 && !gave_way; ++i) {  // on a slow machine both may have been idle for too long
    const Pool::Waiting waiting(pool_, kPlace);
    const auto begin = Pool::PoolClock::now();
    const tcp::socket theirs = kept(), elsewhere = kept({"w", 81});
    while (pool_.size() == 2) io_.run_one();
    const bool first = !pool_.take(kPlace), second = pool_.take({"w", 81}).has_value();
    gave_way = first && second && Pool::PoolClock::now() - begin < Pool::kIdle;
  }
  EXPECT_TRUE(gave_way);
}

}  // namespace
}  // namespace caisson::proxy
