#include "launcher/common/audit/redact.h"

#include <gtest/gtest.h>

#include "launcher/common/audit/log.h"
#include "launcher/common/base/sys.h"

namespace caisson::audit {
namespace {

struct Row {
  const char* before;
  const char* after;  // nullptr: unchanged
};

TEST(Redact, ScriptsKeepEverythingButTheSecrets) {
  static constexpr Row kRows[] = {
      {"curl --password hunter2 x", "curl --password [redacted] x"},
      {"TOKEN=abc; echo hi", "TOKEN=[redacted]; echo hi"},
      {"export MY_TOKEN='a b c' X=1", "export MY_TOKEN='[redacted]' X=1"},
      {"curl -H \"Authorization: Bearer abc.def\" http://x", "curl -H \"Authorization: Bearer [redacted]\" http://x"},
      {"curl -H 'X-AIO-API-Key: abc' http://x", "curl -H 'X-AIO-API-Key: [redacted]' http://x"},
      {"curl -u bob:pw http://h", "curl -u bob:[redacted] http://h"},
      {"curl --user=bob:pw", "curl --user=bob:[redacted]"},
      {"git clone https://bob:pw@host/x.git", "git clone https://bob:[redacted]@host/x.git"},
      {"git clone https://x0123456789abcdef@host/x", "git clone https://[redacted]@host/x"},
      {"echo AKIAABCDEFGHIJKLMNOP", "echo [redacted]"},
      {"echo ghp_0123456789abcdef0123 done", "echo [redacted] done"},
      {"K=sk-ant-0123456789abcdef", "K=[redacted]"},
      {"curl -d '{\"password\": \"hunter2\", \"a\": 1}'", "curl -d '{\"password\": \"[redacted]\", \"a\": 1}'"},
      {"curl -d \"{\\\"password\\\":\\\"hunter2\\\"}\"", "curl -d \"{\\\"password\\\":\\\"[redacted]\\\"}\""},
      {"sshpass -p pw ssh -l me host", "sshpass -p [redacted] ssh -l me host"},
      {"mysql -psecret -h x; mkdir -p a", "mysql -p[redacted] -h x; mkdir -p a"},
      {"-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
       "-----BEGIN RSA PRIVATE KEY-----[redacted]-----END RSA PRIVATE KEY-----"},
      {"curl 'http://h/?a=1&api_key=abc&b=2'", "curl 'http://h/?a=1&api_key=[redacted]&b=2'"},
      {"ls -p /tmp; git push ssh://git@host/x", nullptr},
      {"docker login --password-stdin registry", nullptr},
      {"cat --token-file /x; cd src/token; PWD=/home", nullptr},
      {"-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----", nullptr},
      {"echo \xc3\xa4 'unfinished", nullptr},
  };
  for (const Row& row : kRows) EXPECT_EQ(redacted_text(row.before), row.after ? row.after : row.before);
}

TEST(Redact, ACommandCannotHideBehindASecret) {
  EXPECT_TRUE(redacted_text("PASSWORD=\"$(evil)\" true").contains("evil"));
  EXPECT_TRUE(redacted_text("TOKEN=`evil`").contains("evil"));
  EXPECT_TRUE(redacted_text("TOKEN=x evil").contains("evil"));
  EXPECT_TRUE(redacted_text("TOKEN=x;evil").contains("evil"));
  EXPECT_TRUE(json::dump(redacted_argv({"bash", "-c", "TOKEN=x evil"})).contains("evil"));
  EXPECT_TRUE(json::dump(redacted_argv({"eval", "TOKEN=x evil"})).contains("evil"));
}

TEST(Redact, ArgvIsReadElementByElement) {
  const json::Value argv = {"env", "PASSWORD=a b", "x", "--token", "abc", "-u", "a:b", "--secret", "--x", "plain"};
  const json::Value want = {"env", "PASSWORD=[redacted]", "x",        "--token", "[redacted]",
                            "-u",  "a:[redacted]",        "--secret", "--x",     "plain"};
  EXPECT_EQ(redacted_argv(argv), want);
  EXPECT_EQ(redacted_argv({"/usr/bin/mysql", "-ppw"}), json::Value({"/usr/bin/mysql", "-p[redacted]"}));
  EXPECT_EQ(redacted_argv({"sshpass", "-p", "pw"}), json::Value({"sshpass", "-p", "[redacted]"}));
  EXPECT_EQ(redacted_argv({"curl", "-H", "Authorization: Basic a b"})[2], "Authorization: Basic [redacted]");
  EXPECT_EQ(redacted_argv("not an array"), "not an array");
  EXPECT_EQ(redacted_argv(json::Value::array({1, nullptr})), json::Value::array({1, nullptr}));
}

TEST(Redact, HostileTextTakesLinearTime) {
  const char* pieces[] = {"://",      "://a",        "-u x",       "-u '", "token", "token:\\",
                          "TOKEN=\"", "-----BEGIN ", "--token \\", "a.",   "x@"};
  for (const char* piece : pieces) {
    std::string text;
    while (text.size() < 64 * 1024) text += std::string(piece) + " ";
    for (int spaced = 0; spaced < 2; ++spaced) {
      if (spaced == 1) std::erase(text, ' ');
      const std::int64_t start = sys::monotonic_us();
      EXPECT_FALSE(redacted_text(text).empty());
      EXPECT_LT(sys::monotonic_us() - start, 500'000) << piece;
    }
  }
}

}  // namespace
}  // namespace caisson::audit
