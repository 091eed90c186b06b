// The tools sandbox_*: shell, code, files, documents and screen; and that of the server markitdown. Decisions where AIO is
// silent:
// - sandbox_execute_bash works in one terminal of the workspace (kShell), so that `cd` and variables last between calls, also for
//   clients that begin a new MCP session for each call. A command that outlives its timeout is ended: no tool could reach it
//   later.
// - what models read as text (a file, a page, a list of packages) is text; everything else is the operation's `data` as JSON.
#include <cmath>

#include "agent/mcp/ask.h"
#include "agent/mcp/sandbox_types.h"
#include "agent/routes/browser_types.h"
#include "agent/routes/code_types.h"
#include "agent/routes/file_types.h"
#include "agent/routes/util_types.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::mcp {
namespace {

using routes::Scope;

constexpr std::string_view kShell = "mcp";

Outcome outcome_of(Told told) {
  if (!told.success) return error_outcome(std::move(told.message));
  if (told.data.is_object()) return structured_outcome(std::move(told.data));
  return text_outcome(told.data.is_null() ? std::move(told.message) : json::dump(told.data));
}

task<Outcome> ask_outcome(Call call, Asked asked) {
  CO_TRY_ASSIGN(Told told, co_await ask_told(std::move(call), std::move(asked)));
  co_return outcome_of(std::move(told));
}

// One text of the answer's data, for the model to read as it is.
task<Outcome> ask_text(Call call, Asked asked, std::string member) {
  CO_TRY_ASSIGN(Told told, co_await ask_told(std::move(call), std::move(asked)));
  if (!told.success) co_return error_outcome(std::move(told.message));
  const auto text = told.data.is_object() ? told.data.find(member) : told.data.end();
  if (text == told.data.end() || !text->is_string()) co_return outcome_of(std::move(told));
  Outcome out = text_outcome(text->get<std::string>());
  out.structured = std::move(told.data);
  co_return out;
}

task<Outcome> get_context(Call call, NoArguments) {
  Asked asked{.method = http::Method::get, .path = "/v1/sandbox"};
  CO_TRY_ASSIGN(Told told, co_await ask_told(std::move(call), std::move(asked)));
  if (!told.success || !told.data.is_string()) co_return error_outcome(std::move(told.message));
  co_return text_outcome(told.data.get<std::string>());
}

task<Outcome> get_packages(Call call, PackagesArguments arguments) {
  std::string text;
  for (const std::string_view language : kPackageLanguages) {
    if (arguments.language && *arguments.language != language) continue;
    Asked asked{.method = http::Method::get, .path = "/v1/sandbox/packages/" + std::string(language)};
    CO_TRY_ASSIGN(Told told, co_await ask_told(call, std::move(asked)));
    if (!told.success && arguments.language) co_return error_outcome(std::move(told.message));
    text += text.empty() ? "" : "\n";
    text += language == "python" ? "Python Packages:\n" : "Node.js Packages:\n";
    if (!told.success) text += told.message + "\n";
    else
      for (const json::Value& one : told.data)
        text += one["name"].get<std::string>() + "==" + one["version"].get<std::string>() + "\n";
  }
  co_return text_outcome(std::move(text));
}

task<Outcome> execute_bash(Call call, BashArguments arguments) {
  services::ShellService& shell = call.services.workspace->shell;
  const std::string id = arguments.new_session ? "" : std::string(kShell);
  if (!id.empty() && !shell.find(id)) {
    Asked create{.path = "/v1/shell/sessions/create", .body = {{"id", id}}};
    CO_TRY_ASSIGN(const Told made, co_await ask_told(call, std::move(create)));
    if (!made.success) co_return error_outcome(made.message);
  }
  Asked exec{.path = "/v1/shell/exec"};
  exec.body = {{"id", id},
               {"command", std::move(arguments.cmd)},
               {"hard_timeout", arguments.timeout},
               {"no_change_timeout", static_cast<std::int64_t>(std::ceil(arguments.timeout)) + 60},  // hard_timeout comes first
               {"strict", true},
               {"preserve_symlinks", arguments.preserve_symlinks},
               {"truncate", arguments.truncate}};
  if (arguments.cwd) exec.body["exec_dir"] = std::move(*arguments.cwd);
  CO_TRY_ASSIGN(Told told, co_await ask_told(call, std::move(exec)));
  if (!told.success) co_return error_outcome(std::move(told.message));
  BashResult result{.status = told.data.value("status", "")};
  if (const auto output = told.data.find("output"); output != told.data.end() && output->is_string())
    result.output = output->get<std::string>();
  if (const auto code = told.data.find("exit_code"); code != told.data.end() && code->is_number_integer())
    result.exit_code = code->get<std::int64_t>();
  if (const auto session = shell.find(told.data.value("session_id", ""))) result.cwd = session->cwd();
  co_return structured_outcome(routes::encode(result));
}

task<Outcome> execute_code(Call call, CodeArguments arguments) {
  Asked asked{.path = "/v1/code/execute", .body = routes::encode(arguments)};
  return ask_outcome(std::move(call), std::move(asked));
}

// The request of an action, from the tool's arguments. nullopt: an argument is missing; `missing` is its name.
std::optional<Asked> file_request(FileArguments& a, std::string& missing) {
  Asked out{.path = "/v1/file/" + a.action, .body = json::Value::object()};
  const auto put = [&out](const char* name, auto& value) {
    if (value) out.body[name] = std::move(*value);
  };
  const auto need = [&](const char* name, const char* argument, std::optional<std::string>& value) {
    if (value) out.body[name] = std::move(*value);
    else missing = argument;
  };
  out.body[a.action == "list" || a.action == "find" ? "path" : "file"] = std::move(a.path);
  if (a.action == "read") {
    put("start_line", a.start_line);
    put("end_line", a.end_line);
  } else if (a.action == "write") {
    need("content", "content", a.content);
    put("encoding", a.encoding);
    put("append", a.append);
  } else if (a.action == "list") {
    put("recursive", a.recursive);
    put("max_depth", a.max_depth);
    put("show_hidden", a.show_hidden);
  } else if (a.action == "find") {
    need("glob", "pattern", a.pattern);
  } else if (a.action == "replace") {
    need("old_str", "old_str", a.old_str);
    need("new_str", "new_str", a.new_str);
  } else {
    need("regex", "pattern", a.pattern);
  }
  if (!missing.empty()) return std::nullopt;
  return out;
}

task<Outcome> file_operations(Call call, FileArguments arguments) {
  std::string missing;
  const std::string action = arguments.action;
  std::optional<Asked> asked = file_request(arguments, missing);
  if (!asked) co_return error_outcome("Wrong arguments: " + missing + ": " + action + " needs it");
  if (action == "read") co_return co_await ask_text(std::move(call), std::move(*asked), "content");
  co_return co_await ask_outcome(std::move(call), std::move(*asked));
}

task<Outcome> str_replace_editor(Call call, routes::StrReplaceEditorRequest arguments) {
  Asked asked{.path = "/v1/file/str_replace_editor", .body = routes::encode(arguments)};
  return ask_text(std::move(call), std::move(asked), "output");
}

task<Outcome> get_browser_info(Call call, NoArguments) {
  Asked asked{.method = http::Method::get, .path = "/v1/browser/info"};
  return ask_outcome(std::move(call), std::move(asked));
}

task<Outcome> browser_screenshot(Call call, NoArguments) {
  Asked asked{.method = http::Method::get, .path = "/v1/browser/screenshot"};
  CO_TRY_ASSIGN(const http::Response shot, co_await ask(std::move(call), std::move(asked)));
  if (!shot.content_type.starts_with("image/")) co_return error_outcome(told_of(shot).message);
  co_return image_outcome(shot.body, shot.content_type);
}

task<Outcome> browser_execute_action(Call call, routes::BrowserAction arguments) {
  Asked asked{.path = "/v1/browser/actions", .body = routes::encode(arguments)};
  return ask_outcome(std::move(call), std::move(asked));
}

task<Outcome> convert_to_markdown(Call call, routes::UtilConvertToMarkdownRequest arguments) {
  Asked asked{.path = "/v1/util/convert_to_markdown", .body = routes::encode(arguments)};
  CO_TRY_ASSIGN(Told told, co_await ask_told(std::move(call), std::move(asked)));
  if (!told.success || !told.data.is_string()) co_return error_outcome(std::move(told.message));
  co_return text_outcome(told.data.get<std::string>());
}

constexpr std::string_view kMarkdownDoc =
    "Converts a document to Markdown: PDF, DOCX, PPTX, XLSX, XLS, HTML, EPUB, CSV, MSG, ZIP, pictures' metadata; by a URI of "
    "http, "
    "https, file or data, or a path";

constexpr Tool kSandboxTools[] = {
    {"sandbox_get_context", "Sandbox context", "Describes the sandbox: system, home, interpreters and programs",
     kReads | kRepeats, Scope::sandbox, auth::Access::read, tool<get_context>()},
    {"sandbox_get_packages", "Installed packages", "Lists the installed Python and Node.js packages with their versions",
     kReads | kRepeats, Scope::sandbox, auth::Access::read, tool<get_packages>()},
    {"sandbox_execute_bash", "Run a command",
     "Runs a command in bash, in a shell that keeps its directory and variables between calls", kDestroys | kOutside,
     Scope::shell, auth::Access::all, tool<execute_bash>(), routes::detail::describe<BashResult>},
    {"sandbox_execute_code", "Run code", "Runs Python or JavaScript in a fresh interpreter", kDestroys | kOutside, Scope::code,
     auth::Access::all, tool<execute_code>(), routes::detail::describe<routes::CodeExecuteResponse>},
    {"sandbox_file_operations", "Files", "Reads, writes, lists, finds, replaces in and searches files", kDestroys, Scope::file,
     auth::Access::all, tool<file_operations>()},
    {"sandbox_str_replace_editor", "Edit a file",
     "Views, creates and edits text files: commands view, create, str_replace, insert and undo_edit", kDestroys, Scope::file,
     auth::Access::all, tool<str_replace_editor>()},
    {"sandbox_convert_to_markdown", "Convert to Markdown", kMarkdownDoc, kReads | kRepeats | kOutside, Scope::util,
     auth::Access::all, tool<convert_to_markdown>()},
    {"sandbox_get_browser_info", "Browser information", "The addresses by which a client reaches the browser, and its sizes",
     kReads | kRepeats, Scope::browser, auth::Access::all, tool<get_browser_info>()},
    {"sandbox_browser_screenshot", "Screenshot", "Takes a picture of the whole screen", kReads | kRepeats, Scope::browser,
     auth::Access::read, tool<browser_screenshot>()},
    {"sandbox_browser_execute_action", "Mouse and keyboard",
     "Moves the mouse, clicks, drags, scrolls, types and presses keys on the screen, or waits", kDestroys | kOutside,
     Scope::browser, auth::Access::all, tool<browser_execute_action>()},
};

// The server that AIO's images call markitdown has the same tool by another name.
constexpr Tool kMarkitdownTools[] = {
    {"convert_to_markdown", "Convert to Markdown", kMarkdownDoc, kReads | kRepeats | kOutside, Scope::util, auth::Access::all,
     tool<convert_to_markdown>()},
};

}  // namespace

std::span<const Tool> sandbox_tools() { return kSandboxTools; }
std::span<const Tool> markitdown_tools() { return kMarkitdownTools; }

}  // namespace caisson::mcp
