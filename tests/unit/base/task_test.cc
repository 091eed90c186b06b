// Tasks: they begin when they are called, wait in the loop, and let go of what they hold when their owner goes.
#include "launcher/common/base/task.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <list>
#include <vector>

#include "launcher/common/base/result.h"
#include "launcher/common/base/sys.h"

namespace caisson {
namespace {

constexpr std::int64_t kLong = 20'000'000;

class TaskTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = Loop::create({SIGUSR1});
    ASSERT_TRUE(made) << made.error().text();
    loop_ = std::move(*made);
    auto pipe = sys::pipe();
    ASSERT_TRUE(pipe);
    from_ = std::move(pipe->first), to_ = std::move(pipe->second);
  }
  template <class T>
  void run(const Task<T>& task) {
    ASSERT_TRUE(loop_->run([&task] { return task.done(); }));
  }
  std::unique_ptr<Loop> loop_;
  Fd from_, to_;
};

struct Held {
  int& count;
  explicit Held(int& c) : count(c) { ++count; }
  ~Held() { --count; }
};

Task<Result<int>> answer(int number) { co_return number; }

Task<Result<int>> read_one(Loop& loop, int fd, std::int64_t deadline_us, int& held) {
  const Held one(held);
  const bool ready = co_await Readable(loop, fd, deadline_us);
  if (!ready) co_return fail(Code::timeout, "nothing came");
  char byte = 0;
  if (::read(fd, &byte, 1) != 1) co_return fail(Code::io, "closed");
  CO_TRY_ASSIGN(const int more, co_await answer(1));
  co_return byte + more;
}

TEST_F(TaskTest, EndsAtOnceWhereNothingIsWaitedFor) {
  auto task = answer(7);
  ASSERT_TRUE(task.done());
  EXPECT_EQ(*task.take(), 7);
}

TEST_F(TaskTest, GoesOnWhenThereIsSomethingToRead) {
  int held = 0;
  auto task = read_one(*loop_, from_.get(), sys::monotonic_us() + kLong, held);
  EXPECT_FALSE(task.done());
  EXPECT_EQ(held, 1);
  ASSERT_EQ(::write(to_.get(), "a", 1), 1);
  run(task);
  EXPECT_EQ(*task.take(), 'a' + 1);
  EXPECT_EQ(held, 0);
  ASSERT_TRUE(loop_->watch(from_.get(), 1, [](std::uint32_t) {})) << "it is watched no more";
}

TEST_F(TaskTest, GoesOnAtTheEndOfAPeer) {
  int held = 0;
  auto task = read_one(*loop_, from_.get(), sys::monotonic_us() + kLong, held);
  to_.reset();
  run(task);
  EXPECT_EQ(task.take().error().code, Code::io);
}

TEST_F(TaskTest, GoesOnWhenItsTimeIsOver) {
  int held = 0;
  auto task = read_one(*loop_, from_.get(), sys::monotonic_us() + 1000, held);
  run(task);
  EXPECT_EQ(task.take().error().code, Code::timeout);
}

TEST_F(TaskTest, LetsGoWhenItsOwnerGoes) {
  int held = 0;
  {
    auto task = read_one(*loop_, from_.get(), sys::monotonic_us() + 1000, held);
    EXPECT_EQ(held, 1);
  }
  EXPECT_EQ(held, 0);
  ASSERT_EQ(::write(to_.get(), "a", 1), 1);
  bool over = false;
  loop_->after(5000, [&over] { over = true; });
  ASSERT_TRUE(loop_->run([&over] { return over; })) << "neither what it waited for nor its timer finds it";
}

Task<Result<ChildExit>> wait_for(Loop& loop, pid_t pid, std::int64_t deadline_us) {
  const auto exit = co_await Exit(loop, pid, deadline_us);
  if (!exit) co_return fail(Code::timeout, "it lives");
  co_return *exit;
}

TEST_F(TaskTest, HearsHowAChildEnded) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(7);
  auto task = wait_for(*loop_, pid, sys::monotonic_us() + kLong);
  run(task);
  const auto exit = task.take();
  ASSERT_TRUE(exit);
  EXPECT_FALSE(exit->signaled);
  EXPECT_EQ(exit->status, 7);
}

TEST_F(TaskTest, DoesNotWaitForAChildThatStays) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::pause();
    ::_exit(0);
  }
  auto task = wait_for(*loop_, pid, sys::monotonic_us() + 1000);
  run(task);
  EXPECT_EQ(task.take().error().code, Code::timeout);
  EXPECT_FALSE(loop_->expects(pid));
  (void)::kill(pid, SIGKILL);
}

Task<Status> in_turn(Loop& loop, Turns& turns, int number, std::vector<int>& order, int& inside) {
  const Turns::Turn turn = co_await turns.take();
  EXPECT_EQ(inside++, 0) << "one at a time";
  order.push_back(number);
  (void)co_await Readable(loop, 0, sys::monotonic_us() + 500);
  --inside;
  co_return Status();
}

TEST_F(TaskTest, TurnsComeInTheOrderOfAsking) {
  Turns turns(*loop_);
  std::vector<int> order;
  int inside = 0;
  std::list<Task<Status>> tasks;
  for (int i = 0; i < 5; ++i) tasks.push_back(in_turn(*loop_, turns, i, order, inside));
  auto second = std::next(tasks.begin());
  tasks.erase(second);  // it leaves the queue
  for (auto& task : tasks) run(task);
  EXPECT_EQ(order, (std::vector{0, 2, 3, 4}));
  auto again = in_turn(*loop_, turns, 5, order, inside);
  run(again);
  EXPECT_EQ(order.back(), 5);
}

TEST_F(TaskTest, ATurnThatItsOwnerGaveUpIsTheNextOnes) {
  Turns turns(*loop_);
  std::vector<int> order;
  int inside = 0;
  std::optional<Task<Status>> first(in_turn(*loop_, turns, 0, order, inside));
  auto second = in_turn(*loop_, turns, 1, order, inside);
  first.reset();
  inside = 0;
  run(second);
  EXPECT_EQ(order, (std::vector{0, 1}));
}

TEST_F(TaskTest, ASignalThatCameBeforeAnybodyListenedIsHeard) {
  ASSERT_EQ(::kill(::getpid(), SIGUSR1), 0);
  bool over = false, heard = false;
  loop_->after(1000, [&over] { over = true; });
  ASSERT_TRUE(loop_->run([&over] { return over; }));
  loop_->on_signal(SIGUSR1, [&heard] { heard = true; });
  ASSERT_TRUE(loop_->run([&heard] { return heard; }));
}

}  // namespace
}  // namespace caisson
