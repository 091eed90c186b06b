#include "launcher/common/audit/log.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>

#include "launcher/cli/audit/verify.h"
#include "launcher/common/audit_lines/lines.h"
#include "launcher/common/base/hash.h"
#include "tests/unit/audit/log_dir.h"

namespace caisson::audit {
namespace {

json::Value only_record(const LogDir& dir, const json::Value& fields) {
  auto log = Log::create(dir.path(), "one");
  EXPECT_TRUE(log->append(Event::exec_request, fields));
  const std::string text = dir.read("one");
  EXPECT_EQ(std::ranges::count(text, '\n'), 1);
  EXPECT_TRUE(std::ranges::all_of(text, [](char c) { return c == '\n' || (c >= 0x20 && c < 0x7f); })) << text;
  return parse_record(text.substr(0, text.size() - 1)).value();
}

TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PadsEveryLengthAroundABlock) {
  // SHA-256 over the concatenated digests of 0 to 130 bytes of 'x', computed once with another implementation.
  std::string all;
  for (std::size_t n = 0; n <= 130; ++n) all += sha256_hex(std::string(n, 'x'));
  EXPECT_EQ(sha256_hex(all), "87aca1c44bc7ba8897768170211f0a02063de70801131ff86c7edb9ce32c6a50");
}

TEST(AuditLog, WritesMembersInOrderWithTheHashLast) {
  const LogDir dir;
  auto log = Log::create(dir.path(), "s");
  ASSERT_TRUE(log->append(Event::limit_hit, {{"z", 1}, {"a", "x"}}));
  const std::string text = dir.read("s");
  std::size_t at = 0;
  for (const char* key : {"{\"seq\":1,", "\"time\":\"20", "\"mono_us\":", "\"event\":\"limit_hit\"", "\"a\":\"x\"", "\"z\":1",
                          "\"prev\":\"000", "\"hash\":\""}) {
    at = text.find(key, at);
    ASSERT_NE(at, std::string::npos) << key << " in " << text;
  }
  EXPECT_EQ(text.substr(text.size() - 3), "\"}\n");
}

TEST(AuditLog, HashIsThatOfTheLineWithoutIt) {
  const LogDir dir;
  const Log log = small_log(dir);
  std::string line = dir.read("s-1");
  line = line.substr(0, line.find('\n'));
  const std::size_t at = line.rfind(",\"hash\":");
  EXPECT_EQ(line.substr(at + 9, 64), sha256_hex(line.substr(0, at) + "}"));
  EXPECT_EQ(log.count(), 4U);
  EXPECT_TRUE(dir.read("s-1").contains(log.head()));
}

TEST(AuditLog, IsNeverContinuedByAnother) {
  const LogDir dir;
  const Log log = small_log(dir);
  const auto again = Log::create(dir.path(), "s-1");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::already_exists);
}

TEST(AuditLog, RotationKeepsTheEarlierLog) {
  const LogDir dir;
  {
    const Log log = small_log(dir, "launcher");
  }
  const std::string before = dir.read("launcher");
  ASSERT_TRUE(Log::create_rotated(dir.path(), "launcher"));
  EXPECT_EQ(dir.read("launcher"), "");
  int kept = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
    if (entry.path().filename() == "launcher.ndjson") continue;
    EXPECT_TRUE(is_launcher_log(entry.path().filename().string()));
    kept += dir.read(entry.path().stem()) == before;
  }
  EXPECT_EQ(kept, 1);
}

TEST(AuditLog, RefusesNamesThatLeaveTheDirectory) {
  const LogDir dir;
  for (const char* name : {"", ".", "..", "a/b", "../x", ".hidden", "a\nb"}) EXPECT_FALSE(Log::create(dir.path(), name)) << name;
}

TEST(AuditLog, IsReadableByItsOwnerOnly) {
  const LogDir dir;
  const Log log = small_log(dir);
  struct stat st{};
  ASSERT_EQ(::stat(dir.file("s-1").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600U);
}

TEST(AuditLog, EveryEventHasItsOwnName) {
  EXPECT_EQ(event_name(Event::boot), "boot");
  EXPECT_EQ(event_name(Event::session_request), "session_request");
  EXPECT_EQ(event_name(Event::exec_exit), "exec_exit");
  EXPECT_EQ(event_name(Event::session_end), "session_end");
  EXPECT_EQ(event_name(Event::segment_start), "segment_start");
  EXPECT_EQ(event_name(Event::log_deleted), "log_deleted");
  for (int i = 0; i <= static_cast<int>(Event::log_deleted); ++i)
    EXPECT_EQ(event_from(event_name(static_cast<Event>(i))), static_cast<Event>(i));
  EXPECT_FALSE(event_from("no_such_event"));
}

TEST(AuditLog, RefusesFieldsThatTheLogWritesItself) {
  const LogDir dir;
  auto log = Log::create(dir.path(), "s");
  for (const char* name : {"seq", "time", "mono_us", "event", "prev", "hash"})
    EXPECT_FALSE(log->append(Event::boot, {{name, 1}}));
  EXPECT_FALSE(log->append(Event::boot, json::Value::array()));
  EXPECT_EQ(dir.read("s"), "");
}

TEST(AuditLog, HostileTextStaysOneLineOfPrintableAscii) {
  const LogDir dir;
  const std::string hostile = "a\nb\r\x1b[2J\x7f \xe2\x80\xae\xe2\x80\xa8 \xc2\x9b \",\"hash\":\"x\"} \xff\xfe \xf0\x9f\x98\x80";
  const json::Value record = only_record(dir, {{"argv", {hostile}}, {hostile, "key"}});
  const std::string back = record["argv"][0].get<std::string>();
  EXPECT_TRUE(back.starts_with("a\nb\r\x1b[2J\x7f \xe2\x80\xae\xe2\x80\xa8")) << back;
  EXPECT_TRUE(back.contains("\xef\xbf\xbd\xef\xbf\xbd \xf0\x9f\x98\x80"));
}

TEST(AuditLog, CutsLongValuesVisibly) {
  const LogDir dir;
  const json::Value record = only_record(dir, {{"argv", {"bash", "-c", std::string(200'000, 'x')}}});
  EXPECT_EQ(record["argv"][1], "-c");
  EXPECT_EQ(record["argv"][2]["cut"], 200'000);
  EXPECT_TRUE(record["argv"][2]["start"].get<std::string>().starts_with("xxx"));
}

TEST(AuditLog, AnyFieldsFitARecord) {
  const LogDir dir;
  json::Value wide = json::Value::object();
  for (int i = 0; i < 5000; ++i) wide[std::string(300, 'k') + std::to_string(i)] = std::string(300, '\x01');
  json::Value deep = "leaf";
  for (int i = 0; i < 40; ++i) deep = json::Value::array({deep, std::string(5000, '\xff'), std::string(900, '\x02')});
  auto log = Log::create(dir.path(), "s");
  ASSERT_TRUE(log->append(Event::exec_request, {{"wide", wide}}));
  ASSERT_TRUE(log->append(Event::exec_request, {{"deep", deep}}));
  ASSERT_TRUE(log->append(Event::exec_request, {{"argv", json::Value(std::vector<std::string>(40'000))}}));
  ASSERT_TRUE(log->append(Event::session_end, {}));
  const auto v = verify_file(dir.file("s"));
  EXPECT_EQ(v->verdict, Verdict::intact) << (v->findings.empty() ? "" : v->findings[0].what);
}

TEST(AuditLog, ASmallRecordTakesMicroseconds) {
  const LogDir dir;
  auto log = Log::create(dir.path(), "s");
  const json::Value fields = {
      {"session", "s-0123456789abcdef"}, {"exec", "e-1"}, {"argv", {"bash", "-c", "true"}}, {"cwd", "/home/gem"}};
  std::int64_t best = INT64_MAX;
  for (int round = 0; round < 20; ++round) {
    const std::int64_t start = sys::monotonic_us();
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(log->append(Event::exec_request, fields));
    best = std::min(best, sys::monotonic_us() - start);
  }
  RecordProperty("us_per_record", std::to_string(static_cast<double>(best) / 50));
#if defined(__OPTIMIZE__) && !__has_feature(address_sanitizer)
  EXPECT_LT(best / 50, 30);
#endif
}

// Appends until it fails; the log then holds nothing but whole records and at most one cut one, and stays closed.
void expect_poisoned(Log& log, const std::string& path) {
  Status status;
  for (int i = 0; i < 2000 && status; ++i) status = log.append(Event::exec_exit, {{"text", std::string(300, 'x')}});
  ASSERT_FALSE(status);
  const std::uint64_t count = log.count();
  EXPECT_FALSE(log.append(Event::session_end, {}));
  EXPECT_EQ(log.count(), count);
  const auto v = verify_file(path);
  ASSERT_TRUE(v);
  EXPECT_EQ(v->records, count);
  EXPECT_NE(v->verdict, Verdict::intact);
}

TEST(AuditLog, AFileSizeLimitPoisonsIt) {
  const LogDir dir;
  auto log = Log::create(dir.path(), "s");
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{100'000, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  expect_poisoned(*log, dir.file("s"));
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_FALSE(log->append(Event::session_end, {})) << "poisoned for good, also when there is room again";
}

TEST(AuditLog, AFullDiskPoisonsIt) {
  const LogDir dir;
  if (::geteuid() != 0 || ::mount("tmpfs", dir.path().c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "cannot mount a tmpfs";
  {
    auto log = Log::create(dir.path(), "s");
    expect_poisoned(*log, dir.file("s"));
  }
  ::umount2(dir.path().c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace caisson::audit
