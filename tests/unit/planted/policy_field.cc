// With a planted field /planted (planted.py): files, merging, presets, bytes, JSON, requests, schema and explain know it.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "launcher/compiler/canonical.h"
#include "launcher/compiler/explain.h"
#include "launcher/compiler/frozen_write.h"
#include "launcher/compiler/load.h"
#include "launcher/compiler/narrow.h"

using namespace caisson;

namespace {

int failures = 0;
void expect(bool holds, const char* what) {
  if (!holds) std::fprintf(stderr, "%s\n", what), ++failures;
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  std::filesystem::permissions(path, std::filesystem::perms(0644));
}

std::string first_problem(const policy::LoadResult& loaded) { return loaded.problems.empty() ? "" : loaded.problems[0].text(); }

}  // namespace

int main() {
  char name[] = "/tmp/caisson-planted-XXXXXX";
  const std::string at = ::mkdtemp(name);
  std::filesystem::create_directories(at + "/seccomp");
  std::filesystem::create_directories(at + "/presets");
  write(at + "/seccomp/io.json", R"({"name": "io", "why": "for the tests", "allow": [{"names": ["read"]}]})");
  write(at + "/base.json", R"({"syscalls": {"allow": ["io"]}})");
  write(at + "/presets/strict.json", R"({"planted": false})");
  write(at + "/d.json", R"({"extends": "base", "planted": true})");
  expect(first_problem(policy::load_directory(at)).contains("/planted: gives more than base: true instead of false"),
         "a wider value needs its reason");
  write(at + "/d.json", R"({"extends": "base", "planted": true, "weaken": [{"field": "/planted", "why": "for a test"}]})");
  const auto loaded = policy::load_directory(at);
  expect(first_problem(loaded).empty(), "with its reason it is taken");
  const auto strict = policy::load_directory(at, {.only = "", .preset = "strict"});
  expect(first_problem(strict).empty() && !strict.policies.at("d")->planted, "a preset takes it away");

  const auto whole = loaded.policies.at("d");
  expect(whole->planted && !policy::Policy{}.planted, "it is read, and its default is the member's");
  expect(policy::to_json(*whole).at("planted") == true, "it is in the canonical JSON");
  const auto back = policy::thaw(policy::freeze(loaded));
  expect(back && back->policies.at("d")->planted, "it comes back from bytes");

  const auto asked = policy::parse_narrowing({{"planted", false}});
  const auto narrowed = asked ? policy::narrow(whole, *asked) : std::unexpected(asked.error());
  expect(narrowed && !(*narrowed)->planted && (*narrowed)->digest != whole->digest, "a request can take it away");
  expect(!policy::parse_narrowing({{"planted", true}}), "a request cannot ask for more");

  const auto schema = *json::parse(policy::schema_text());
  expect(schema["properties"]["planted"]["type"] == "boolean" && schema["properties"]["planted"]["default"] == false,
         "it is in the schema, with its default");
  expect(policy::reference_text().contains("| `/planted` | true, false | `false` | more | A field for a test. |"),
         "it is in the reference");
  const auto explained = policy::explain(*whole);
  expect(explained["planted"]["value"] == true && explained["planted"]["why"] == "for a test", "explain has it, with its reason");
  expect(policy::explain_text(*whole).contains("planted                          yes  # for a test"), "explain says it");
  std::filesystem::remove_all(at);
  return failures == 0 ? 0 : 1;
}
