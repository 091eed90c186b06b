// The field table: it is complete, its defaults are the struct's, and schema.json and README.md are what it generates.
// CAISSON_UPDATE=1 rewrites both files.
#include "launcher/compiler/fields.h"

#include "launcher/compiler/canonical.h"
#include "launcher/compiler/mechanism_names.h"
#include "launcher/compiler/nearest.h"
#include "launcher/compiler/stages.h"
#include "tests/unit/policy/directory.h"

namespace caisson::policy {
namespace {

const std::string kPolicies = CAISSON_SOURCE_DIR "/policies/";
bool updating() { return std::getenv("CAISSON_UPDATE") != nullptr; }

TEST(Fields, SchemaIsCurrent) {
  if (updating()) std::ofstream(kPolicies + "schema.json") << schema_text();
  EXPECT_EQ(read_text(kPolicies + "schema.json"), schema_text()) << "CAISSON_UPDATE=1 unit_policy rewrites it";
}

TEST(Fields, ReferenceIsCurrent) {
  const std::string begin = "<!-- begin generated -->\n", end = "<!-- end generated -->";
  std::string text = read_text(kPolicies + "README.md");
  const auto from = text.find(begin), to = text.find(end);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos);
  const std::string now = text.substr(from + begin.size(), to - from - begin.size());
  if (updating()) {
    text.replace(from + begin.size(), now.size(), reference_text());
    std::ofstream(kPolicies + "README.md") << text;
  } else {
    EXPECT_EQ(now, reference_text()) << "CAISSON_UPDATE=1 unit_policy rewrites it";
  }
}

TEST(Fields, DefaultsAreThoseOfTheStructs) {
  Policy from_table = build(json::Value::object());
  EXPECT_EQ(to_json(from_table), to_json(Policy{}));
}

TEST(Fields, EveryLimitHasARowAndItsDefaultIsInBounds) {
  for (const Row& row : kRows) {
    const auto* limit = std::get_if<std::uint64_t Limits::*>(&row.member);
    if (limit == nullptr) continue;
    const Field* field = find_field(policy_fields(), row.pointer);
    EXPECT_EQ(std::to_string(Limits{}.**limit), field->fallback);
    EXPECT_LE(row.least, Limits{}.**limit);
    EXPECT_LE(Limits{}.**limit, row.most);
    EXPECT_EQ(row.widens, Widens::larger);
  }
}

TEST(Fields, MechanismsAreThoseOfTheTerms) {
  const auto names = split(find_field(policy_fields(), "/require")->allowed);
  ASSERT_EQ(names.size(), static_cast<std::size_t>(kMechanismCount));
  for (const auto& name : names) EXPECT_TRUE(mechanism_from(name)) << name;
  for (const char* all_of_them : {"/require", "/disable"})
    EXPECT_EQ(find_field(policy_fields(), all_of_them)->max, names.size()) << all_of_them;
}

TEST(Fields, TierChoicesAreInTheOrderOfTheEnum) {
  const auto names = split(find_field(policy_fields(), "/min_tier")->allowed);
  ASSERT_EQ(names.size(), 4U);
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(names[i], tier_name(static_cast<Tier>(i)));
}

TEST(Fields, EveryRowHasADescription) {
  for (const auto fields : {policy_fields(), set_fields()})
    for (const Field& field : fields) EXPECT_FALSE(field.doc.empty()) << field.pointer;
}

TEST(Fields, EveryFieldThatGivesSomethingSaysWhatWidensIt) {
  for (const char* pointer : {"/grants", "/devices", "/hide", "/network", "/home", "/tmp", "/disable", "/require", "/min_tier",
                              "/syscalls/allow", "/syscalls/deny", "/env/client_deny", "/umask", "/proc_shared_fallback"})
    EXPECT_NE(find_field(policy_fields(), pointer)->widens, Widens::never) << pointer;
}

TEST(Words, NearestFindsTypingErrorsOnly) {
  const std::vector<std::string> words{"processes", "memory_bytes", "execs"};
  EXPECT_EQ(nearest("procesess", words), "processes");
  EXPECT_EQ(nearest("memory_byte", words), "memory_bytes");
  EXPECT_EQ(nearest("exces", words), "execs");
  EXPECT_EQ(nearest("frobnicate", words), "");
  EXPECT_EQ(nearest(std::string(1000, 'x'), words), "");
}

TEST(Words, CanonicalPathsAndInside) {
  EXPECT_EQ(canonical("/srv/../etc/./x//y/"), "/etc/x/y");
  EXPECT_EQ(canonical("/.."), "/");
  EXPECT_EQ(canonical("//"), "/");
  EXPECT_TRUE(inside("/usr", "/usr"));
  EXPECT_TRUE(inside("/usr/lib", "/usr"));
  EXPECT_FALSE(inside("/usr2", "/usr"));
  EXPECT_FALSE(inside("/", "/usr"));
}

}  // namespace
}  // namespace caisson::policy
