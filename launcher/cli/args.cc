#include "launcher/cli/args.h"

#include "launcher/common/policy/text_checks.h"
#include "launcher/compiler/nearest.h"

namespace caisson::cli {
namespace {

std::unexpected<Error> unknown(std::string_view flag, std::span<const Flag> flags) {
  std::vector<std::string> names = {"--json", "--help"};
  for (const Flag& f : flags) names.emplace_back(f.name);
  const std::string meant = policy::nearest(flag, names);
  return fail(Code::invalid_argument, "unknown option " + quote(flag) + (meant.empty() ? "" : "; meant '" + meant + "'?"));
}

}  // namespace

Result<Args> Args::parse(std::span<const std::string> args, std::span<const Flag> flags, std::size_t least_words,
                         std::size_t most_words) {
  Args out;
  bool only_words = false;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (only_words || arg.size() < 2 || arg[0] != '-') {
      out.words_.push_back(arg);
      if (!only_words) ++out.before_;
      continue;
    }
    if (arg == "--") {
      only_words = true;
      continue;
    }
    const std::string_view name = std::string_view(arg).substr(0, arg.find('='));
    const Flag* flag = nullptr;
    for (const Flag& f : flags)
      if (name == f.name || (!f.short_name.empty() && name == f.short_name)) flag = &f;
    if (flag == nullptr) return unknown(name, flags);
    const bool attached = name.size() < arg.size();
    if (!flag->value && attached) return fail(Code::invalid_argument, "option " + quote(name) + " takes no value");
    if (flag->value && !attached && (i + 1 == args.size() || args[i + 1] == "--"))
      return fail(Code::invalid_argument, "option " + quote(name) + " needs a value");
    const std::string value = !flag->value ? "" : attached ? arg.substr(name.size() + 1) : args[++i];
    out.values_.emplace(flag->name, value);
  }
  if (out.words_.size() < least_words) return fail(Code::invalid_argument, "an argument is missing; see --help");
  if (out.words_.size() > most_words)
    return fail(Code::invalid_argument, "one argument too many: " + quote(out.words_[most_words]));
  return out;
}

std::vector<std::string> Args::all(std::string_view name) const {
  std::vector<std::string> out;
  for (auto [at, end] = values_.equal_range(name); at != end; ++at) out.push_back(at->second);
  return out;
}

std::optional<std::string> Args::last(std::string_view name) const {
  std::vector<std::string> values = all(name);
  if (values.empty()) return std::nullopt;
  return std::move(values.back());
}

}  // namespace caisson::cli
