// POST /run_code: compiles and runs one program. POST /run_jupyter: runs one notebook. Both as SandboxFusion's clients send them.
// A program that cannot be run is SandboxError with HTTP 200, because clients repeat a request that gets a 5xx.
#include "agent/routes/run_code_types.h"
#include "agent/routes/table.h"
#include "agent/services/code/code_service.h"
#include "agent/services/notebook/run_notebook.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::routes {
namespace {

CommandRunResult result_of(services::StageResult stage) {
  CommandRunResult out{.status = std::move(stage.status), .execution_time = stage.seconds};
  if (stage.return_code) out.return_code = *stage.return_code;
  out.stdout_text = std::move(stage.out);
  out.stderr_text = std::move(stage.err);
  out.end = std::move(stage.end);
  return out;
}

RunCodeResponse response_of(Result<services::Verdict> ran) {
  RunCodeResponse out;
  if (!ran) {
    out.status = "SandboxError";
    out.message = ran.error().text();
    return out;
  }
  if (ran->compiled) out.compile_result = result_of(std::move(*ran->compiled));
  if (ran->ran) out.run_result = result_of(std::move(*ran->ran));
  out.status = out.run_result && out.run_result->return_code == 0 ? "Success" : "Failed";
  out.files = std::move(ran->files);
  return out;
}

std::map<std::string, std::string> files_of(std::optional<std::map<std::string, std::optional<std::string>>> files) {
  std::map<std::string, std::string> out;
  if (files)
    for (auto& [path, content] : *files)
      if (content) out[path] = std::move(*content);
  return out;
}

task<http::Response> run_code(Call call, RunCodeRequest body) {
  services::RunCodeJob job{.code = std::move(body.code), .language = std::move(body.language)};
  job.input = std::move(body.stdin_text).value_or("");
  job.compile_timeout_s = body.compile_timeout;
  job.run_timeout_s = body.run_timeout;
  job.memory_mib = body.memory_limit_mb;
  job.files = files_of(std::move(body.files));
  job.fetch = std::move(body.fetch_files).value_or(std::vector<std::string>{});
  job.args = std::move(body.args).value_or(std::vector<std::string>{});
  job.client_gone = std::shared_ptr<const bool>(call.request.peer, &call.request.peer->gone);
  auto ran = co_await call.services.workspace->code.run_code(std::move(job));
  co_return http::json_response(200, encode(response_of(std::move(ran))));
}

CellRunResult cell_of(services::KernelResult result) {
  CellRunResult out;
  for (services::KernelOutput& output : result.outputs) {
    if (output.output_type == "stream") (output.name == "stderr" ? out.stderr_text : out.stdout_text) += output.text.value_or("");
    else if (output.output_type == "error")
      out.error.push_back({{"ename", output.ename.value_or("")},
                           {"evalue", output.evalue.value_or("")},
                           {"traceback", output.traceback.value_or(std::vector<std::string>{})}});
    else if (output.data) out.display.push_back(std::move(*output.data));
  }
  return out;
}

RunJupyterResponse response_of(Result<services::NotebookVerdict> ran) {
  RunJupyterResponse out;
  if (!ran) {
    out.status = "SandboxError";
    out.message = ran.error().text();
    return out;
  }
  const bool finished = ran->status == "Finished";
  out.status = finished ? "Success" : "Failed";
  out.driver = CommandRunResult{.status = ran->status, .execution_time = ran->seconds, .stdout_text = "", .stderr_text = ""};
  if (finished) out.driver->return_code = 0;
  if (!ran->cells.empty()) out.driver->end = ran->cells.back().end;
  for (services::KernelResult& cell : ran->cells) out.cells.push_back(cell_of(std::move(cell)));
  out.files = std::move(ran->files);
  return out;
}

task<http::Response> run_jupyter(Call call, RunJupyterRequest body) {
  services::NotebookJob job{.cells = std::move(body.cells),
                            .cell_timeout_s = body.cell_timeout,
                            .total_timeout_s = body.total_timeout,
                            .memory_mib = body.memory_limit_mb,
                            .files = files_of(std::move(body.files))};
  job.fetch = std::move(body.fetch_files).value_or(std::vector<std::string>{});
  job.client_gone = std::shared_ptr<const bool>(call.request.peer, &call.request.peer->gone);
  auto ran = co_await services::run_notebook(call.services.workspace->jupyter, std::move(job));
  co_return http::json_response(200, encode(response_of(std::move(ran))));
}

constexpr std::size_t kBodyLimit = 32 * 1024 * 1024;  // with files, in base64

constexpr Route kRunCode[] = {
    {http::Method::post, "/run_code", "run_code", Scope::code, kFlat, Unknown::ignore, "Compile and run a program",
     bind<run_code, RunCodeResponse>(), kBodyLimit},
    {http::Method::post, "/run_jupyter", "run_jupyter", Scope::jupyter, kFlat, Unknown::ignore, "Run the cells of a notebook",
     bind<run_jupyter, RunJupyterResponse>(), kBodyLimit},
};

}  // namespace

Area run_code_routes() { return kRunCode; }

}  // namespace caisson::routes
