#include "launcher/egress/list/mapping.h"

#include <gtest/gtest.h>

namespace caisson::egress {
namespace {

// Where a request ends up: "place target", or "-".
std::string led(const Mappings& mappings, std::string_view host, std::string_view target, std::uint16_t port = 80) {
  const Mapping* found = find_mapping(mappings, *read_host(host), port, target);
  return found == nullptr ? "-" : place_text(*found) + " " + mapped_target(*found, target);
}
Mappings made(std::initializer_list<std::pair<std::string_view, std::string_view>> of) {
  Mappings out;
  for (const auto& [source, target] : of) out.push_back(*read_mapping(source, target));
  return out;
}

TEST(Mapping, ByHostPortAndPath) {
  const Mappings one = made({{"myapp.com", "3000"}});
  EXPECT_EQ(led(one, "MyApp.com.", "/a?b=/c"), "127.0.0.1:3000 /a?b=/c");
  EXPECT_EQ(led(one, "a.myapp.com", "/"), "-");
  EXPECT_EQ(led(one, "myapp.com", "/", 8080), "-");
  EXPECT_EQ(led(made({{"http://myapp.com:8080", ":3000"}}), "myapp.com", "/", 8080), "127.0.0.1:3000 /");
  EXPECT_EQ(led(made({{"*.staging.app.com", "localhost:3000"}}), "a.b.staging.app.com", "/"), "127.0.0.1:3000 /");
  EXPECT_EQ(led(made({{"*.staging.app.com", "localhost:3000"}}), "staging.app.com", "/"), "-");
  EXPECT_EQ(led(made({{"myapp.com", "192.168.1.5:3000"}}), "myapp.com", "/"), "192.168.1.5:3000 /");
  EXPECT_EQ(led(made({{"myapp.com", "[2a00::1]:3000/x"}}), "myapp.com", "/y"), "[2a00::1]:3000 /x/y");
}

TEST(Mapping, PathsAreWholeSegments) {
  const Mappings of_segment = made({{"a.com/v1", "1"}}), of_folder = made({{"a.com/v1/*", "1"}});
  for (const std::string_view target : {"/v1/x", "/v1/", "/v1/x?/v2"}) {
    EXPECT_NE(led(of_segment, "a.com", target), "-") << target;
    EXPECT_NE(led(of_folder, "a.com", target), "-") << target;
  }
  EXPECT_NE(led(of_segment, "a.com", "/v1?x"), "-");
  EXPECT_EQ(led(of_folder, "a.com", "/v1?x"), "-");
  for (const std::string_view target : {"/v12", "/", "/?/v1/", "/V1/", "*"}) {
    EXPECT_EQ(led(of_segment, "a.com", target), "-") << target;
    EXPECT_EQ(led(of_folder, "a.com", target), "-") << target;
  }
}

TEST(Mapping, TheTargetsPathStandsInThePlaceOfTheSources) {
  EXPECT_EQ(mapped_target(*read_mapping("a.com/v1/*", ":8081/v2/"), "/v1/x?y"), "/v2/x?y");
  EXPECT_EQ(mapped_target(*read_mapping("a.com/v1/", ":8081/v2"), "/v1/x"), "/v2/x");
  EXPECT_EQ(mapped_target(*read_mapping("a.com/v1", ":8081/v2/"), "/v1/x"), "/v2/x");
  EXPECT_EQ(mapped_target(*read_mapping("a.com/v1", ":8081/v2"), "/v1?y"), "/v2?y");
  EXPECT_EQ(mapped_target(*read_mapping("a.com/v1", ":8081/"), "/v1"), "/");
  EXPECT_EQ(mapped_target(*read_mapping("a.com/v1", ":8081"), "/v1/x"), "/v1/x");
}

TEST(Mapping, TheMostExactOneCounts) {
  const Mappings all = made({{"*.com", "1"}, {"*.a.com", "2"}, {"b.a.com", "3"}, {"b.a.com/x", "4"}, {"*.a.com/x/y/z", "5"}});
  EXPECT_EQ(led(all, "z.com", "/"), "127.0.0.1:1 /");
  EXPECT_EQ(led(all, "z.a.com", "/"), "127.0.0.1:2 /");
  EXPECT_EQ(led(all, "b.a.com", "/"), "127.0.0.1:3 /");
  EXPECT_EQ(led(all, "b.a.com", "/x/y/z"), "127.0.0.1:4 /x/y/z");
}

TEST(Mapping, WhatIsNoneIsRefused) {
  for (const std::string_view source :
       {"", "/v1", "https://a.com", "ftp://a.com", "*", "*.", "a.*.com", ".a.com", "a.com:0", "a.com:99999", "a.com:x",
        "a.com/v1*", "a.com/*/x", "a.com/a b", "a.com/?x", "a.com/#", "a.com/\n", "a com"})
    EXPECT_FALSE(read_mapping(source, "3000")) << source;
  for (const std::string_view target : {"", "a.com", ":", ":0", "a b:3000", "1:2:3", "3000/a b", "3000/?x", "https://a.com:3000"})
    EXPECT_FALSE(read_mapping("a.com", target)) << target;
  EXPECT_FALSE(read_mapping(std::string(513, 'a'), "3000"));
}

TEST(Mapping, BytesAreReadAsTheyWereWritten) {
  const Mappings all = made({{"http://a.com:81/v1/*", ":3000/x"}, {"*.b.com", "c.com:80"}});
  const auto again = read_mappings(mapping_bytes(all));
  ASSERT_TRUE(again);
  EXPECT_EQ(mapping_bytes(*again), mapping_bytes(all));
  EXPECT_TRUE(read_mappings("")->empty());
  EXPECT_FALSE(read_mappings("a.com\n"));
  EXPECT_FALSE(read_mappings("a.com\n3000"));
}

}  // namespace
}  // namespace caisson::egress
