// /v1/file through its routes, with the real worker outside any session: what the agent makes of its answers, and what the worker
// does with files. What a session keeps it from is shown where there are sessions (tests/api).
#include <fstream>

#include "tests/unit/agent_services/harness.h"

namespace caisson::testing {
namespace {

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(File, WritesAndReads) {
  Harness h;
  const json::Value written = h.post("/v1/file/write", {{"file", "a/b.txt"}, {"content", "one\ntwo\n"}});
  EXPECT_EQ(written["data"]["bytes_written"], 8);
  EXPECT_EQ(content(h.home() + "/a/b.txt"), "one\ntwo\n");
  const json::Value read = h.post("/v1/file/read", {{"file", h.home() + "/a/./b.txt"}, {"start_line", 1}});
  EXPECT_EQ(read["data"]["content"], "two");
  EXPECT_EQ(read["data"]["file"], h.home() + "/a/b.txt");
}

TEST(File, AFailureIsABareFileOperationError) {
  Harness h;
  const json::Value failed = h.post("/v1/file/read", {{"file", "/nowhere/x"}});
  EXPECT_EQ(h.status, 200);
  EXPECT_EQ(failed["success"], false);
  EXPECT_EQ(failed["message"], "Failed to read file: [Errno 2] No such file or directory: '/nowhere/x'");
  EXPECT_EQ(failed["data"]["error_type"], "not_found");
  EXPECT_EQ(failed["data"]["errno_name"], "ENOENT");
  EXPECT_FALSE(failed["data"].contains("content"));
}

TEST(File, NoFifoIsWaitedFor) {
  Harness h;
  ASSERT_EQ(::mkfifo((h.home() + "/fifo").c_str(), 0600), 0);
  for (const char* operation : {"read", "write", "replace"}) {
    const json::Value body = {{"file", "fifo"}, {"content", "x"}, {"old_str", "x"}, {"new_str", "y"}};
    EXPECT_EQ(h.post(std::string("/v1/file/") + operation, body)["data"]["error_type"], "invalid_target") << operation;
  }
}

TEST(File, ReplacesEveryOccurrence) {
  Harness h;
  (void)h.post("/v1/file/write", {{"file", "f"}, {"content", "aXbXc"}});
  EXPECT_EQ(h.post("/v1/file/replace", {{"file", "f"}, {"old_str", "X"}, {"new_str", "--"}})["data"]["replaced_count"], 2);
  EXPECT_EQ(content(h.home() + "/f"), "a--b--c");
}

TEST(File, EncodesBytes) {
  Harness h;
  EXPECT_EQ(h.post("/v1/file/write", {{"file", "f"}, {"content", "AP9="}, {"encoding", "base64"}})["data"]["bytes_written"], 2);
  EXPECT_EQ(content(h.home() + "/f"), std::string("\0\xFF", 2));
  EXPECT_EQ(h.post("/v1/file/read", {{"file", "f"}})["data"]["error_type"], "decode_error");
  EXPECT_EQ(h.post("/v1/file/write", {{"file", "f"}, {"content", "A"}, {"encoding", "base64"}})["success"], false);
}

TEST(File, ListsGlobsAndFinds) {
  Harness h;
  for (const char* name : {"src/a.py", "src/in/b.py", ".hidden/c.py", "top.txt"})
    (void)h.post("/v1/file/write", {{"file", name}, {"content", name}});
  const auto paths = [&h](const json::Value& answer) {
    std::string out;
    for (const json::Value& file : answer["data"]["files"]) {
      const std::string path = file.is_string() ? file.get<std::string>() : file["path"].get<std::string>();
      out += path.substr(h.home().size() + 1) + " ";
    }
    return out;
  };
  EXPECT_EQ(paths(h.post("/v1/file/list", {{"path", h.home()}})), ".hidden src top.txt ");
  EXPECT_EQ(
      paths(h.post("/v1/file/list", {{"path", h.home()}, {"recursive", true}, {"show_hidden", false}, {"sort_by", "type"}})),
      "src src/in src/a.py src/in/b.py top.txt ");
  EXPECT_EQ(paths(h.post("/v1/file/glob", {{"path", h.home()}, {"pattern", "**/*.{py,txt}"}})), "src/a.py src/in/b.py top.txt ");
  EXPECT_EQ(paths(h.post("/v1/file/glob", {{"path", h.home()}, {"pattern", "src/*"}})), "src/a.py ");
  EXPECT_EQ(paths(h.post("/v1/file/find", {{"path", h.home()}, {"glob", "*.py"}})), "src/a.py src/in/b.py ");
}

TEST(File, AWorkerThatDiesIsStartedAgain) {
  Harness h;
  (void)h.post("/v1/file/write", {{"file", "f"}, {"content", "x"}});
  auto worker = h.run(h.workspace->file.worker());
  ASSERT_TRUE(worker);
  ::kill(static_cast<pid_t>((*worker)->program()->pid()), SIGKILL);
  (void)h.eventually([&] { return !(*worker)->alive(); });
  EXPECT_EQ(h.post("/v1/file/read", {{"file", "f"}})["data"]["content"], "x");
  EXPECT_EQ(h.fake.sessions_created, 2);
}

TEST(File, TheWorkerRefusesWhatItsOperationsDoNotTake) {
  Harness h;
  const auto refusal = [&](json::Value head) {
    auto worker = h.run(h.workspace->file.worker());
    auto reply = h.run(services::Worker::call(*worker, std::move(head), "", bridge::deadline_after(20)));
    return reply ? (*reply).head["error"]["text"] : json::Value(reply.error().text());
  };
  EXPECT_EQ(refusal({{"op", "erase"}, {"path", "f"}}), "no operation 'erase'");
  EXPECT_EQ(refusal({{"op", "read"}, {"path", "f"}, {"append", true}}), "read takes no member 'append'");
}

TEST(File, AnIdleWorkerEndsWithItsSession) {
  services::Config config;
  config.idle_expiry = std::chrono::seconds(1);
  Harness h(config);
  (void)h.post("/v1/file/read", {{"file", "f"}});
  (void)h.eventually([&] { return h.fake.sessions_destroyed > 0; });
  EXPECT_EQ(h.fake.sessions_destroyed, 1);
}

TEST(File, EditsAndUndoes) {
  Harness h;
  (void)h.post("/v1/file/write", {{"file", "f"}, {"content", "one\ntwo\n"}});
  const std::string path = h.home() + "/f";
  const auto edit = [&](json::Value body) {
    body["path"] = path;
    return h.post("/v1/file/str_replace_editor", std::move(body));
  };
  EXPECT_EQ(edit({{"command", "view"}})["data"]["output"],
            "Here's the result of running `cat -n` on " + path + ":\n     1\tone\n     2\ttwo\n     3\t\n");
  EXPECT_EQ(edit({{"command", "str_replace"}, {"old_str", "two"}, {"new_str", "2"}})["data"]["new_content"], "one\n2\n");
  EXPECT_EQ(edit({{"command", "str_replace"}, {"old_str", "six"}, {"new_str", "6"}})["message"],
            "No replacement was performed, old_str `six` did not appear verbatim in " + path + ".");
  EXPECT_EQ(edit({{"command", "undo_edit"}})["data"]["new_content"], "one\ntwo\n");
  EXPECT_EQ(content(path), "one\ntwo\n");
}

// The connection of an upload or a download, played by the test.
class Transfer final : public http::StreamWriter {
 public:
  task<void> start(std::string) override { co_return fail(Code::internal, "not a stream"); }
  task<void> write(std::string bytes) override {
    sent += bytes;
    co_return Status{};
  }
  task<void> start_sized(http::Response response, std::uint64_t size) override {
    head = std::move(response);
    length = size;
    co_return Status{};
  }
  task<std::string> read_piece() override {
    std::string piece = body.substr(0, 1000);
    body.erase(0, piece.size());
    co_return piece;
  }
  std::string body, sent;
  http::Response head;
  std::uint64_t length = 0;
};

task<http::Response> transfer(Harness& h, http::Request request, Transfer& connection) {
  for (const routes::Route& route : routes::file_transfer_routes())
    if (route.path == request.path) {
      routes::Call call{h.services, std::move(request), route, &connection};
      co_return co_await route.endpoint.handler(std::move(call));
    }
  co_return fail(Code::not_found, "no route");
}

TEST(FileTransfer, AnUploadGoesThroughInPieces) {
  Harness h;
  const std::string content(100'000, 'u');
  for (const bool path_first : {true, false}) {
    const std::string path = "--b\r\nContent-Disposition: form-data; name=\"path\"\r\n\r\nin/up.bin\r\n";
    const std::string file = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\n" + content + "\r\n";
    Transfer connection;
    connection.body = (path_first ? path + file : file + path) + "--b--\r\n";
    http::Request request;
    request.path = "/v1/file/upload";
    request.headers = {{"content-type", "multipart/form-data; boundary=b"}};
    auto answer = h.run(transfer(h, std::move(request), connection));
    ASSERT_TRUE(answer) << answer.error().text();
    EXPECT_NE(answer->body.find("\"file_size\":100000"), std::string::npos) << answer->body;
    EXPECT_TRUE(testing::content(h.home() + "/in/up.bin") == content);
    std::filesystem::remove(h.home() + "/in/up.bin");
  }
}

TEST(FileTransfer, ADownloadSendsARange) {
  Harness h;
  (void)h.post("/v1/file/write", {{"file", "f"}, {"content", "0123456789"}});
  http::Request request;
  request.path = "/v1/file/download";
  request.query = {{"path", "f"}};
  request.headers = {{"range", "bytes=2-4"}};
  Transfer connection;
  auto answer = h.run(transfer(h, std::move(request), connection));
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_TRUE(answer->sent || connection.length == 3);
  EXPECT_EQ(connection.head.status, 206);
  EXPECT_EQ(connection.sent, "234");
}

TEST(FileWatch, TellsChangesByCursor) {
  Harness h;
  const json::Value made = h.post("/v1/file/watch", {{"path", h.home()}, {"debounce", 50}});
  ASSERT_EQ(made["success"], true) << made;
  std::ofstream(h.home() + "/new") << "x";
  const std::string poll = "/v1/file/watch/" + made["watcher_id"].get<std::string>() + "/poll";
  const json::Value got = h.post(poll, {{"timeout", 20}});
  ASSERT_EQ(got["events"].size(), 1U) << got;
  EXPECT_EQ(got["events"][0]["type"], "create");
  EXPECT_EQ(got["events"][0]["relative_path"], "new");
  EXPECT_EQ(h.post(poll, {{"since", got["cursor"]}})["events"].size(), 0U);
}

TEST(FileWatch, TheWorkersEndIsAnOverflow) {
  Harness h;
  const std::string id = h.post("/v1/file/watch", {{"path", h.home()}, {"debounce", 50}})["watcher_id"].get<std::string>();
  auto worker = h.run(h.workspace->file.worker());
  ASSERT_TRUE(worker);
  ::kill(static_cast<pid_t>((*worker)->program()->pid()), SIGKILL);
  const json::Value lost = h.post("/v1/file/watch/" + id + "/poll", {{"timeout", 20}});
  EXPECT_EQ(lost["overflow"], true);
  std::ofstream(h.home() + "/after") << "x";
  const json::Value got = h.post("/v1/file/watch/" + id + "/poll", {{"cursor", lost["cursor"]}, {"timeout", 20}});
  EXPECT_EQ(got["overflow"], false);
  EXPECT_EQ(got["events"].size(), 1U) << got;
}

}  // namespace
}  // namespace caisson::testing
