// POST /run_jupyter: runs the cells of one notebook in order, by a kernel in a private session that serves nothing else and ends
// with the answer. A cell that raises is a result, and the next one is run; a timeout or a dead kernel ends the run.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/services/notebook/jupyter_service.h"

namespace caisson::services {

struct NotebookJob {
  std::vector<std::string> cells;
  double cell_timeout_s = 0, total_timeout_s = 45;  // of each cell (0: that of all cells); of all cells
  std::int64_t memory_mib = -1;                     // limit of the session; below 1: the policy's
  std::map<std::string, std::string> files;         // path to base64
  std::vector<std::string> fetch;
  std::shared_ptr<const bool> client_gone;
};
struct NotebookVerdict {
  std::string status = "Finished";  // or TimeLimitExceeded, Error
  double seconds = 0;
  std::vector<KernelResult> cells;           // those that ran
  std::map<std::string, std::string> files;  // path to base64
};

// Error: no cell was run.
[[nodiscard]] task<NotebookVerdict> run_notebook(JupyterService& service, NotebookJob job);

}  // namespace caisson::services
