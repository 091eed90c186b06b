#include "agent/display/x_link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "launcher/common/base/sys.h"
#include "launcher/common/base/task.h"

namespace caisson::display {
namespace {

// The test is the X server at the other end of the connection.
class LinkTest : public testing::Test {
 protected:
  void begin(std::int64_t answer_limit_ms) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    server_ = Fd(ends[0]);
    loop_ = Loop::create({}).value();
    link_ = std::make_unique<Link>(
        *loop_, Connected{.socket = Fd(ends[1]), .setup = {.id_base = 0x200000, .id_mask = 0x1FFFFF}}, answer_limit_ms * 1000,
        [this](std::string_view event) { events_.emplace_back(event); }, [this](const Error& error) { broken_ = error.what; });
    ASSERT_TRUE(link_->start());
  }
  void say(std::string_view bytes) { ASSERT_TRUE(sys::write_all(server_.get(), bytes)); }
  void run(const std::function<bool()>& until) {
    bool late = false;
    const auto timer = loop_->after(60'000'000, [&] { late = true; });
    ASSERT_TRUE(loop_->run([&] { return late || until(); }));
    loop_->cancel(timer);
    ASSERT_FALSE(late);
  }
  Task<bool> ask(std::size_t most) {
    answers_.push_back(co_await link_->ask(core_request(XCB_GET_INPUT_FOCUS, xcb_get_input_focus_request_t{}), most));
    co_return true;
  }
  Task<bool> check() {
    answers_.push_back(co_await link_->check(core_request(XCB_GRAB_SERVER, xcb_grab_server_request_t{})));
    co_return true;
  }
  static std::string reply(std::uint16_t number, std::size_t more = 0) {
    xcb_generic_reply_t head{};
    head.response_type = 1;
    head.sequence = number;
    head.length = static_cast<std::uint32_t>(more / 4);
    std::string out(bytes_of(head));
    out.resize(32 + more);
    return out;
  }
  static std::string message(std::uint8_t type, std::uint16_t number) {
    std::string out = reply(number);
    out[0] = static_cast<char>(type);
    return out;
  }

  Fd server_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<Link> link_;
  std::vector<std::string> events_;
  std::vector<Result<std::string>> answers_;
  std::string broken_;
};

TEST_F(LinkTest, AReplyInPiecesIsWhole) {
  begin(60'000);
  const Task<bool> task = ask(64);
  const std::string bytes = reply(1, 32);
  for (const char c : bytes) {
    say(std::string(1, c));
    run([&] { return true; });
  }
  run([&] { return task.done(); });
  EXPECT_EQ(answers_.at(0)->size(), 64U);
}
TEST_F(LinkTest, AServerThatDoesNotAnswerIsAnErrorInTime) {
  begin(10);
  const Task<bool> task = ask(64);
  run([&] { return task.done(); });
  EXPECT_EQ(answers_.at(0).error().code, Code::timeout);
  EXPECT_EQ(link_->ready().error().code, Code::timeout) << "the next operation does not wait again";
  EXPECT_EQ(broken_, "");
}
TEST_F(LinkTest, AnAnswerThatComesTooLateIsLeftOut) {
  begin(10);
  const Task<bool> late = ask(64);
  run([&] { return late.done(); });
  const Task<bool> task = ask(64);
  say(reply(1) + reply(2));
  run([&] { return task.done(); });
  EXPECT_TRUE(answers_.at(1));
  EXPECT_TRUE(link_->ready());
}
TEST_F(LinkTest, AReplyThatIsLongerThanAskedForEndsTheConnection) {
  begin(60'000);
  const Task<bool> task = ask(64);
  say(reply(1).replace(4, 4, "\xFF\xFF\xFF\xFF"));
  run([&] { return !broken_.empty(); });
  EXPECT_EQ(broken_, "the X server sends a reply of 17179869212 bytes");
}
TEST_F(LinkTest, AReplyThatNobodyAskedForEndsTheConnection) {
  begin(60'000);
  say(reply(0));
  run([&] { return !broken_.empty(); });
  EXPECT_EQ(broken_, "the X server answers what was not asked");
}
TEST_F(LinkTest, AnEventOfTheFutureEndsTheConnection) {
  begin(60'000);
  say(message(XCB_PROPERTY_NOTIFY, 7));
  run([&] { return !broken_.empty(); });
  EXPECT_EQ(broken_, "the X server answers what was not asked");
}
TEST_F(LinkTest, AGenericEventWithoutEndEndsTheConnection) {
  begin(60'000);
  say(message(XCB_GE_GENERIC, 0).replace(4, 4, "\xFF\xFF\xFF\xFF"));
  run([&] { return !broken_.empty(); });
}
TEST_F(LinkTest, AReplyThatIsLeftOutIsAnError) {
  begin(60'000);
  const Task<bool> first = ask(64), second = ask(64);
  say(reply(2));
  run([&] { return first.done() && second.done(); });
  EXPECT_EQ(answers_.at(0).error().code, Code::protocol);
  EXPECT_TRUE(answers_.at(1));
}
TEST_F(LinkTest, ACheckedRequestFailsWithItsError) {
  begin(60'000);
  const Task<bool> task = check();
  say(message(0, 1) + reply(2));
  run([&] { return task.done(); });
  EXPECT_EQ(answers_.at(0).error().code, Code::io);
}
TEST_F(LinkTest, ACheckedRequestWithoutAnErrorIsDone) {
  begin(60'000);
  const Task<bool> task = check();
  say(message(XCB_PROPERTY_NOTIFY, 1) + reply(2));
  run([&] { return task.done(); });
  EXPECT_TRUE(answers_.at(0));
  EXPECT_EQ(events_.size(), 1U);
}
TEST_F(LinkTest, RequestsWithoutAnswersKeepTheNumbersKnown) {
  begin(60'000);
  for (int i = 0; i < 100'000; ++i) link_->send(core_request(XCB_GRAB_SERVER, xcb_grab_server_request_t{}));
  std::string drained(1 << 20, '\0');
  std::size_t requests = 0, asked = 0;
  while (requests < 100'003) {  // three of the link's own among them
    run([&] { return true; });
    ssize_t n = 0;
    while ((n = ::recv(server_.get(), drained.data(), drained.size(), MSG_DONTWAIT)) > 0)
      for (ssize_t at = 0; at < n; at += 4, ++requests)
        asked += static_cast<std::uint8_t>(drained[static_cast<std::size_t>(at)]) == XCB_GET_INPUT_FOCUS;
    link_->flush();
  }
  EXPECT_EQ(asked, 3U);
}
TEST_F(LinkTest, AServerThatReadsNothingIsGivenUp) {
  begin(60'000);
  const std::string request = core_request(XCB_CHANGE_PROPERTY, xcb_change_property_request_t{}, std::string(200'000, 'x'));
  for (int i = 0; i < 100 && broken_.empty(); ++i) link_->send(request);
  EXPECT_EQ(broken_, "the X server reads nothing");
}
TEST_F(LinkTest, AServerThatClosesIsTheEnd) {
  begin(60'000);
  server_.reset();
  run([&] { return !broken_.empty(); });
}

TEST(XSetup, ADisplayIsNamedByItsNumber) {
  EXPECT_EQ(display_number(":99").value(), 99);
  EXPECT_EQ(display_number(":0.0").value(), 0);
  for (const char* name : {"", ":", "99", "host:9", ":-1", ":1x", ":65536", ":1.1", ":99999999999"})
    EXPECT_FALSE(display_number(name)) << name;
}
std::string setup_answer() {
  xcb_setup_t head{};
  head.status = 1;
  head.resource_id_base = 0x200000;
  head.resource_id_mask = 0x1FFFFF;
  head.min_keycode = 8;
  head.max_keycode = 255;
  head.roots_len = 1;
  head.pixmap_formats_len = 1;
  head.vendor_len = 3;
  xcb_format_t format{.depth = 24, .bits_per_pixel = 32, .scanline_pad = 32};
  xcb_screen_t screen{};
  screen.root = 77;
  screen.root_visual = 5;
  screen.root_depth = 24;
  screen.allowed_depths_len = 1;
  xcb_depth_t depth{.depth = 24, .visuals_len = 1};
  xcb_visualtype_t visual{
      .visual_id = 5, ._class = XCB_VISUAL_CLASS_TRUE_COLOR, .red_mask = 0xFF0000, .green_mask = 0xFF00, .blue_mask = 0xFF};
  std::string rest = std::string("abc\0", 4) + std::string(bytes_of(format)) + std::string(bytes_of(screen)) +
                     std::string(bytes_of(depth)) + std::string(bytes_of(visual));
  head.length = static_cast<std::uint16_t>((sizeof head - 8 + rest.size()) / 4);
  return std::string(bytes_of(head)) + rest;
}
TEST(XSetup, TheServersFirstAnswerIsRead) {
  const auto setup = parse_setup(setup_answer());
  ASSERT_TRUE(setup);
  EXPECT_EQ(setup->root, 77U);
  EXPECT_TRUE(setup->is_bgrx);
}
TEST(XSetup, EveryCutOfItIsAnError) {
  const std::string whole = setup_answer();
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(parse_setup(whole.substr(0, size))) << size;
  // With a length that fits, too.
  for (std::size_t size = 8; size < whole.size(); size += 4) {
    std::string cut = whole.substr(0, size);
    const auto words = static_cast<std::uint16_t>((size - 8) / 4);
    cut.replace(6, 2, bytes_of(words));
    EXPECT_FALSE(parse_setup(cut)) << size;
  }
}
TEST(XSetup, ARefusalSaysWhy) {
  std::string refusal("\0\x04\x0b\0\0\0\x01\0nope", 12);
  EXPECT_EQ(parse_setup(refusal).error().what, "the X server refuses: 'nope'");
}

}  // namespace
}  // namespace caisson::display
