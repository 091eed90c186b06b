#include "agent/services/code/run_code.h"

#include <inside_files.h>  // generated

#include <algorithm>
#include <cmath>

#include "agent/frames/frame.h"
#include "agent/http/base64.h"
#include "agent/metrics/registry.h"
#include "agent/services/code/code_report.h"
#include "agent/services/common/text.h"
#include "agent/services/program/packed_files.h"
#include "launcher/common/base/sys.h"

namespace caisson::services {
namespace {

constexpr std::size_t kMaxProgram = 48 * 1024 * 1024;  // with its files
constexpr double kLongestRun = 300, kShortestRun = 0.1;
constexpr std::chrono::minutes kRoomWait{10};
constexpr std::string_view kStarter = "caisson-starter";

std::chrono::milliseconds limit_of(double seconds) {
  if (!std::isfinite(seconds)) seconds = kLongestRun;
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::clamp(seconds, kShortestRun, kLongestRun) * 1000));
}

// As in Python's subprocess: the negative number of the signal.
std::optional<int> return_code_of(const Command& command) {
  if (!command.exec->exit) return std::nullopt;
  const bridge::ExecExit& exit = *command.exec->exit;
  return exit.signal.empty() ? exit.exit_code : 128 - exit.exit_code;
}

// Writes the input of one program of the session and awaits its end. At its timeout the session is ended.
task<StageResult> finish(SoloSession::Pointer session, SoloSession::CommandPtr command, std::string input,
                         std::chrono::milliseconds limit, std::shared_ptr<const bool> gone) {
  const bridge::Clock::time_point begin = bridge::Clock::now();
  if (!input.empty()) (void)Command::write(command, std::move(input), kMaxProgram);  // a program need not read its input
  (void)Command::write(command, "\x04", kMaxProgram);
  const bool ended = co_await await_end(command, begin + limit, std::move(gone));
  StageResult result;
  result.seconds = std::chrono::duration<double>(bridge::Clock::now() - begin).count();
  if (!ended) {
    CO_TRY(co_await session->end("a step did not end in its time"));
    (void)co_await await_end(command, bridge::Clock::now() + kEndGrace);
  }
  result.status = ended ? "Finished" : "TimeLimitExceeded";
  if (ended) result.return_code = return_code_of(*command);
  result.end = ended ? end_of_program(*session, *command, result.return_code.value_or(0))
                     : bridge::time_end("timeout_ms", limit.count(), static_cast<std::int64_t>(result.seconds * 1000));
  result.out = whole_text(command->out, 0);
  result.err = whole_text(command->err, 0);
  if (!ended || result.return_code == 0) co_return result;
  if (const std::string why = co_await why_ended(session, command); !why.empty() && !why.starts_with("ended by"))
    result.err += (result.err.empty() || result.err.ends_with('\n') ? "" : "\n") + why + "\n";
  co_return result;
}

task<SoloSession::CommandPtr> start(SoloSession::Pointer session, std::vector<std::string> argv, std::string dir,
                                    bool tool = false) {
  bridge::ExecRequest request;
  request.tool = tool;
  request.argv = std::move(argv);
  request.cwd = std::move(dir);
  co_return co_await session->start(std::move(request));
}

// A regular file's content; nullopt: it is missing or too large. The file belongs to the untrusted program, so the wait is
// short and only bytes come back.
task<std::optional<std::string>> fetch(SoloSession::Pointer session, std::string path, std::string dir) {
  static const std::string script = "[ -f \"$1\" ] && exec head -c " + std::to_string(kMostFetchedBytes) + " -- \"$1\"";
  std::vector<std::string> argv{"/bin/sh", "-c", script, "sh", std::move(path)};
  CO_TRY_ASSIGN(const SoloSession::CommandPtr command, co_await start(session, std::move(argv), std::move(dir)));
  (void)Command::write(command, "\x04", kMaxProgram);
  std::optional<std::string> content;
  if (co_await await_end(command, bridge::Clock::now() + kEndGrace) && command->exit_code == 0 && !command->out.dropped())
    content = command->out.read(0);
  co_return content;
}

// Clients of /run_code send all their programs at once. When every session is in use, a program waits for its turn. The server's
// limit of connections bounds how many wait.
task<Interpreter> take_in_turn(std::shared_ptr<CodeContext> context, WarmPool& pool, InterpreterKind kind,
                               std::shared_ptr<const bool> gone) {
  const std::function<bool()> enough = [&pool, &gone, until = bridge::Clock::now() + kRoomWait] {
    return pool.waiting() > 0 || (gone && *gone) || bridge::Clock::now() > until;
  };
  co_await context->quota->room(enough);
  if (gone && *gone) co_return fail(Code::unavailable, "the client has gone");
  co_return co_await pool.take(std::move(kind));
}

// In bytes, for each process, as SandboxFusion's setrlimit(2). The session's limit applies as well.
std::uint64_t bytes_of(std::int64_t mib) {
  constexpr std::int64_t kMost = 1LL << 40;
  return mib < 1 ? 0 : static_cast<std::uint64_t>(std::min(mib, kMost)) << 20;
}

std::string refusal_of(const json::Value& why) { return "the files cannot be written: " + json::dump(why); }

// The whole job for a waiting Python.
std::string python_job(const RunCodeJob& job, const ProgramLanguage& language, const std::string& dir, const std::string& nonce) {
  json::Value files = job.files;
  files[std::string(language.source)] = http::base64_encode(job.code);
  return job_frame({{"nonce", nonce},
                    {"cwd", dir},
                    {"make", true},
                    {"files", std::move(files)},
                    {"script", language.source},
                    {"memory", bytes_of(job.memory_mib)}});
}

// One program for the starter (agent/worker/starter.cc). files: the job's files, for its first program.
Result<std::string> starter_job(std::vector<std::string> argv, json::Value head, const RunCodeJob* files,
                                const ProgramLanguage& language) {
  PackedFiles packed;
  if (files != nullptr) {
    TRY_ASSIGN(packed, pack_files(files->files));
    packed.add(language.source, files->code);
  }
  head["argv"] = std::move(argv);
  head["files"] = std::move(packed.list);
  TRY_ASSIGN(std::string frame, frames::encode_head(std::move(head), packed.body.size()));
  return frame.append(packed.body);
}

// Hands the job to the waiting program and awaits its end.
task<StageResult> run_stage(SoloSession::Pointer session, SoloSession::CommandPtr command, std::string frame, std::string nonce,
                            std::string input, double seconds, std::shared_ptr<const bool> gone) {
  CO_TRY(Command::write(command, std::move(frame), kMaxProgram));
  CO_TRY_ASSIGN(StageResult result,
                co_await finish(std::move(session), std::move(command), std::move(input), limit_of(seconds), std::move(gone)));
  if (const auto report = find_report(result.err, nonce); report && report->value.contains("refused"))
    co_return fail(Code::invalid_argument, refusal_of(report->value["refused"]));
  co_return result;
}

}  // namespace

task<Verdict> compile_and_run(std::shared_ptr<CodeContext> context, WarmPool& pool, std::shared_ptr<const ToolInventory> tools,
                              RunCodeJob job) {
  CO_TRY_ASSIGN(const ProgramLanguage* const language, choose_language(job.language, *tools));
  metrics::registry().add(metrics::Id::runs, {language->name, "judged"});
  CO_TRY(check_fetched(job.fetch.size()));
  const std::string dir = context->launcher.greeting().home + "/run", nonce = sys::random_hex(16);
  const bool is_python = language->name == "python";

  // Prepared sessions hold either a Python, which runs the program itself, or the starter, which becomes any other program.
  InterpreterKind kind{.setup = {.domain = "code", .label = "run_code", .isolated = true},
                       .argv = {std::string(kStarter)},
                       .program = "",
                       .tool = !is_python};
  if (is_python) {
    kind.argv = {tools->python.front().path, "-c", std::string(inside::kPythonBoot)};
    kind.program = inside::kPythonRun;
  }
  CO_TRY_ASSIGN(kind.setup.memory_bytes, co_await memory_limit(context->launcher, kind.setup.domain, job.memory_mib));
  const bool narrowed = kind.setup.memory_bytes != 0;
  auto taken = co_await take_in_turn(context, pool, std::move(kind), job.client_gone);
  if (!taken && narrowed)
    co_return std::unexpected(std::move(taken).error().wrap("with memory_limit_MB " + std::to_string(job.memory_mib)));
  CO_TRY_ASSIGN(const Interpreter first, std::move(taken));
  SoloSession::CommandPtr waiting = first.command;
  Verdict verdict;
  std::string frame;
  if (is_python) {
    frame = python_job(job, *language, dir, nonce);
  } else {
    json::Value head = {{"nonce", nonce}, {"cwd", dir}};
    const bool compiled = !language->compile.empty();
    if (compiled) {
      CO_TRY_ASSIGN(frame, starter_job(command_words(language->compile, *tools), head, &job, *language));
      CO_TRY_ASSIGN(verdict.compiled, co_await run_stage(first.session, std::move(waiting), std::move(frame), nonce, "",
                                                         job.compile_timeout_s, job.client_gone));
      if (verdict.compiled->return_code != 0) co_return verdict;
      CO_TRY_ASSIGN(waiting, co_await start(first.session, {std::string(kStarter)}, "/", true));
    }
    std::vector<std::string> argv = command_words(language->run, *tools);
    if (language->name == "pytest") argv.insert(argv.end(), job.args.begin(), job.args.end());
    if (job.memory_mib > 0 && !language->reserves) head["memory"] = bytes_of(job.memory_mib);
    CO_TRY_ASSIGN(frame, starter_job(std::move(argv), std::move(head), compiled ? nullptr : &job, *language));
  }
  CO_TRY_ASSIGN(verdict.ran, co_await run_stage(first.session, std::move(waiting), std::move(frame), nonce, std::move(job.input),
                                                job.run_timeout_s, job.client_gone));
  for (const std::string& path : job.fetch) {
    if (!first.session->alive()) break;
    CO_TRY_ASSIGN(const auto content, co_await fetch(first.session, path, dir));
    if (content) verdict.files[path] = http::base64_encode(*content);
  }
  co_return verdict;
}

}  // namespace caisson::services
