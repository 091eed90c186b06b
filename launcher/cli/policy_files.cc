// Which policies a command reads, and expectations (policies/tests/*.json): strictly, with every problem at once, as policies
// are.
#include "launcher/cli/policy_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "launcher/common/base/sys.h"
#include "launcher/common/egress/trust.h"
#include "launcher/compiler/fields.h"
#include "launcher/compiler/nearest.h"
#include "launcher/compiler/summary.h"
#include "launcher/compiler/text_formats.h"
#include "launcher/compiler/volumes.h"

namespace caisson::cli {
namespace {

constexpr std::size_t kMaxFile = 256 * 1024, kMaxFiles = 64, kMaxExpectations = 200, kMaxArguments = 64;

struct Verb {
  std::string_view name;
  std::string_view object;  // the member that names what; empty: argv
  bool can, cannot;         // which of both there is
};
constexpr Verb kVerbs[] = {{"read", "path", true, true},    {"write", "path", true, true},   {"see", "path", true, true},
                           {"run", "", true, true},         {"connect", "to", true, true},   {"listen", "at", true, true},
                           {"call", "syscall", true, true}, {"exceed", "limit", false, true}};
constexpr std::string_view kTriedLimits[] = {"open_files", "file_size_bytes", "tmp_bytes", "cpu_seconds"};

const Verb* find_verb(std::string_view name) {
  for (const Verb& v : kVerbs)
    if (v.name == name) return &v;
  return nullptr;
}

Status check_object(const Verb& verb, Expectation& e) {
  if (verb.object == "path")
    if (const auto fault = policy::form_fault(policy::Form::path, e.object); fault && e.object != "/")
      return fail(Code::invalid_argument, fault->what);
  if (verb.object == "syscall")
    if (const auto fault = policy::form_fault(policy::Form::syscall, e.object)) return fail(Code::invalid_argument, fault->what);
  if (verb.object == "limit" && std::ranges::find(kTriedLimits, e.object) == std::end(kTriedLimits)) {
    std::string known;
    for (const std::string_view limit : kTriedLimits) known.append(" ").append(limit);
    return fail(Code::invalid_argument, "limit " + quote(e.object) + " cannot be tried without a cgroup; one of:" + known);
  }
  return {};
}

Status read_lists(const json::Value& object, Expectation& e) {
  for (const json::Value& word : object.value("argv", json::Value::array())) {
    if (!word.is_string() || word.get_ref<const std::string&>().contains('\0'))
      return fail(Code::invalid_argument, "'argv' must be a list of strings without NUL");
    e.argv.push_back(word.get<std::string>());
  }
  for (const json::Value& number : object.value("args", json::Value::array())) {
    if (!number.is_number_unsigned()) return fail(Code::invalid_argument, "'args' must be a list of whole numbers");
    e.args.push_back(number.get<std::uint64_t>());
  }
  if (e.argv.size() > kMaxArguments || e.args.size() > 6) return fail(Code::invalid_argument, "too many arguments");
  return {};
}

void read_members(const policy::Source& source, TestFile& out, policy::Problems& problems) {
  static const std::vector<std::string> kKnown{"description", "domain", "preset", "expect"};
  for (const auto& [key, value] : source.doc.items()) {
    const std::string pointer = "/" + json::pointer_token(key);
    if (std::ranges::find(kKnown, key) == kKnown.end())
      problems.add(source, pointer, "unknown field " + quote(key, 64), policy::nearest(key, kKnown));
    else if (key != "expect" && !value.is_string()) problems.add(source, pointer, "must be a string");
  }
  if (problems.count() > 0) return;
  out.domain = source.doc.value("domain", "");
  out.preset = source.doc.value("preset", "");
  if (out.domain.empty()) problems.add(source, "", "field 'domain' is missing");
  const auto list = source.doc.find("expect");
  if (list == source.doc.end() || !list->is_array() || list->empty() || list->size() > kMaxExpectations)
    return problems.add(source, "/expect", "must be a list of 1 to " + std::to_string(kMaxExpectations) + " expectations");
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string pointer = "/expect/" + std::to_string(i);
    auto e = expectation_from((*list)[i]);
    if (!e) {
      problems.add(source, pointer, e.error().what);
      continue;
    }
    e->line = source.lines.at(pointer);
    out.expect.push_back(std::move(*e));
  }
}

}  // namespace

Result<policy::Choice> choose(const Options& options, const std::string& preset) {
  policy::Choice out{.only = "", .preset = preset, .mounts = {}, .authorities = !egress::operators_authorities().empty()};
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  confine::Volumes volumes{
      .places = variable("CAISSON_MOUNTS"), .own = {options.policies, options.audit, options.run}, .table = {}};
  if (volumes.places.empty()) return out;
  for (const char* name : {"CAISSON_HOME", "CAISSON_WORKSPACES", "CAISSON_ATTEST_KEY"}) volumes.own.push_back(variable(name));
  TRY_ASSIGN(volumes.table, sys::read_file("/proc/self/mountinfo", confine::kMaxMountTable));
  TRY_ASSIGN(out.mounts, confine::volume_grants(volumes));
  return out;
}

std::string Expectation::text() const {
  std::string out = std::string(can ? "can " : "cannot ") + verb + " ";
  if (verb == "run") {
    std::string words;
    for (const std::string& word : argv) words += (words.empty() ? "" : " ") + word;
    return out + (argv.empty() ? quote(object) : words.size() <= 60 ? words : words.substr(0, 57) + "...");
  }
  out += object;
  for (const std::uint64_t arg : args) out += " " + std::to_string(arg);
  return out;
}

json::Value to_json(const Expectation& e) {
  json::Value out{{e.can ? "can" : "cannot", e.verb}};
  const Verb* verb = find_verb(e.verb);
  if (verb->object.empty()) out["argv"] = e.argv;
  else out[std::string(verb->object)] = e.object;
  if (!e.args.empty()) out["args"] = e.args;
  if (e.error != 0) out["errno"] = errno_name(e.error);
  return out;
}

Result<Expectation> expectation_from(const json::Value& object) {
  if (!object.is_object()) return fail(Code::invalid_argument, "must be an object");
  Expectation e;
  e.can = object.contains("can");
  if (e.can == object.contains("cannot")) return fail(Code::invalid_argument, "must have one of 'can' and 'cannot'");
  TRY_ASSIGN(const auto name, json::get_string(object, e.can ? "can" : "cannot"));
  std::vector<std::string> names;
  for (const Verb& v : kVerbs) names.emplace_back(v.name);
  const Verb* verb = find_verb(name.value_or(""));
  if (verb == nullptr) {
    const std::string meant = policy::nearest(name.value_or(""), names);
    return fail(Code::invalid_argument, "unknown " + quote(name.value_or(""), 64) +
                                            ", must be one of: read write see run connect listen call exceed" +
                                            (meant.empty() ? "" : "; meant '" + meant + "'?"));
  }
  if (e.can ? !verb->can : !verb->cannot)
    return fail(Code::invalid_argument, "there is only \"cannot\" with " + quote(verb->name));
  e.verb = verb->name;
  for (const auto& [key, value] : object.items()) {
    const bool known = key == (e.can ? "can" : "cannot") || key == verb->object || key == "why" ||
                       (verb->object.empty() && key == "argv") || (verb->name == "call" && key == "args") ||
                       (!e.can && key == "errno");
    if (!known) return fail(Code::invalid_argument, "unknown member " + quote(key, 64) + " with " + quote(verb->name));
  }
  if (verb->object.empty() ? !object.contains("argv") : !object.contains(verb->object))
    return fail(Code::invalid_argument, "'" + std::string(verb->object.empty() ? "argv" : verb->object) + "' is missing");
  for (const char* list : {"argv", "args"})
    if (object.contains(list) && !object[list].is_array())
      return fail(Code::invalid_argument, "'" + std::string(list) + "' must be a list");
  TRY(read_lists(object, e));
  if (verb->object.empty() && e.argv.empty()) return fail(Code::invalid_argument, "'argv' is empty");
  if (!verb->object.empty()) {
    TRY_ASSIGN(const auto what, json::get_string(object, verb->object));
    e.object = what.value_or("");
    TRY(check_object(*verb, e));
  }
  TRY_ASSIGN(const auto error, json::get_string(object, "errno"));
  if (error) {
    for (int number = 1; number < 134 && e.error == 0; ++number)
      if (errno_name(number) == *error) e.error = number;
    if (e.error == 0) return fail(Code::invalid_argument, "no such errno: " + quote(*error, 64));
  }
  return e;
}

TestFiles load_test_file(const std::string& path) {
  policy::Source source{.file = path, .doc = {}, .lines = {}};
  policy::Problems problems;
  TestFile file{.file = path};
  const auto text = sys::read_file(path, kMaxFile);
  auto doc = text ? json::parse_with_lines(*text, {.max_bytes = kMaxFile, .max_depth = 8, .max_values = 16 * 1024}, source.lines)
                  : std::unexpected(text.error());
  if (!doc) return {{}, {{path, 0, "", doc.error().text(), ""}}};
  source.doc = std::move(*doc);
  if (!source.doc.is_object()) problems.add(source, "", "must be an object");
  else read_members(source, file, problems);
  return {{std::move(file)}, problems.take()};
}

TestFiles load_tests(const std::string& path) {
  TestFiles out;
  const std::vector<std::string> names = policy::json_names(path);
  if (names.size() > kMaxFiles) {
    out.problems.push_back({path, 0, "", "more than " + std::to_string(kMaxFiles) + " files", ""});
    return out;
  }
  for (const std::string& name : names) {
    TestFiles one = load_test_file(path + "/" + name + ".json");
    out.problems.insert(out.problems.end(), one.problems.begin(), one.problems.end());
    for (TestFile& file : one.files) out.files.push_back(std::move(file));
  }
  return out;
}

}  // namespace caisson::cli
