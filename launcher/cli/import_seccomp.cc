// Seccomp profiles (policy_import.h). A profile's rules for one call are the union of their conditions, as a set's any_of is;
// what a set cannot say is left out, so that the call is refused.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "launcher/cli/policy_import.h"
#include "launcher/common/tables/fields.h"
#include "launcher/compiler/text_formats.h"

namespace caisson::cli {
namespace {

constexpr std::size_t kMaxRules = 200, kMaxRows = 80, kMaxConditions = 6;
constexpr std::uint64_t kInt = 0xffffffff;

#if defined(__x86_64__)
constexpr std::string_view kArchNames[] = {"amd64", "x86_64", "SCMP_ARCH_X86_64"};
#elif defined(__aarch64__)
constexpr std::string_view kArchNames[] = {"arm64", "aarch64", "SCMP_ARCH_AARCH64"};
#else
constexpr std::string_view kArchNames[] = {"unknown"};
#endif

struct Call {
  bool always = false;
  json::Value rows = json::Value::array();        // any_of
  json::Value exceptions = json::Value::array();  // refuse_if
};

std::vector<std::string> strings(const json::Value& object, const char* key) {
  std::vector<std::string> out;
  const auto list = object.is_object() ? object.find(key) : object.end();
  if (object.is_object() && list != object.end() && list->is_array())
    for (const json::Value& item : *list)
      if (item.is_string()) out.push_back(item.get<std::string>());
  return out;
}

std::string listed(const std::vector<std::string>& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size() && i < 12; ++i) out += (i == 0 ? "" : " ") + words[i];
  return words.size() > 12 ? out + " and " + std::to_string(words.size() - 12) + " more" : out;
}

class SeccompImport {
 public:
  SeccompImport(const json::Value& profile, std::string name) : profile_(profile), name_(std::move(name)) {}

  Result<Imported> run(const std::vector<std::string>& refused) {
    const std::string by_default = json::text_of(profile_, "defaultAction");
    if (by_default != "SCMP_ACT_ERRNO" && !by_default.starts_with("SCMP_ACT_KILL") && by_default != "SCMP_ACT_TRAP")
      return fail(Code::invalid_argument, "defaultAction is " + quote(by_default) +
                                              ": a profile that allows what it does not name has no counterpart, a set lists "
                                              "what is allowed");
    say("defaultAction " + by_default + ": a call in no set answers ENOSYS here, whatever the profile's errno is");
    header();
    const auto list = profile_.find("syscalls");
    if (list == profile_.end() || !list->is_array()) return fail(Code::invalid_argument, "'syscalls' is not a list");
    for (const json::Value& rule : *list) TRY(add(rule));
    return finish(refused);
  }

 private:
  void say(std::string line) { out_.report.push_back(std::move(line)); }

  void header() {
    static const std::set<std::string> kKnown{"defaultAction", "defaultErrnoRet", "archMap",
                                              "architectures", "syscalls",        "comment"};
    for (const auto& [key, value] : profile_.items())
      if (!kKnown.contains(key)) say(quote(key, 64) + " has no counterpart");
    if (profile_.contains("archMap") || profile_.contains("architectures"))
      say("architectures: only the machine's own is let in; calls of 32-bit programs are killed");
  }

  // Whether a rule holds in a session: on this machine, without any capability.
  bool applies(const json::Value& rule, const std::vector<std::string>& names) {
    const json::Value none = json::Value::object();
    const json::Value& includes = rule.contains("includes") && rule["includes"].is_object() ? rule["includes"] : none;
    const json::Value& excludes = rule.contains("excludes") && rule["excludes"].is_object() ? rule["excludes"] : none;
    const auto ours = [](const std::vector<std::string>& arches) {
      return std::ranges::any_of(arches,
                                 [](const std::string& a) { return std::ranges::find(kArchNames, a) != std::end(kArchNames); });
    };
    if (const auto caps = strings(includes, "caps"); !caps.empty()) {
      say("with " + listed(caps) + " only, which no session has: " + listed(names) + " left out");
      return false;
    }
    if (const auto arches = strings(includes, "arches"); !arches.empty() && !ours(arches)) return false;
    if (ours(strings(excludes, "arches"))) return false;
    for (const json::Value* when : {&includes, &excludes})
      for (const auto& [key, value] : when->items())
        if (key != "caps" && key != "arches") {
          say(quote(key, 64) + " " + json::dump(value) + " is not asked here: " + listed(names) + " left out");
          return false;
        }
    return true;
  }

  Status add(const json::Value& rule) {
    if (!rule.is_object()) return fail(Code::invalid_argument, "a rule is not an object");
    std::vector<std::string> names = strings(rule, "names");
    if (const std::string one = json::text_of(rule, "name"); !one.empty()) names.push_back(one);
    if (names.empty()) return fail(Code::invalid_argument, "a rule names no system call");
    for (const std::string& call : names)
      if (const auto fault = policy::form_fault(policy::Form::syscall, call)) return fail(Code::invalid_argument, fault->what);
    if (!applies(rule, names)) return {};
    const std::string action = json::text_of(rule, "action");
    if (action == "SCMP_ACT_ALLOW") return allow(rule, names);
    const bool has_args = rule.contains("args") && rule["args"].is_array() && !rule["args"].empty();
    if (has_args) {
      say(action + " with conditions on " + listed(names) + " has no counterpart: these calls are refused altogether");
      denied_.insert(names.begin(), names.end());
      return {};
    }
    const auto error = json::get_int(rule, "errnoRet");
    const std::int64_t number = error && *error ? **error : 1;
    if (action == "SCMP_ACT_ERRNO" && number == ENOSYS) return {};  // as every call in no set
    if (action != "SCMP_ACT_ERRNO") say(action + " on " + listed(names) + " has no counterpart: they answer EPERM");
    else if (number != EPERM) say("errno " + errno_name(static_cast<int>(number)) + " of " + listed(names) + " becomes EPERM");
    denied_.insert(names.begin(), names.end());
    return {};
  }

  // One condition in our terms; nullopt: it has none.
  static std::optional<json::Value> condition(const json::Value& arg) {
    static const std::map<std::string, std::string> kOps{{"SCMP_CMP_NE", "ne"},
                                                         {"SCMP_CMP_LT", "lt"},
                                                         {"SCMP_CMP_LE", "le"},
                                                         {"SCMP_CMP_EQ", "eq"},
                                                         {"SCMP_CMP_GE", "ge"},
                                                         {"SCMP_CMP_GT", "gt"},
                                                         {"SCMP_CMP_MASKED_EQ", "masked_eq"}};
    const auto op = arg.is_object() ? kOps.find(json::text_of(arg, "op")) : kOps.end();
    if (op == kOps.end() || !arg.contains("index") || !arg["index"].is_number_unsigned() ||
        arg["index"].get<std::uint64_t>() > 5 || !arg.contains("value") || !arg["value"].is_number_unsigned())
      return std::nullopt;
    json::Value out{{"index", arg["index"]}, {"op", op->second}, {"value", arg["value"]}};
    if (op->second == "masked_eq") {
      const std::uint64_t mask = arg["value"].get<std::uint64_t>();
      const json::Value second = arg.value("valueTwo", json::Value(0U));
      if (mask == 0 || !second.is_number_unsigned() || (second.get<std::uint64_t>() & ~mask) != 0) return std::nullopt;
      out["mask"] = mask;
      out["value"] = second;
    }
    return out;
  }

  Status allow(const json::Value& rule, const std::vector<std::string>& names) {
    const auto args = rule.find("args");
    if (args == rule.end() || args->is_null() || (args->is_array() && args->empty())) {
      for (const std::string& call : names) calls_[call].always = true;
      return {};
    }
    json::Value row = json::Value::array();
    std::set<std::uint64_t> indexes;
    bool good = args->is_array() && args->size() <= kMaxConditions;
    for (std::size_t i = 0; good && i < args->size(); ++i) {
      const auto c = condition((*args)[i]);
      good = c.has_value();
      if (good) row.push_back(*c);
      if (good && !indexes.insert((*c)["index"].get<std::uint64_t>()).second) good = false;
    }
    if (!good) {
      say("conditions on " + listed(names) + " have no counterpart (form, or one argument compared twice): left out");
      return {};
    }
    // "Not 40" on an int passes with garbage in the upper half, which the kernel cuts off: said as an exception, it does not.
    const json::Value& only = row[0];
    const bool exception = row.size() == 1 && only["op"] == "ne" && only["value"].get<std::uint64_t>() <= kInt;
    if (exception) say("a comparison NE of " + listed(names) + " looks at the lower half of the argument, as the kernel does");
    for (const std::string& call : names) {
      Call& known = calls_[call];
      if (exception)
        known.exceptions.push_back({{{"index", only["index"]}, {"op", "masked_eq"}, {"value", only["value"]}, {"mask", kInt}}});
      else known.rows.push_back(row);
    }
    return {};
  }

  Result<Imported> finish(const std::vector<std::string>& refused) {
    json::Value rules = json::Value::array();
    std::vector<std::string> always, dangerous;
    for (auto& [name, call] : calls_) {
      if (denied_.contains(name)) {
        say(quote(name) + " is allowed by one rule and refused by another: refused");
        continue;
      }
      if (std::ranges::find(refused, name) != refused.end()) dangerous.push_back(name);
      if (call.always) {
        always.push_back(name);
        continue;
      }
      const bool both = !call.rows.empty() && !call.exceptions.empty();
      if (both || call.exceptions.size() > 1 || call.rows.size() > kMaxRows) {
        // Allowed when any of several exceptions does not hold is allowed nearly always; the sense is none of them.
        if (both || call.rows.size() > kMaxRows) {
          say("conditions on " + quote(name) + " mix allowing and excepting, or are too many: left out");
          continue;
        }
        say("the profile excepts several values of one argument of " + quote(name) + ": here none of them is allowed");
      }
      rules.push_back({{"names", {name}}});
      rules.back()[call.exceptions.empty() ? "any_of" : "refuse_if"] = call.exceptions.empty() ? call.rows : call.exceptions;
    }
    for (std::size_t at = 0; at < always.size(); at += kMaxRules)
      rules.push_back({{"names", std::vector<std::string>(
                                     always.begin() + static_cast<std::ptrdiff_t>(at),
                                     always.begin() + static_cast<std::ptrdiff_t>(std::min(always.size(), at + kMaxRules)))}});
    if (rules.empty()) return fail(Code::invalid_argument, "nothing of the profile can be allowed");
    if (rules.size() > kMaxRules) return fail(Code::limit, "more than " + std::to_string(kMaxRules) + " calls with conditions");
    if (!dangerous.empty())
      say("WIDER than the shipped sets, which refuse by name: " + listed(dangerous) + "; take out what is not needed");
    out_.document = {
        {"name", name_}, {"why", "Imported from a seccomp profile; each call is allowed as it is there."}, {"allow", rules}};
    std::vector<std::string> names(denied_.begin(), denied_.end());
    for (std::size_t at = 0; at < names.size(); at += kMaxRules)
      out_.document["refuse"].push_back({{"names", std::vector<std::string>(names.begin() + static_cast<std::ptrdiff_t>(at),
                                                                            names.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                                                names.size(), at + kMaxRules)))},
                                         {"why", "Refused by name in the imported profile."}});
    return std::move(out_);
  }

  const json::Value& profile_;
  const std::string name_;
  Imported out_;
  std::map<std::string, Call> calls_;
  std::set<std::string> denied_;
};

}  // namespace

Result<Imported> import_seccomp(const json::Value& profile, const std::string& name, const std::vector<std::string>& refused) {
  if (!profile.is_object()) return fail(Code::invalid_argument, "a profile is an object");
  if (const auto fault = policy::form_fault(policy::Form::domain, name))
    return fail(Code::invalid_argument, "--name: " + fault->what);
  // Of an OCI runtime's config.json it is the member linux.seccomp (runtime-spec, config-linux.md).
  const nlohmann::json::json_pointer oci("/linux/seccomp");
  const json::Value& own = profile.contains(oci) ? profile[oci] : profile;
  if (!own.is_object()) return fail(Code::invalid_argument, "/linux/seccomp is an object");
  return SeccompImport(own, name).run(refused);
}

}  // namespace caisson::cli
