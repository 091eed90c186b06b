#include "agent/services/notebook/run_notebook.h"

#include <algorithm>
#include <cmath>

#include "agent/http/base64.h"
#include "agent/services/program/packed_files.h"
#include "agent/services/program/solo_session.h"

namespace caisson::services {
namespace {

constexpr double kLongestNotebook = 600;
constexpr std::size_t kMostCells = 1000;

double bounded(double seconds) { return std::isfinite(seconds) ? std::clamp(seconds, 0.1, kLongestNotebook) : kLongestNotebook; }

// However the run ends, its kernel and session end with it.
struct Closing {
  bridge::LauncherClient& launcher;
  Kernel::Pointer kernel;
  ~Closing() { spawn(launcher.executor(), "end a notebook", Kernel::close(kernel, "its work is over")); }
};

}  // namespace

task<NotebookVerdict> run_notebook(JupyterService& service, NotebookJob job) {
  CO_TRY(check_fetched(job.fetch.size()));
  if (job.cells.size() > kMostCells)
    co_return fail(Code::limit, "a notebook of more than " + std::to_string(kMostCells) + " cells");
  CO_TRY_ASSIGN(PackedFiles files, pack_files(job.files));
  CO_TRY_ASSIGN(const std::uint64_t memory, co_await memory_limit(service.launcher(), "jupyter", job.memory_mib));
  const std::string dir = service.launcher().greeting().home + "/run";
  CO_TRY_ASSIGN(const JupyterService::Alone alone, co_await service.start_alone(dir, std::move(files), memory, job.client_gone));
  const Closing closing{service.launcher(), alone.kernel};
  const bridge::Clock::time_point begin = bridge::Clock::now();
  const auto seconds = [begin] { return std::chrono::duration<double>(bridge::Clock::now() - begin).count(); };
  const double total = bounded(job.total_timeout_s), each = job.cell_timeout_s > 0 ? bounded(job.cell_timeout_s) : total;
  NotebookVerdict verdict;
  for (std::string& code : job.cells) {
    const double left = std::min(each, total - seconds());
    if (left <= 0) verdict.status = "TimeLimitExceeded";
    if (job.client_gone && *job.client_gone) verdict.status = "Error";
    if (verdict.status != "Finished") break;
    KernelCell cell{.code = std::move(code), .timeout_seconds = static_cast<int>(std::ceil(left))};
    CO_TRY_ASSIGN(KernelResult result, co_await Kernel::execute(alone.kernel, std::move(cell)));
    if (result.status == "timeout") verdict.status = "TimeLimitExceeded";
    else if (!alone.kernel->alive()) verdict.status = "Error";
    verdict.cells.push_back(std::move(result));
  }
  verdict.seconds = seconds();
  for (const std::string& path : job.fetch) {
    if (!alone.kernel->alive()) break;
    const auto content = co_await Kernel::fetch(alone.kernel, path, kMostFetchedBytes);
    if (content) verdict.files[path] = http::base64_encode(*content);
  }
  co_return verdict;
}

}  // namespace caisson::services
