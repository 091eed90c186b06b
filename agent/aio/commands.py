"""All commands but those of the browser."""
from __future__ import annotations

import argparse

from .browser_commands import browser
from .table import Arg, Command, number, remote, whole

SECONDS = number(0.001, 86400)
OUTPUT = Arg("-o --output", "file for the picture; - is stdout", required=True, field="", files=True, metavar="FILE")
PICTURE = (OUTPUT, Arg("--format", "of the picture", choices=("png", "jpeg")), Arg("--quality", "of a jpeg, 0 to 100", whole(0, 100)))
FORCE = Arg("-f --force", "replace what is there", bool, field="")
XY = (Arg("x", "pixels from the left", number(-100000, 100000), nargs="?"), Arg("y", "pixels from the top", number(-100000, 100000), nargs="?"))
X_Y = (XY[0]._replace(nargs=None), XY[1]._replace(nargs=None))
BUTTONS = ("left", "right", "middle")

EXEC = (
    Command("", "exec", "run a command: its output as it comes, its exit code", run="execute.run", args=(
        Arg("words", "one word: a line for bash; several, or after --: a command and its arguments", nargs=argparse.REMAINDER, metavar="COMMAND"),
        Arg("--cwd", "directory in which it runs", metavar="DIR"),
        Arg("-e --env", "variable of the command; NAME alone: as it is here", nargs="append", metavar="NAME[=VALUE]"),
        Arg("--timeout", "seconds after which it is killed", SECONDS),
        Arg("-n --no-stdin", "the command finds no input, whatever stdin is here", bool),
        Arg("-i --stdin", "pass stdin on, even from a terminal", bool),
    )),
)
FILES = (
    Command("files", "ls", "list a directory", "POST /v1/file/list", show="entries", fixed={"include_permissions": True}, args=(
        Arg("path", "directory; the home if absent", remote, nargs="?", default="."), Arg("-r --recursive", "what is below, too", bool))),
    Command("files", "cat", "a file's content", run="files.cat", args=(Arg("path", "file", remote),)),
    Command("files", "get", "copy a file from the workspace", run="files.get", args=(
        Arg("remote", "file of the workspace", remote), Arg("local", "file or directory here; - is stdout", nargs="?", files=True), FORCE,
        Arg("-r --recursive", "a directory, into a new one", bool))),
    Command("files", "put", "copy a file into the workspace", run="files.put", args=(
        Arg("local", "file here; - is stdin", files=True), Arg("remote", "file or directory of the workspace", remote), FORCE)),
    Command("files", "rm", "remove files", run="files.remove", args=(
        Arg("paths", "files of the workspace", remote, nargs="+", metavar="PATH"), Arg("-r --recursive", "directories, too", bool))),
    Command("files", "find", "files by a glob", "POST /v1/file/glob", show="globbed", args=(
        Arg("pattern", "such as '**/*.py'"), Arg("path", "directory; the home if absent", remote, nargs="?", default="."),
        Arg("--hidden", "also names that begin with a dot", bool, "include_hidden"),
        Arg("--most", "at most so many", whole(1, 50000), "max_results"))),
    Command("files", "grep", "lines by a regular expression", "POST /v1/file/grep", show="grepped", args=(
        Arg("pattern", "regular expression of ripgrep"), Arg("path", "file or directory; the home if absent", remote, nargs="?", default="."),
        Arg("-i --ignore-case", "letters of either case", bool, "case_insensitive"),
        Arg("-F --fixed", "the pattern is a plain text", bool, "fixed_strings"),
        Arg("--include", "glob of files", nargs="append", metavar="GLOB"),
        Arg("-B --before", "lines before each", whole(0, 20), "context_before"), Arg("-A --after", "lines after each", whole(0, 20), "context_after"),
        Arg("--most", "at most so many", whole(1, 10000), "max_results"))),
)
CODE_ARGS = (
    Arg("file", "program; stdin if absent", nargs="?", files=True), Arg("-c --code", "the program itself", metavar="TEXT"),
    Arg("--timeout", "seconds, at most 300", whole(1, 300)), Arg("--cwd", "directory in which it runs", metavar="DIR"),
    Arg("--session", "keep variables in the session of this name"))
CODE = (
    Command("code", "python", "run Python", run="code.run", args=CODE_ARGS),
    Command("code", "javascript", "run JavaScript", run="code.run", args=CODE_ARGS),
    Command("code", "info", "languages and their versions", "GET /v1/code/info", show="languages"),
)


def act(kind: str) -> dict:
    return {"action_type": kind}


ACTIONS = "POST /v1/browser/actions"
GUI = (
    Command("gui", "screenshot", "picture of the screen", "GET /v1/browser/screenshot", PICTURE, run="picture.save"),
    Command("gui", "click", "click, where the pointer is or at X Y", run="gui.click", args=(
        *XY, Arg("--button", "of the mouse", choices=BUTTONS), Arg("--count", "1 to 3 clicks", whole(1, 3)))),
    Command("gui", "double-click", "double click", run="gui.at", args=XY, fixed=act("DOUBLE_CLICK")),
    Command("gui", "right-click", "click with the right button", run="gui.at", args=XY, fixed=act("RIGHT_CLICK")),
    Command("gui", "move", "move the pointer", ACTIONS, X_Y, fixed=act("MOVE_TO")),
    Command("gui", "drag", "move the pointer with the left button held", ACTIONS, X_Y, fixed=act("DRAG_TO")),
    Command("gui", "mouse-down", "hold a button", ACTIONS, (Arg("--button", "of the mouse", choices=BUTTONS),), fixed=act("MOUSE_DOWN")),
    Command("gui", "mouse-up", "let a button go", ACTIONS, (Arg("--button", "of the mouse", choices=BUTTONS),), fixed=act("MOUSE_UP")),
    Command("gui", "scroll", "turn the wheel", ACTIONS, fixed=act("SCROLL"), args=(
        Arg("dy", "notches; above 0: up", whole(-1000, 1000)), Arg("dx", "notches; above 0: to the left", whole(-1000, 1000), nargs="?"))),
    Command("gui", "type", "type a text", ACTIONS, fixed=act("TYPING"), args=(Arg("text", "what is typed"),)),
    Command("gui", "press", "press a key, or several together", run="gui.press", args=(Arg("key", "such as enter, or ctrl+shift+t"),)),
    Command("gui", "key-down", "hold a key", ACTIONS, fixed=act("KEY_DOWN"), args=(Arg("key", "such as shift"),)),
    Command("gui", "key-up", "let a key go", ACTIONS, fixed=act("KEY_UP"), args=(Arg("key", "such as shift"),)),
    Command("gui", "resize", "size of the screen", run="gui.resize", args=(Arg("width", "pixels", whole(1, 32768)), Arg("height", "pixels", whole(1, 32768)))),
    Command("gui", "record", "film of the screen", "POST /v1/display/record", args=(
        Arg("action", "what to do", choices=("start", "stop", "status")), Arg("--save-path", "file (mp4) of the workspace", metavar="PATH"),
        Arg("--fps", "pictures a second", whole(1, 30)), Arg("--max-duration", "seconds", SECONDS))),
)
SANDBOX = (
    Command("sandbox", "info", "system, home, interpreters and programs", "GET /v1/sandbox", show="context"),
    Command("sandbox", "packages", "installed packages", run="sandbox.packages", args=(
        Arg("language", "python or nodejs; both if absent", choices=("python", "nodejs"), nargs="?"),)),
    Command("sandbox", "wait", "wait until it is ready", run="sandbox.wait", args=(Arg("--timeout", "seconds, 60 if absent", SECONDS),)),
    Command("sandbox", "usage", "memory, processor and processes", "GET /v1/sandbox/observe/live", show="usage"),
)
SKILLS = (
    Command("skills", "list", "registered skills", "GET /v1/skills/metadatas", (Arg("--names", "only these, with commas between", metavar="NAMES"),),
            show="skills"),
    Command("skills", "show", "a skill's text", "GET /v1/skills/{name}/content", (Arg("name", "skill"),), show="content"),
    Command("skills", "add", "register a skill", run="skills.add", args=(
        Arg("path", "zip archive, folder, or SKILL.md", files=True), Arg("--name", "its name, where the archive leaves it open"))),
    Command("skills", "remove", "remove a skill", "DELETE /v1/skills/{name}", (Arg("name", "skill"),), show="removed"),
    Command("skills", "clear", "remove all skills", "DELETE /v1/skills"),
)
MCP = (
    Command("mcp", "list", "servers", "GET /v1/mcp/servers", (Arg("--all", "hidden ones, too", bool, "include_hidden"),), show="names"),
    Command("mcp", "tools", "tools of a server, or of all", run="mcp.tools", args=(Arg("server", "its name", nargs="?"),)),
    Command("mcp", "call", "call a tool", run="mcp.call", args=(
        Arg("server", "its name"), Arg("tool", "its name"),
        Arg("arguments", "key=value for each argument, or one JSON object", nargs="*", metavar="key=value"),
        Arg("-o --output", "file for the picture or sound in the answer", files=True, metavar="FILE"))),
)
COMPLETION = (
    Command("completion", "bash", "a script for bash: source <(aio completion bash)", run="completion.bash"),
    Command("completion", "zsh", "a script for zsh: aio completion zsh >_aio, in a folder of fpath", run="completion.zsh"),
)
COMMANDS = EXEC + FILES + CODE + browser(PICTURE) + GUI + SANDBOX + SKILLS + MCP + COMPLETION
