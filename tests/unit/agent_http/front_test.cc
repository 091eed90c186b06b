// Rates, the access log's text and its bounds, and which answers are compressed.
#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "agent/http/access_log.h"
#include "agent/http/compressing.h"
#include "agent/http/rates.h"
#include "launcher/common/base/fd.h"
#include "launcher/common/base/json.h"

namespace caisson::http {
namespace {

using std::chrono::seconds;
const Rates::Clock::time_point kBegin{seconds(1000)};

TEST(Rates, ABurstIsServedAndTheNextIsNot) {
  Rates rates(5);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(rates.exceeded("192.0.2.1", kBegin)) << i;
  EXPECT_EQ(rates.exceeded("192.0.2.1", kBegin), seconds(1));
}

TEST(Rates, TokensComeBackWithTime) {
  Rates rates(5);
  for (int i = 0; i < 11; ++i) (void)rates.exceeded("192.0.2.1", kBegin);
  int served = 0;
  for (int i = 0; i < 20; ++i) served += rates.exceeded("192.0.2.1", kBegin + seconds(1)) ? 0 : 1;
  EXPECT_EQ(served, 5);
}

TEST(Rates, ClientsDoNotPayForEachOther) {
  Rates rates(1);
  for (int i = 0; i < 3; ++i) (void)rates.exceeded("192.0.2.1", kBegin);
  EXPECT_TRUE(rates.exceeded("192.0.2.1", kBegin));
  EXPECT_FALSE(rates.exceeded("192.0.2.2", kBegin));
}

TEST(Rates, AnIPv6HostIsOneClient) {
  Rates rates(1);
  for (int i = 0; i < 2; ++i) (void)rates.exceeded("2001:db8::1", kBegin);
  EXPECT_TRUE(rates.exceeded("2001:db8::2", kBegin));
}

TEST(Rates, ZeroIsNoLimit) {
  Rates rates(0);
  for (int i = 0; i < 100'000; ++i) ASSERT_FALSE(rates.exceeded("192.0.2.1", kBegin));
}

TEST(Rates, MemoryIsBounded) {
  Rates rates(1);
  for (int i = 0; i < 20'000; ++i) (void)rates.exceeded(std::to_string(i), kBegin);
  EXPECT_LE(rates.size(), Rates::kMaxClients);
}

TEST(AccessLog, ALineIsJson) {
  const AccessLine line{.id = "a1",
                        .remote = "192.0.2.1",
                        .scheme = "https",
                        .method = "GET",
                        .path = "/v1/sandbox",
                        .user_agent = "curl",
                        .workspace = "w",
                        .status = 200,
                        .bytes = 17,
                        .took = std::chrono::microseconds(1500)};
  EXPECT_EQ(access_text(line), R"(,"request_id":"a1","remote":"192.0.2.1","scheme":"https","method":"GET","path":"/v1/sandbox",)"
                               R"("status":200,"bytes":17,"ms":1.500,)"
                               R"("user_agent":"curl","workspace":"w"})"
                               "\n");
}

TEST(AccessLog, TextsOfClientsAreEscapedAndBounded) {
  const std::string hostile = "\x1b[2J\"\\\n\xe2\x80\xae" + std::string(5000, '"');
  const std::string text = access_text(
      {.id = hostile, .remote = hostile, .method = hostile, .path = hostile, .user_agent = hostile, .workspace = hostile});
  EXPECT_LT(text.size(), 4096u - 200);
  EXPECT_TRUE(std::ranges::all_of(text.substr(0, text.size() - 1), [](char c) { return c >= 0x20 && c < 0x7f; }));
  const std::string whole = "{" + text.substr(1);
  EXPECT_TRUE(json::parse(whole));
}

TEST(AccessLog, AReaderThatStopsCostsLinesAndNoTime) {
  asio::io_context io;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd read_end(ends[0]), write_end(ends[1]);
  AccessLog log(io.get_executor(), write_end.get());
  const std::string path(400, 'a');
  for (int i = 0; i < 5000; ++i) {
    log.add({.id = "a", .path = path});
    if (i % 100 == 0) log.flush();
  }
  EXPECT_GT(log.dropped(), 1000u);
  std::string got;
  char buffer[65536];
  for (int turn = 0; turn < 100; ++turn) {
    ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
    for (ssize_t n = 0; (n = ::read(read_end.get(), buffer, sizeof buffer)) > 0;) got.append(buffer, static_cast<std::size_t>(n));
    log.flush();
  }
  EXPECT_TRUE(got.contains("\"dropped\":")) << "later, the log says how many lines are missing";
  EXPECT_EQ(log.dropped(), 0u);
}

Pairs taking(std::string value) { return {{"accept-encoding", std::move(value)}}; }

TEST(Compressing, AcceptEncodingHasQualities) {
  for (const char* yes :
       {"gzip", "GZIP", "x-gzip", "br, gzip", "gzip;q=0.1", "gzip ; q=1.000", "*", "deflate, *;q=0.5", "identity;q=0.5, gzip"})
    EXPECT_TRUE(accepts_gzip(taking(yes))) << yes;
  for (const char* no : {"", "br", "gzip;q=0", "gzip;q=0.000", "*;q=0", "gzip;q=0, *", "gzip;q=x", "gzip;q=2",
                         "gzip;q=", "gzip;q=0.5, identity", "gzip;q=-1", "gzip;q=0.00001", "gzipx", "gzip;level=9"})
    EXPECT_FALSE(accepts_gzip(taking(no))) << no;
  EXPECT_FALSE(accepts_gzip({}));
}

TEST(Compressing, AClientWithACookieGetsPlainText) {
  Pairs headers = taking("gzip");
  headers.emplace_back("cookie", "a=b");
  EXPECT_FALSE(accepts_gzip(headers));
}

TEST(Compressing, OnlyTextOfSomeLengthIsCompressed) {
  const std::string text(2000, 'a');
  EXPECT_TRUE(is_compressible(text_response(200, "application/json", text)));
  EXPECT_TRUE(is_compressible(text_response(404, "text/html; charset=utf-8", text)));
  EXPECT_FALSE(is_compressible(text_response(200, "application/json", std::string(1023, 'a'))));
  EXPECT_FALSE(is_compressible(text_response(200, "application/json", std::string(kMostToCompress + 1, 'a'))));
  EXPECT_FALSE(is_compressible(text_response(200, "application/octet-stream", text)));
  EXPECT_FALSE(is_compressible(text_response(200, "text/event-stream", text)));
  EXPECT_FALSE(is_compressible(text_response(206, "text/plain", text)));
  for (const char* header : {"content-encoding", "content-range", "etag", "set-cookie"}) {
    Response response = text_response(200, "text/plain", text);
    response.headers = {{header, "x"}};
    EXPECT_FALSE(is_compressible(response)) << header;
  }
}

}  // namespace
}  // namespace caisson::http
