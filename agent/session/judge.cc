#include "agent/session/judge.h"

#include <inside_files.h>  // generated

#include <algorithm>
#include <cmath>

#include "agent/http/base64.h"
#include "agent/session/code_report.h"
#include "agent/session/text.h"
#include "launcher/base/sys.h"

namespace caisson::session {
namespace {

constexpr std::size_t kMaxJob = 48 * 1024 * 1024;
constexpr std::size_t kMostFetched = 64;
constexpr std::size_t kMostFetchedBytes = 8 * 1024 * 1024;
constexpr double kLongestRun = 300, kShortestRun = 0.1;
constexpr std::chrono::seconds kEndGrace{5};
constexpr std::chrono::seconds kSetUp{20};

constexpr JudgeLanguage kLanguages[] = {
    {"python", "main.py", "python3", "", "python3 main.py"},
    {"nodejs", "main.js", "node", "", "node main.js"},
    {"bash", "main.sh", "bash", "", "bash main.sh"},
    {"c", "main.c", "gcc", "gcc -O1 main.c -o main -lm -pthread", "./main"},
    {"cpp", "main.cpp", "g++", "g++ -std=c++17 -O1 main.cpp -o main -pthread", "./main"},
    {"go", "main.go", "go", "go build -o main main.go", "./main"},
    {"java", "Main.java", "javac", "javac Main.java", "java -cp . -ea Main"},
    {"rust", "main.rs", "rustc", "rustc main.rs -o main", "./main"},
    {"perl", "main.pl", "perl", "", "perl main.pl"},
    {"php", "main.php", "php", "", "php main.php"},
    {"ruby", "main.rb", "ruby", "", "ruby main.rb"},
    {"lua", "main.lua", "lua", "", "lua main.lua"},
    {"R", "main.R", "Rscript", "", "Rscript main.R"},
    {"julia", "main.jl", "julia", "", "julia main.jl"},
};

bool offered(const JudgeLanguage& language, const ToolInventory& tools) {
  if (language.needs == "python3") return !tools.python.empty();
  if (language.needs == "node") return !tools.node.empty();
  return tools.tools.contains(std::string(language.needs));
}

// A command line's words; the program by its path where we know it.
std::vector<std::string> words(std::string_view line, const ToolInventory& tools) {
  std::vector<std::string> out;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    out.emplace_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  if (out[0] == "python3") out[0] = tools.python.front().path;
  else if (out[0] == "node") out[0] = tools.node.front().path;
  else if (const auto known = tools.tools.find(out[0]); known != tools.tools.end()) out[0] = known->second;
  return out;
}

std::chrono::milliseconds limit_of(double seconds) {
  if (!std::isfinite(seconds)) seconds = kLongestRun;
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::clamp(seconds, kShortestRun, kLongestRun) * 1000));
}

// As Python's subprocess tells it: the negative number of the signal.
std::optional<int> return_code_of(const BashCommand& command) {
  if (!command.exec->exit) return std::nullopt;
  const bridge::ExecExit& exit = *command.exec->exit;
  return exit.signal.empty() ? exit.exit_code : 128 - exit.exit_code;
}

// One program of the session: its input is written, its end awaited, and when its time is over, it and the session with it are
// ended.
task<StepResult> finish(SoloSession::Pointer session, SoloSession::CommandPtr command, std::string input,
                        std::chrono::milliseconds limit, std::shared_ptr<const bool> gone) {
  const bridge::Clock::time_point begin = bridge::Clock::now();
  if (!input.empty()) (void)BashCommand::write(command, std::move(input), kMaxJob);  // a program need not read its input
  (void)BashCommand::write(command, "\x04", kMaxJob);
  const bool ended = co_await await_end(command, begin + limit, std::move(gone));
  StepResult result;
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

task<SoloSession::CommandPtr> start(SoloSession::Pointer session, std::vector<std::string> argv, std::string dir) {
  bridge::ExecRequest request;
  request.argv = std::move(argv);
  request.cwd = std::move(dir);
  co_return co_await session->start(std::move(request));
}

// A regular file's content; nullopt where there is none, or it is too large. What lies there is the program's: nothing is awaited
// for longer than a moment, and only bytes come back.
task<std::optional<std::string>> fetch(SoloSession::Pointer session, std::string path, std::string dir) {
  static const std::string script = "[ -f \"$1\" ] && exec head -c " + std::to_string(kMostFetchedBytes) + " -- \"$1\"";
  std::vector<std::string> argv{"/bin/sh", "-c", script, "sh", std::move(path)};
  CO_TRY_ASSIGN(const SoloSession::CommandPtr command, co_await start(session, std::move(argv), std::move(dir)));
  (void)BashCommand::write(command, "\x04", kMaxJob);
  std::optional<std::string> content;
  if (co_await await_end(command, bridge::Clock::now() + kEndGrace) && command->exit_code == 0 && !command->out.dropped())
    content = command->out.read(0);
  co_return content;
}

// In bytes; 0: the policy's limit holds, which no job can raise.
task<std::uint64_t> memory_limit(std::shared_ptr<CodeContext> context, std::string domain, std::int64_t mib) {
  constexpr std::int64_t kMiB = 1024 * 1024;
  if (mib < 1) co_return 0U;
  CO_TRY_ASSIGN(const json::Value answer, co_await context->launcher.policy(std::move(domain)));
  const json::Value::json_pointer place("/policy/limits/memory_bytes");
  const json::Value most = answer.contains(place) ? answer[place] : json::Value();
  if (!most.is_number_integer()) co_return fail(Code::io, "the launcher's policy has no limit of memory");
  if (mib >= most.get<std::int64_t>() / kMiB) co_return 0U;
  co_return static_cast<std::uint64_t>(mib * kMiB);
}

json::Value files_json(const JudgeJob& job, const JudgeLanguage& language) {
  json::Value out = job.files;
  out[std::string(language.source)] = http::base64_encode(job.code);
  return out;
}

}  // namespace

std::span<const JudgeLanguage> judge_languages() { return kLanguages; }

std::string offered_languages(const ToolInventory& tools) {
  std::string out;
  for (const JudgeLanguage& language : kLanguages)
    if (offered(language, tools)) out += (out.empty() ? "" : ", ") + std::string(language.name);
  return out;
}

task<Verdict> run_judge(std::shared_ptr<CodeContext> context, WarmPool& pool, std::shared_ptr<const ToolInventory> tools,
                        JudgeJob job) {
  const auto language = std::ranges::find(kLanguages, std::string_view(job.language), &JudgeLanguage::name);
  if (language == std::end(kLanguages) || !offered(*language, *tools))
    co_return fail(Code::not_found,
                   "language " + quote(job.language) + " is not to be had here; there is: " + offered_languages(*tools));
  if (tools->python.empty()) co_return fail(Code::unavailable, "no Python is installed, which puts the program's files in place");
  if (job.fetch.size() > kMostFetched)
    co_return fail(Code::limit, "fetch_files names more than " + std::to_string(kMostFetched) + " files");
  const std::string dir = context->launcher.greeting().home + "/run";
  const bool is_python = language->name == "python";

  // Files are put in place by an interpreter that was started ahead. A program in Python goes on in it.
  InterpreterKind kind{{.domain = "code", .label = "run_code", .isolated = true},
                       {tools->python.front().path, "-c", std::string(inside::kPythonBoot)},
                       inside::kPythonRun};
  CO_TRY_ASSIGN(kind.place.memory_bytes, co_await memory_limit(context, kind.place.domain, job.memory_mib));
  const bool narrowed = kind.place.memory_bytes != 0;
  auto taken = co_await pool.take(std::move(kind));
  if (!taken && narrowed)
    co_return std::unexpected(std::move(taken).error().wrap("with memory_limit_MB " + std::to_string(job.memory_mib)));
  CO_TRY_ASSIGN(const Interpreter first, std::move(taken));
  const std::string nonce = sys::random_hex(16);
  json::Value frame = {{"nonce", nonce}, {"cwd", dir}, {"make", true}, {"files", files_json(job, *language)}};
  if (is_python) frame["script"] = language->source;
  else frame["files_only"] = true;
  CO_TRY(BashCommand::write(first.command, job_frame(frame), kMaxJob));
  Verdict verdict;
  const auto run_limit = limit_of(job.run_timeout_s);
  std::string input = is_python ? job.input : "";
  const std::chrono::milliseconds limit = is_python ? run_limit : std::chrono::milliseconds(kSetUp);
  CO_TRY_ASSIGN(StepResult placed, co_await finish(first.session, first.command, std::move(input), limit, job.client_gone));
  const auto report = find_report(placed.err, nonce);
  if (report && report->value.contains("refused"))
    co_return fail(Code::invalid_argument, "cannot be put in place: " + json::dump(report->value["refused"]));
  if (is_python) {
    verdict.ran = std::move(placed);
  } else {
    if (placed.return_code != 0)
      co_return fail(Code::io, "the files could not be put in place: " + quote(placed.err.substr(0, 200)));
    if (!language->compile.empty()) {
      CO_TRY_ASSIGN(const auto compiler, co_await start(first.session, words(language->compile, *tools), dir));
      CO_TRY_ASSIGN(verdict.compiled,
                    co_await finish(first.session, compiler, "", limit_of(job.compile_timeout_s), job.client_gone));
      if (verdict.compiled->return_code != 0) co_return verdict;
    }
    CO_TRY_ASSIGN(const auto program, co_await start(first.session, words(language->run, *tools), dir));
    CO_TRY_ASSIGN(verdict.ran, co_await finish(first.session, program, std::move(job.input), run_limit, job.client_gone));
  }
  for (const std::string& path : job.fetch) {
    if (!first.session->alive()) break;
    CO_TRY_ASSIGN(const auto content, co_await fetch(first.session, path, dir));
    if (content) verdict.files[path] = http::base64_encode(*content);
  }
  co_return verdict;
}

}  // namespace caisson::session
