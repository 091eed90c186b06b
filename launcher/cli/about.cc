// `caisson probe` and `caisson version`, as text or as a document.
#include "launcher/base/json.h"
#include "launcher/cli/args.h"
#include "launcher/cli/commands.h"
#include "launcher/ipc/ops.h"

namespace caisson::cli {

int probe_main(Arguments args, const Options& options) {
  if (const auto parsed = Args::parse(args, {}, 0, 0); !parsed) return report_error(parsed.error(), options);
  const json::Value report = probe_report();
  if (options.json) print_json(report);
  else print(outline(report));
  return 0;
}

int version_main(Arguments args, const Options& options) {
  if (const auto parsed = Args::parse(args, {}, 0, 0); !parsed) return report_error(parsed.error(), options);
  json::Value document = json::Value::object();
  document["version"] = CAISSON_VERSION;
  document["protocol"] = ipc::kProtocolVersion;
  if (options.json) print_json(document);
  else print("caisson " CAISSON_VERSION " (protocol " + std::to_string(ipc::kProtocolVersion) + ")\n");
  return 0;
}

}  // namespace caisson::cli
