// `caisson policy check|explain`: reads policy files as the launcher does, needs neither it nor root.
#include <string>
#include <vector>

#include "launcher/base/json.h"
#include "launcher/cli/args.h"
#include "launcher/cli/commands.h"
#include "launcher/policy/explain.h"
#include "launcher/policy/load.h"
#include "launcher/policy/words.h"

namespace caisson::cli {
namespace {

int show_problems(const policy::LoadResult& loaded, const std::string& directory, const Options& options) {
  json::Value problems = json::Value::array();
  for (const policy::Problem& p : loaded.problems) {
    if (!options.json) print(p.text() + "\n");
    json::Value item = json::Value::object();
    item["file"] = p.file, item["line"] = p.line, item["pointer"] = p.pointer, item["what"] = p.what, item["meant"] = p.meant;
    problems.push_back(std::move(item));
  }
  if (options.json) {
    json::Value document = json::Value::object();
    document["ok"] = false;
    document["directory"] = directory;
    document["problems"] = std::move(problems);
    print_json(document);
  }
  return kExitBadPolicy;
}

std::vector<std::string> domains(const policy::PolicySet& policies) {
  std::vector<std::string> names;
  for (const auto& [domain, policy] : policies) names.push_back(domain);
  return names;
}

}  // namespace

int policy_check(Arguments words, const Options& options) {
  const auto args = Args::parse(words, {}, 0, 1);
  if (!args) return report_error(args.error(), options);
  const std::string directory = args->words().empty() ? options.policies : args->words()[0];
  const policy::LoadResult loaded = policy::load_directory(directory);
  if (!loaded.problems.empty()) return show_problems(loaded, directory, options);
  if (!options.json) {
    for (const auto& [domain, policy] : loaded.policies) print(domain + ": ok, sha256 " + policy->digest + "\n");
    return 0;
  }
  json::Value digests = json::Value::object();
  for (const auto& [domain, policy] : loaded.policies) digests[domain] = policy->digest;
  json::Value document = json::Value::object();
  document["ok"] = true;
  document["directory"] = directory;
  document["domains"] = std::move(digests);
  print_json(document);
  return 0;
}

int policy_explain(Arguments words, const Options& options) {
  const auto args = Args::parse(words, {}, 1, 1);
  if (!args) return report_error(args.error(), options);
  const policy::LoadResult loaded = policy::load_directory(options.policies);
  if (!loaded.problems.empty()) return show_problems(loaded, options.policies, options);
  const auto at = loaded.policies.find(args->words()[0]);
  if (at == loaded.policies.end()) {
    const std::string meant = policy::nearest(args->words()[0], domains(loaded.policies));
    const std::string hint = meant.empty() ? "" : "; meant '" + meant + "'?";
    const std::string what = "no policy for domain " + quote(args->words()[0]) + " in " + quote(options.policies) + hint;
    return report_error(Error(Code::not_found, what), options);
  }
  if (options.json) print_json(policy::explain(*at->second));
  else print(policy::explain_text(*at->second));
  return 0;
}

}  // namespace caisson::cli
