// `caisson policy check|explain`: reads policy files as the launcher does, needs neither it nor root.
#include <sys/stat.h>

#include <set>
#include <string>
#include <vector>

#include "launcher/cli/args.h"
#include "launcher/cli/commands.h"
#include "launcher/cli/policy_files.h"
#include "launcher/common/base/json.h"
#include "launcher/common/policy/text_checks.h"
#include "launcher/compiler/explain.h"
#include "launcher/compiler/load.h"
#include "launcher/compiler/nearest.h"
#include "launcher/compiler/summary.h"

namespace caisson::cli {
namespace {

std::vector<std::string> domains(const policy::PolicySet& policies) {
  std::vector<std::string> names;
  for (const auto& [domain, policy] : policies) names.push_back(domain);
  return names;
}

// One side of a comparison: DIR (all its domains), or [DIR/]DOMAIN[@PRESET]; "DOMAIN@" is without any preset.
struct Side {
  std::string directory, preset, domain;
};

Side parse_side(const std::string& text, const Options& options) {
  struct stat st{};
  if (text.contains('/') && ::stat(text.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) return {text, options.preset, ""};
  Side side{options.policies, options.preset, text};
  if (const auto at = side.domain.rfind('@'); at != std::string::npos) {
    side.preset = side.domain.substr(at + 1);
    side.domain.resize(at);
  }
  if (const auto slash = side.domain.rfind('/'); slash != std::string::npos) {
    side.directory = side.domain.substr(0, slash);
    side.domain.erase(0, slash + 1);
  }
  return side;
}

json::Value to_json(const policy::Difference& d) {
  json::Value out{{"topic", d.topic}, {"name", d.name}, {"why", d.why}};
  out["before"] = d.before.empty() ? json::Value() : json::Value(d.before);
  out["after"] = d.after.empty() ? json::Value() : json::Value(d.after);
  return out;
}

std::string to_text(const std::vector<policy::Difference>& list) {
  std::string out, topic;
  for (const policy::Difference& d : list) {
    if (d.topic != topic) out += (topic = d.topic) + "\n";
    std::string name = d.name;
    name.resize(std::max<std::size_t>(name.size(), 32), ' ');
    out += std::string(d.before.empty()  ? "  + "
                       : d.after.empty() ? "  - "
                                         : "  ~ ") +
           name + " " + d.before + (d.before.empty() || d.after.empty() ? "" : " -> ") + d.after +
           (d.why.empty() ? "" : "  # " + d.why) + "\n";
  }
  return out;
}

Result<int> diff(const std::vector<std::string>& words, const Options& options) {
  policy::PolicySet sets[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const Side side = parse_side(words[i], options);
    TRY_ASSIGN(const policy::Choice choice, choose(options, side.preset));
    policy::LoadResult loaded = policy::load_directory(side.directory, choice);
    if (!loaded.problems.empty()) return show_problems(loaded.problems, side.directory, options);
    if (side.domain.empty()) sets[i] = std::move(loaded.policies);
    else if (const auto at = loaded.policies.find(side.domain); at != loaded.policies.end()) sets[i]["*"] = at->second;
    else return no_domain(side.domain, side.directory, domains(loaded.policies));
  }
  if (sets[0].contains("*") != sets[1].contains("*"))
    return fail(Code::invalid_argument, "--diff: two directories or two domains, not one of each");
  json::Value document = json::Value::object();
  static const policy::Policy kNothing;
  std::set<std::string> names;
  for (const auto& set : sets)
    for (const auto& [name, policy] : set) names.insert(name);
  for (const std::string& name : names) {
    const bool in[] = {sets[0].contains(name), sets[1].contains(name)};
    const std::string title = name == "*" ? words[0] + " -> " + words[1] : "domain " + name;
    json::Value& rows = document[name == "*" ? title : name] = json::Value::object();
    if (!in[0] || !in[1]) {
      rows["only_in"] = words[in[0] ? 0 : 1];
      if (!options.json) print(title + ": only in " + words[in[0] ? 0 : 1] + "\n");
      continue;
    }
    const policy::Policy &before = *sets[0].at(name), &after = *sets[1].at(name);
    const auto list = policy::differences(before, after);
    const int scores[] = {score(policy::deductions(before)), score(policy::deductions(after))};
    rows["score"] = {{"before", scores[0]}, {"after", scores[1]}};
    rows["differences"] = json::Value::array();
    for (const policy::Difference& d : list) rows["differences"].push_back(to_json(d));
    if (!options.json)
      print(title + (list.empty()
                         ? ": the same\n"
                         : ": score " + std::to_string(scores[0]) + " -> " + std::to_string(scores[1]) + "\n" + to_text(list)));
  }
  if (options.json) print_json(document);
  return 0;
}

}  // namespace

int show_problems(const std::vector<policy::Problem>& list, const std::string& directory, const Options& options) {
  json::Value problems = json::Value::array();
  for (const policy::Problem& p : list) {
    if (!options.json) print(p.text() + "\n");
    problems.push_back({{"file", p.file}, {"line", p.line}, {"pointer", p.pointer}, {"what", p.what}, {"meant", p.meant}});
  }
  if (options.json) print_json({{"ok", false}, {"directory", directory}, {"problems", std::move(problems)}});
  return kExitBadPolicy;
}

std::unexpected<Error> no_domain(const std::string& name, const std::string& directory, const std::vector<std::string>& known) {
  const std::string meant = policy::nearest(name, known);
  return fail(Code::not_found, "no policy for domain " + quote(name) + " in " + quote(directory) +
                                   (meant.empty() ? "" : "; meant '" + meant + "'?"));
}

Result<int> policy_check(const Args& args, const Options& options) {
  const std::string directory = args.words().empty() ? options.policies : args.words()[0];
  TRY_ASSIGN(policy::Choice choice, choose(options, options.preset));
  const policy::LoadResult loaded = policy::load_directory(directory, choice);
  if (!loaded.problems.empty()) return show_problems(loaded.problems, directory, options);
  // Then every preset over every domain, and every expectation beside them.
  std::vector<policy::Problem> problems;
  const std::vector<std::string> presets = policy::preset_names(directory);
  for (const std::string& preset : presets) {
    choice.preset = preset;
    for (policy::Problem& p : policy::load_directory(directory, choice).problems) {
      p.what += " (preset " + quote(preset) + ")";
      problems.push_back(std::move(p));
    }
  }
  const TestFiles tests = load_tests(directory + "/tests");
  problems.insert(problems.end(), tests.problems.begin(), tests.problems.end());
  if (!problems.empty()) return show_problems(problems, directory, options);
  json::Value digests = json::Value::object();
  for (const auto& [domain, policy] : loaded.policies) {
    digests[domain] = policy->digest;
    if (!options.json) print(domain + ": ok, sha256 " + policy->digest + "\n");
  }
  for (const std::string& preset : presets)
    if (!options.json) print("preset " + preset + ": ok\n");
  if (options.json)
    print_json({{"ok", true},
                {"directory", directory},
                {"preset", options.preset},
                {"presets", presets},
                {"domains", std::move(digests)}});
  return 0;
}

Result<int> policy_explain(const Args& args, const Options& options) {
  const bool two = args.words().size() == 2;
  if (args.has("--diff") != two)
    return fail(Code::invalid_argument, two ? "two names: is --diff missing?" : "--diff compares two");
  if (two) return diff(args.words(), options);
  TRY_ASSIGN(const policy::Choice choice, choose(options, options.preset));
  const policy::LoadResult loaded = policy::load_directory(options.policies, choice);
  if (!loaded.problems.empty()) return show_problems(loaded.problems, options.policies, options);
  const auto at = loaded.policies.find(args.words()[0]);
  if (at == loaded.policies.end()) return no_domain(args.words()[0], options.policies, domains(loaded.policies));
  if (options.json) print_json(policy::explain(*at->second));
  else print(policy::explain_text(*at->second));
  return 0;
}

}  // namespace caisson::cli
