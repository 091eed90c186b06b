#include "server_fixture.h"

namespace caisson {
namespace {

using http::Method;
using http::Response;
using routes::bind;
using routes::Call;
using routes::Scope;
using routes::Unknown;

struct Greeting {
  std::string name;
};
}  // namespace

std::atomic<int> begun_slow = 0, finished_slow = 0;
std::atomic<bool> saw_client_gone = false;

template <>
struct routes::Schema<Greeting> {
  static constexpr std::string_view name = "Greeting";
  static constexpr auto fields = std::tuple{field("name", &Greeting::name, "")};
};

namespace {

task<Response> greet(Call, Greeting greeting) { co_return http::ok("hello " + greeting.name); }
task<Response> echo(Call call) { co_return http::text_response(200, "text/plain", std::move(call.request.body)); }
task<Response> item(Call call) { co_return http::ok(call.request.param("id")); }
task<Response> throws(Call) {
  throw std::runtime_error("secret detail");
  co_return http::ok(nullptr);
}
task<Response> broken_invariant(Call) { co_return caisson::fail(Code::internal, "secret detail"); }
task<Response> tool_fails(Call) { co_return caisson::fail(Code::permission_denied, "open '/x'"); }
task<Response> bytes(Call) {
  co_return http::ok(
      std::string("a\xff\xfe"
                  "b"));
}
task<Response> large(Call) { co_return http::text_response(200, "text/plain", std::string(3'000'000, 'x')); }
task<Response> split(Call) {
  Response response = http::ok(nullptr);
  response.headers = {{"x-evil", "a\r\nset-cookie: b"}};
  co_return response;
}
task<Response> slow(Call call) {
  ++begun_slow;
  co_await sleep_for(std::chrono::milliseconds(300));
  saw_client_gone = call.request.client_gone();
  ++finished_slow;
  co_return http::ok("done");
}
task<Response> events(Call call) {
  if (!call.request.accepts_event_stream()) co_return http::ok("json");
  const std::chrono::milliseconds pause(call.request.query_value("slow") ? 2500 : 150);
  CO_TRY_ASSIGN(http::EventStream stream, co_await call.event_stream());
  http::Event first{"output", "1", "a\nb\r\ndata: c\r"};
  CO_TRY(co_await stream.send(std::move(first)));
  co_await sleep_for(pause);
  http::Event last{"end", "", "x"};
  CO_TRY(co_await stream.send(std::move(last)));
  co_return http::already_sent();
}
task<Response> count(Call call) {
  std::size_t size = 0, most = 0;
  while (true) {
    CO_TRY_ASSIGN(const std::string piece, co_await call.writer->read_piece());
    if (piece.empty()) break;
    size += piece.size();
    most = std::max(most, piece.size());
    if (size > 50'000'000) break;  // the rest is left unread
  }
  json::Value data = {{"size", size}, {"bounded", most <= 256 * 1024}};
  co_return http::ok(std::move(data));
}
task<Response> sized(Call call) {
  Response head;
  head.content_type = "application/octet-stream";
  CO_TRY(co_await call.writer->start_sized(std::move(head), 10));
  CO_TRY(co_await call.writer->write("01234"));
  if (call.request.query_value("cut")) co_return http::already_sent();
  CO_TRY(co_await call.writer->write("56789"));
  co_return http::already_sent();
}
task<void> talk(Call, http::WebSocket socket) {
  while (true) {
    CO_TRY_ASSIGN(auto text, co_await socket.receive());
    if (!text) co_return Status{};
    std::string reply = "echo " + *text;
    CO_TRY(co_await socket.send(std::move(reply)));
    if (*text == "bye") co_return Status{};
  }
}

constexpr routes::Route kTable[] = {
    {Method::get, "/open", "open", Scope::system, routes::kPublic, Unknown::ignore, "", bind<echo>()},
    {Method::get, "/probe", "probe", Scope::system, routes::kPublic | routes::kProbe | routes::kImmediate, Unknown::ignore, "",
     bind<echo>()},
    {Method::post, "/greet", "greet", Scope::system, 0, Unknown::ignore, "", bind<greet>()},
    {Method::post, "/echo", "echo", Scope::system, 0, Unknown::ignore, "", bind<echo>(), 1000},
    {Method::post, "/hold", "hold", Scope::system, 0, Unknown::ignore, "", bind<item>()},
    {Method::del, "/echo", "echo_delete", Scope::system, 0, Unknown::ignore, "", bind<echo>(), 1000},
    {Method::get, "/items/{id}", "item", Scope::system, 0, Unknown::ignore, "", bind<item>()},
    {Method::del, "/items/{id}", "item_delete", Scope::system, 0, Unknown::ignore, "", bind<item>()},
    {Method::get, "/items/stats", "stats", Scope::system, 0, Unknown::ignore, "", bind<echo>()},
    {Method::get, "/throws", "throws", Scope::system, 0, Unknown::ignore, "", bind<throws>()},
    {Method::get, "/broken", "broken", Scope::system, 0, Unknown::ignore, "", bind<broken_invariant>()},
    {Method::get, "/fails", "fails", Scope::system, 0, Unknown::ignore, "", bind<tool_fails>()},
    {Method::get, "/bytes", "bytes", Scope::system, 0, Unknown::ignore, "", bind<bytes>()},
    {Method::get, "/large", "large", Scope::system, 0, Unknown::ignore, "", bind<large>()},
    {Method::get, "/split", "split", Scope::system, 0, Unknown::ignore, "", bind<split>()},
    {Method::get, "/slow", "slow", Scope::system, 0, Unknown::ignore, "", bind<slow>()},
    {Method::post, "/events", "events", Scope::system, routes::kEventStream, Unknown::ignore, "", bind<events>()},
    {Method::post, "/count", "count", Scope::system, routes::kStreamedBody, Unknown::ignore, "", bind<count>(), 100'000'000},
    {Method::get, "/sized", "sized", Scope::system, routes::kBinary, Unknown::ignore, "", bind<sized>()},
    {Method::get, "/talk", "talk", Scope::system, 0, Unknown::ignore, "", routes::bind_websocket<talk>()},
};

}  // namespace

const std::vector<const routes::Route*>& test_table() {
  static const std::vector<const routes::Route*> table = [] {
    std::vector<const routes::Route*> rows;
    for (const routes::Route& row : kTable) rows.push_back(&row);
    return rows;
  }();
  return table;
}

namespace {

using std::chrono::milliseconds;

bool has(const std::string& text, std::string_view part) { return text.contains(part); }

TEST_F(ServerTest, KeepAliveServesManyRequests) {
  start();
  Client client(port_);
  for (int i = 0; i < 3; ++i) {
    client.send(post("/greet", R"({"name":"ann"})"));
    EXPECT_TRUE(has(client.response(), R"("data":"hello ann")"));
  }
}

TEST_F(ServerTest, PipelinedRequestsAreAnsweredInOrder) {
  start();
  Client client(port_);
  client.send(post("/echo", "one") + get("/slow") + post("/echo", "two", "Connection: close\r\n"));
  const std::string all = client.read_all();
  EXPECT_LT(all.find("\r\n\r\none"), all.find("\"done\""));
  EXPECT_LT(all.find("\"done\""), all.find("\r\n\r\ntwo"));
  EXPECT_FALSE(has(all, "TIMEOUT"));
}

TEST_F(ServerTest, ChunkedBodyIsRead) {
  start();
  EXPECT_TRUE(has(once("POST /echo HTTP/1.1\r\nHost: a\r\nX-AIO-API-Key: secret\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nHost: evil\r\n\r\n"),
                  "\r\n\r\nabcde"));
}

TEST_F(ServerTest, MalformedChunksAreRefused) {
  start();
  for (const char* body : {"zz\r\nabc\r\n0\r\n\r\n", "3\nabc\r\n0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n", "-1\r\na\r\n0\r\n\r\n"}) {
    Client client(port_);
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nX-AIO-API-Key: secret\r\nTransfer-Encoding: chunked\r\n\r\n" +
                std::string(body));
    const std::string all = client.read_all();
    EXPECT_TRUE(all.starts_with("HTTP/1.1 400 ")) << body << all;
    EXPECT_EQ(all.find("HTTP/1.1", 1), std::string::npos) << body;
  }
}

TEST_F(ServerTest, SmugglingGetsOneAnswerAndTheEnd) {
  start();
  const std::string smuggled = "0\r\n\r\nGET /open HTTP/1.1\r\nHost: a\r\n\r\n";
  for (const char* head : {"Transfer-Encoding: xchunked\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
                           "Content-Length: 5\r\nContent-Length: 5\r\n", "Transfer-Encoding : chunked\r\n",
                           "X: y\r\n Transfer-Encoding: chunked\r\n", "Host: b\r\n"}) {
    Client client(port_);
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nX-AIO-API-Key: secret\r\n" + std::string(head) + "\r\n" + smuggled);
    const std::string all = client.read_all();
    EXPECT_TRUE(all.starts_with("HTTP/1.1 400 ")) << head << all;
    EXPECT_EQ(all.find("HTTP/1.1", 1), std::string::npos) << head;
    EXPECT_TRUE(has(all, R"({"success":false,"message":"Bad Request: )"));
  }
}

TEST_F(ServerTest, BareLineFeedsAndTlsAreRefusedAtOnce) {
  start();
  for (const char* bytes : {"GET /open HTTP/1.1\nHost: a\n\n", "\x16\x03\x01\x02"}) {
    Client client(port_);
    client.send(bytes);
    EXPECT_TRUE(client.read_all().starts_with("HTTP/1.1 400 "));
  }
}

TEST_F(ServerTest, LargeBodyIsRefusedBeforeItIsSent) {
  start();
  Client client(port_);
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nX-AIO-API-Key: secret\r\nExpect: 100-continue\r\nContent-Length: 1001\r\n\r\n");
  const std::string all = client.read_all();
  EXPECT_TRUE(all.starts_with("HTTP/1.1 413 ")) << all;
  EXPECT_TRUE(has(all, "connection: close"));
}

TEST_F(ServerTest, LargeChunkedBodyIsRefused) {
  start();
  Client client(port_);
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nX-AIO-API-Key: secret\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" +
              std::string(1001, 'x'));
  EXPECT_TRUE(client.read_all().starts_with("HTTP/1.1 413 "));
}

TEST_F(ServerTest, RefusalSurvivesABodyThatIsStillBeingSent) {
  start();
  Client client(port_);
  client.send(post("/echo", std::string(4'000'000, 'x')));
  EXPECT_TRUE(client.read_all().starts_with("HTTP/1.1 413 "));
}

TEST_F(ServerTest, ContinueIsSentWhenTheBodyIsWanted) {
  start();
  Client client(port_);
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nX-AIO-API-Key: secret\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("abc");
  EXPECT_TRUE(client.response().ends_with("\r\n\r\nabc"));
}

TEST_F(ServerTest, KeyIsAskedBeforeTheBody) {
  start();
  Client client(port_);
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n");
  const std::string all = client.read_all();
  EXPECT_TRUE(all.starts_with("HTTP/1.1 401 ")) << all;
  EXPECT_TRUE(has(all, "www-authenticate: Bearer"));
  EXPECT_TRUE(has(all, R"("success":false)"));
}

TEST_F(ServerTest, KeysAreAcceptedInAllThreePlaces) {
  start();

  EXPECT_TRUE(has(once("GET /items/7?api_key=secret HTTP/1.1\r\nHost: a\r\n\r\n"), " 200 "));
  EXPECT_TRUE(has(once("GET /items/7 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\n\r\n"), " 200 "));
  EXPECT_TRUE(has(once("GET /items/7 HTTP/1.1\r\nHost: a\r\nX-AIO-API-Key: secret\r\n\r\n"), " 200 "));
  EXPECT_TRUE(has(once("GET /items/7 HTTP/1.1\r\nHost: a\r\nX-AIO-API-Key: wrong\r\n\r\n"), " 401 "));
  EXPECT_TRUE(has(once("GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n"), " 401 "));
  EXPECT_TRUE(has(once("GET /open HTTP/1.1\r\nHost: a\r\n\r\n"), " 200 "));
}

TEST_F(ServerTest, WithoutAuthNoKeyIsAsked) {
  settings_.auth.off = true;
  settings_.allow_host = "b";
  start();
  for (const char* host : {"localhost", "127.0.0.1:1", "b"})
    EXPECT_TRUE(has(once(std::string("GET /items/7 HTTP/1.1\r\nHost: ") + host + "\r\n\r\n"), " 200 ")) << host;
  const std::string foreign = once("GET /items/7 HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(has(foreign, " 403 ") && has(foreign, "CAISSON_ALLOW_HOST")) << foreign;
  EXPECT_TRUE(has(once("GET /items/7 HTTP/1.0\r\n\r\n"), " 403 "));
}

TEST_F(ServerTest, PathsAreFoundOrToldHow) {
  start();
  EXPECT_TRUE(has(once(get("/items/a%20b")), R"({"data":"a b","hint":null,)"));
  EXPECT_TRUE(has(once(get("/items/stats")), "text/plain"));
  EXPECT_TRUE(once(get("/nowhere")).ends_with(R"({"success":false,"message":"Not Found","data":null})"));
  EXPECT_TRUE(has(once(get("/items%2f7")), " 404 "));
  EXPECT_TRUE(has(once(get("/items/7/")), " 404 "));
  EXPECT_TRUE(has(once(get("//items/7")), " 400 "));
  EXPECT_TRUE(has(once(get("/items/../open")), " 400 "));
  const std::string wrong = once(post("/items/7", ""));
  EXPECT_TRUE(has(wrong, " 405 "));
  EXPECT_TRUE(has(wrong, "allow: DELETE, GET, HEAD, OPTIONS\r\n"));
}

TEST_F(ServerTest, HeadHasNoBody) {
  start();
  Client client(port_);
  client.send("HEAD /items/7 HTTP/1.1\r\nHost: a\r\nX-AIO-API-Key: secret\r\n\r\n" + get("/open"));
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_TRUE(has(head, "content-length: 7"));
  EXPECT_TRUE(client.response().starts_with("HTTP/1.1 200 "));
}

TEST_F(ServerTest, OptionsAreAnsweredWithoutAKey) {
  settings_.allow_origin = "https://app.example";
  start();
  EXPECT_TRUE(once("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 204 "));
  const std::string asked = once("OPTIONS /greet HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example\r\n\r\n");
  EXPECT_TRUE(has(asked, "access-control-allow-origin: https://app.example\r\n"));
  EXPECT_TRUE(has(asked, "access-control-allow-methods: OPTIONS, POST\r\n"));
}

TEST_F(ServerTest, OptionsWithTheKeyAreToldWhatThePathTakes) {
  start();
  const auto ask = [this](std::string_view path, std::string_view key) {
    return once("OPTIONS " + std::string(path) + " HTTP/1.1\r\nHost: a\r\nX-AIO-API-Key: " + std::string(key) + "\r\n\r\n");
  };
  EXPECT_TRUE(has(ask("/greet", "secret"), "allow: OPTIONS, POST\r\n"));
  EXPECT_TRUE(ask("/nowhere", "secret").starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(ask("/greet", "wrong").starts_with("HTTP/1.1 401 "));  // or it would be a place to guess keys at
}

TEST_F(ServerTest, ForeignOriginsAreRefused) {
  start();
  EXPECT_TRUE(has(once(post("/echo", "x", "Origin: http://evil.example\r\n")), " 403 "));
  EXPECT_TRUE(has(once(post("/echo", "x", "Origin: http://localhost\r\n")), " 200 "));
}

TEST_F(ServerTest, FailuresKeepTheEnvelope) {
  start();
  for (const char* path : {"/throws", "/broken"}) {
    const std::string failed = once(get(path));
    EXPECT_TRUE(has(failed, " 500 ") && has(failed, "Internal error (id ")) << failed;
    EXPECT_FALSE(has(failed, "secret detail"));
  }
  EXPECT_TRUE(has(once(get("/fails")), " 200 ") && has(once(get("/fails")), R"("success":false)"));
  EXPECT_TRUE(has(once(get("/bytes")), "a\xef\xbf\xbd"));
  EXPECT_FALSE(has(once(get("/split")), "set-cookie"));
  EXPECT_TRUE(has(once(post("/greet", "{}")), R"({"detail":[{"loc":["body","name"],"msg":"Field required","type":"missing"}]})"));
}

TEST_F(ServerTest, LargeAnswersArriveWhole) {
  start();
  const std::string answer = once(get("/large"));
  EXPECT_EQ(answer.size() - answer.find("\r\n\r\n") - 4, 3'000'000u);
}

}  // namespace
}  // namespace caisson
