// The metrics: their text in both formats, their bounds, and the table in agent/README.md. CAISSON_UPDATE=1 rewrites the table.
#include "agent/metrics/registry.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "agent/metrics/launcher_names.h"
#include "agent/routes/meter.h"
#include "agent/routes/table.h"
#include "launcher/common/base/word.h"
#include "launcher/common/wire/steps.h"

namespace caisson::metrics {
namespace {

using std::chrono::milliseconds;

bool has(const std::string& text, std::string_view line) { return ("\n" + text).contains("\n" + std::string(line) + "\n"); }

TEST(Metrics, ACounterIsASampleWithItsLabels) {
  Registry one;
  one.add(Id::http_requests, {"/v1/ping", "GET", "2xx"});
  one.add(Id::http_requests, {"/v1/ping", "GET", "2xx"});
  const std::string text = one.text(Registry::Format::prometheus);
  EXPECT_TRUE(has(text, "# TYPE caisson_http_requests_total counter"));
  EXPECT_TRUE(has(text, R"(caisson_http_requests_total{route="/v1/ping",method="GET",status="2xx"} 2)"));
}

TEST(Metrics, BucketsAreCumulative) {
  Registry one;
  for (const int took : {1, 20, 400, 60'000}) one.observe(Id::session_create, {"bash"}, milliseconds(took));
  const std::string text = one.text(Registry::Format::prometheus), name = "caisson_session_create_duration_seconds";
  EXPECT_TRUE(has(text, name + R"(_bucket{domain="bash",le="0.001"} 1)"));
  EXPECT_TRUE(has(text, name + R"(_bucket{domain="bash",le="0.025"} 2)"));
  EXPECT_TRUE(has(text, name + R"(_bucket{domain="bash",le="30"} 3)"));
  EXPECT_TRUE(has(text, name + R"(_bucket{domain="bash",le="+Inf"} 4)"));
  EXPECT_TRUE(has(text, name + R"(_sum{domain="bash"} 60.421)"));
  EXPECT_TRUE(has(text, name + R"(_count{domain="bash"} 4)"));
}

TEST(Metrics, ASummaryIsASumAndACount) {
  Registry one;
  for (const int took : {1, 20}) one.observe(Id::session_steps, {"seccomp"}, milliseconds(took));
  const std::string text = one.text(Registry::Format::openmetrics), name = "caisson_session_step_duration_seconds";
  EXPECT_TRUE(has(text, "# TYPE " + name + " summary"));
  EXPECT_TRUE(has(text, name + R"(_sum{step="seccomp"} 0.021)"));
  EXPECT_TRUE(has(text, name + R"(_count{step="seccomp"} 2)"));
  EXPECT_FALSE(text.contains(name + "_bucket"));
  EXPECT_EQ(one.value(Id::session_steps, {"seccomp"}), 2);
}

TEST(LauncherNames, AreTheStepsOfTheLauncherInTheirOrder) {
  std::vector<std::string_view> steps;
  for (const confine::StepRow& row : confine::kSteps) steps.emplace_back(row.name);
  EXPECT_TRUE(std::ranges::equal(steps, kStepNames));
}

TEST(LauncherNames, MakeNoSeriesOfWhatTheyDoNotKnow) {
  EXPECT_EQ(step_label("seccomp"), "seccomp");
  EXPECT_EQ(step_label("seccomp "), kOther);
  EXPECT_EQ(denial_kind("any"), kOther);
  EXPECT_EQ(denial_kind(""), kOther);
  EXPECT_EQ(denial_kind("unshare setns"), kOther);
}

TEST(LauncherNames, GiveEachCallOneKind) {
  std::set<std::string_view> seen;
  for (const DenialKind& row : kDenialKinds)
    for (std::ptrdiff_t i = 0; i < count_words(row.calls); ++i) {
      const std::string_view call = word(row.calls, static_cast<std::size_t>(i));
      EXPECT_TRUE(seen.insert(call).second) << call;
      EXPECT_EQ(denial_kind(call), row.kind) << call;
    }
}

TEST(Metrics, OpenMetricsNamesTheFamilyAndEnds) {
  Registry one;
  const std::string text = one.text(Registry::Format::openmetrics);
  EXPECT_TRUE(has(text, "# TYPE process_cpu_seconds counter"));
  EXPECT_TRUE(has(text, "# UNIT process_cpu_seconds seconds"));
  EXPECT_TRUE(has(text, "process_cpu_seconds_total 0"));
  EXPECT_TRUE(text.ends_with("\n# EOF\n"));
}

TEST(Metrics, ALabelCannotEndItsLine) {
  Registry one;
  one.add(Id::session_ends, {"a\"b\\c\nd"});
  EXPECT_TRUE(has(one.text(Registry::Format::prometheus), R"(caisson_session_ends_total{reason="a\"b\\c\nd"} 1)"));
}

TEST(Metrics, ThereAreNeverMoreSeriesThanTheBound) {
  Registry one;
  for (std::size_t i = 0; i < Registry::kMostSeries + 5; ++i) one.add(Id::session_ends, {std::to_string(i)});
  EXPECT_EQ(one.value(Id::dropped_series), 5);
  EXPECT_EQ(one.value(Id::session_ends, {std::to_string(Registry::kMostSeries)}), 0);
}

TEST(Metrics, AGaugeThatIsClearedMakesRoom) {
  Registry one;
  for (std::size_t i = 0; i < Registry::kMostSeries; ++i) one.add(Id::sessions, {std::to_string(i)});
  one.clear(Id::sessions);
  one.add(Id::session_ends, {"exit"});
  EXPECT_EQ(one.value(Id::session_ends, {"exit"}), 1);
}

// The product of all routes, and the methods and outcomes of each, must fit the bound beside everything else.
TEST(Metrics, TheRoutesLeaveRoomForTheRest) { EXPECT_LT(routes::all_routes().size() * 6, Registry::kMostSeries / 2); }

TEST(Metrics, NamesFollowTheRulesOfPrometheus) {
  std::set<std::string_view> names;
  for (const Row& row : kRows) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(row.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos) << row.name;
    EXPECT_TRUE(row.name.starts_with("caisson_") || row.name.starts_with("process_")) << row.name;
    EXPECT_TRUE(row.name.ends_with(row.unit)) << row.name;
    EXPECT_FALSE(row.name.ends_with("_total")) << row.name << ": the exposition adds it";
    EXPECT_FALSE(row.help.empty()) << row.name;
  }
}

TEST(Metrics, TheTableOfTheReadmeIsCurrent) {
  const std::string path = CAISSON_SOURCE_DIR "/agent/README.md", begin = "metric_table.h -->\n", end = "<!-- end generated -->";
  std::stringstream read;
  read << std::ifstream(path).rdbuf();
  std::string text = read.str();
  const auto from = text.find(begin), to = text.find(end, from);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos);
  const std::string now = text.substr(from + begin.size(), to - from - begin.size());
  if (std::getenv("CAISSON_UPDATE") == nullptr) {
    EXPECT_EQ(now, table_text()) << "CAISSON_UPDATE=1 unit_agent_http rewrites it";
    return;
  }
  text.replace(from + begin.size(), now.size(), table_text());
  std::ofstream(path) << text;
}

double requests(std::string_view outcome) { return registry().value(Id::http_requests, {"none", "PATCH", outcome}); }

TEST(Meter, ARequestWithoutAHandlerIsAborted) {
  const double before = requests("aborted");
  {
    const routes::Meter meter(nullptr, http::Method::patch);
  }
  EXPECT_EQ(requests("aborted"), before + 1);
}

TEST(Meter, AHandlerWithoutAnAnswerIsAFailure) {
  const double before = requests("5xx"), active = registry().value(Id::http_active);
  {
    routes::Meter meter(nullptr, http::Method::patch);
    EXPECT_EQ(registry().value(Id::http_active), active + 1);
    meter.begin();
  }
  EXPECT_EQ(requests("5xx"), before + 1);
  EXPECT_EQ(registry().value(Id::http_active), active);
}

TEST(Meter, AnAnswerIsCountedOnceByItsClass) {
  const double before = requests("4xx"), others = requests("aborted");
  {
    routes::Meter(nullptr, http::Method::patch).answered(404);
  }
  EXPECT_EQ(requests("4xx"), before + 1);
  EXPECT_EQ(requests("aborted"), others);
}

}  // namespace
}  // namespace caisson::metrics
