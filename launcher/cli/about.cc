// `caisson probe` and `caisson version`, as text or as a document.
#include "launcher/cli/args.h"
#include "launcher/cli/commands.h"
#include "launcher/common/base/json.h"
#include "launcher/common/ipc/ops.h"

namespace caisson::cli {

Result<int> probe_main(const Args&, const Options& options) { return print_document(probe_report(), options); }

Result<int> version_main(const Args&, const Options& options) {
  if (options.json) print_json({{"version", CAISSON_VERSION}, {"protocol", ipc::kProtocolVersion}});
  else print("caisson " CAISSON_VERSION " (protocol " + std::to_string(ipc::kProtocolVersion) + ")\n");
  return 0;
}

}  // namespace caisson::cli
