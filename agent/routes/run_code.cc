// POST /run_code: one program, compiled and run, as SandboxFusion's clients ask for it. What cannot be run here is SandboxError
// with HTTP 200: its clients repeat a request that gets a 5xx.
#include "agent/routes/run_code_types.h"
#include "agent/routes/table.h"
#include "agent/session/code_service.h"

namespace caisson::routes {
namespace {

CommandRunResult result_of(session::StepResult step) {
  CommandRunResult out{.status = std::move(step.status), .execution_time = step.seconds};
  if (step.return_code) out.return_code = *step.return_code;
  out.stdout_text = std::move(step.out);
  out.stderr_text = std::move(step.err);
  out.end = std::move(step.end);
  return out;
}

RunCodeResponse response_of(Result<session::Verdict> judged) {
  RunCodeResponse out;
  if (!judged) {
    out.status = "SandboxError";
    out.message = judged.error().text();
    return out;
  }
  if (judged->compiled) out.compile_result = result_of(std::move(*judged->compiled));
  if (judged->ran) out.run_result = result_of(std::move(*judged->ran));
  out.status = out.run_result && out.run_result->return_code == 0 ? "Success" : "Failed";
  out.files = std::move(judged->files);
  return out;
}

task<http::Response> run_code(Call call, RunCodeRequest body) {
  session::JudgeJob job{.code = std::move(body.code), .language = std::move(body.language)};
  job.input = std::move(body.stdin_text).value_or("");
  job.compile_timeout_s = body.compile_timeout;
  job.run_timeout_s = body.run_timeout;
  job.memory_mib = body.memory_limit_mb;
  if (body.files)
    for (auto& [path, content] : *body.files)
      if (content) job.files[path] = std::move(*content);
  if (body.fetch_files) job.fetch = std::move(*body.fetch_files);
  job.client_gone = std::shared_ptr<const bool>(call.request.peer, &call.request.peer->gone);
  auto judged = co_await call.services.code->judge(std::move(job));
  co_return http::json_response(200, encode(response_of(std::move(judged))));
}

constexpr std::size_t kBodyLimit = 32 * 1024 * 1024;  // with files, in base64

constexpr Route kRunCode[] = {
    {http::Method::post, "/run_code", "run_code", Scope::code, kFlat, Unknown::ignore, "Compile and run a program",
     bind<run_code, RunCodeResponse>(), kBodyLimit},
};

}  // namespace

Area run_code_routes() { return kRunCode; }

}  // namespace caisson::routes
