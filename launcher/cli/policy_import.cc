// `caisson policy import seccomp|srt FILE`.
#include "launcher/cli/policy_import.h"

#include <cstdio>

#include "launcher/cli/args.h"
#include "launcher/cli/policy_files.h"
#include "launcher/common/base/sys.h"

namespace caisson::cli {
namespace {

constexpr std::size_t kMaxImported = 1 << 20;

Result<json::Value> read_document(const std::string& path) {
  TRY_ASSIGN(const std::string text, path == "-" ? sys::read_fd(0, kMaxImported) : sys::read_file(path, kMaxImported));
  auto doc = json::parse(text, {.max_bytes = kMaxImported, .max_depth = 16, .max_values = 64 * 1024});
  if (!doc) return std::unexpected(std::move(doc.error()).wrap(quote(path)));
  return doc;
}

// The calls that the shipped policies refuse by name.
std::vector<std::string> refused_calls(const policy::Policy& base) {
  std::vector<std::string> out;
  for (const policy::SyscallSet& set : base.sets) out.insert(out.end(), set.refuse.begin(), set.refuse.end());
  return out;
}

}  // namespace

Result<int> policy_import(const Args& args, const Options& options) {
  const std::string kind = args.words()[0], file = args.words()[1];
  if (kind != "seccomp" && kind != "srt")
    return fail(Code::invalid_argument, "unknown kind " + quote(kind) + ", must be seccomp or srt");
  if (kind == "srt" && args.has("--name"))
    return fail(Code::invalid_argument, "--name goes with seccomp: the file that you save srt's policy as names it");
  const policy::LoadResult loaded = policy::load_directory(options.policies);
  if (!loaded.problems.empty()) return show_problems(loaded.problems, options.policies, options);
  TRY_ASSIGN(const json::Value doc, read_document(file));
  const auto imported = kind == "seccomp"
                            ? import_seccomp(doc, args.last("--name").value_or("imported"), refused_calls(*loaded.base))
                            : import_srt(doc, *loaded.base);
  if (!imported) return std::unexpected(Error(imported.error()).wrap(quote(file)));
  if (options.json) {
    print_json({{"ok", true}, {"document", imported->document}, {"report", imported->report}});
    return 0;
  }
  print(json::dump(imported->document, 2) + "\n");
  for (const std::string& line : imported->report) std::fprintf(stderr, "%s\n", line.c_str());
  return 0;
}

}  // namespace caisson::cli
