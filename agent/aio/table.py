"""The table of the commands. Parsing, help, completion and the manual in README.md are made from it."""
from __future__ import annotations

import argparse
from typing import Any, Callable, NamedTuple, Optional

from .failure import CODES, USAGE, Failure
from .text import visible


class Arg(NamedTuple):
    """A positional argument, or with names that begin with - an option. `field`: its name in the request, where it differs; "": it is
    not sent. `files`: completed by names of files of this side."""
    names: str
    help: str
    type: Any = str
    field: Optional[str] = None
    choices: tuple = ()
    nargs: Any = None
    required: bool = False
    files: bool = False
    metavar: Optional[str] = None
    default: Any = None

    @property
    def option(self) -> bool:
        return self.names.startswith("-")

    @property
    def key(self) -> str:
        """As argparse calls it."""
        return self.names.split()[-1].lstrip("-").replace("-", "_")

    @property
    def sent_as(self) -> str:
        return self.key if self.field is None else self.field


class Command(NamedTuple):
    """`operation`: method and path, whose {…} are arguments; the other arguments are its body or query. `run`: module and function
    instead, for what takes more than one request. `show`: the function of show.py for a person."""
    group: str  # "": none
    name: str
    help: str
    operation: str = ""
    args: tuple = ()
    run: str = ""
    show: str = "anything"
    fixed: dict = {}  # further fields of the body
    seconds: float = 120.0  # what an answer may take

    @property
    def path(self) -> str:
        return f"{self.group} {self.name}".strip()


def whole(low: int, high: int) -> Callable:
    def convert(given: str) -> int:
        value = int(given)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{value} is not within {low} to {high}")
        return value

    convert.__name__ = "whole number"
    return convert


def number(low: float, high: float) -> Callable:
    def convert(given: str) -> float:
        value = float(given)
        if not low <= value <= high:  # not a number is not, either
            raise argparse.ArgumentTypeError(f"{given} is not within {low:g} to {high:g}")
        return value

    convert.__name__ = "number"
    return convert


def remote(given: str) -> str:
    """A path of the workspace. The API takes relative ones from the home, and ~ for a name like others."""
    if not given or "\0" in given:
        raise argparse.ArgumentTypeError("an empty path, or one with a null byte")
    return (given[2:] or ".") if given == "~" or given.startswith("~/") else given


GLOBAL = (
    Arg("--api-url", "address of the server (AIO_API_URL; http://127.0.0.1:8080)", metavar="URL"),
    Arg("--key-file", "file with the API key, which nobody else may read", files=True, metavar="FILE"),
    Arg("--workspace", "workspace that the request is for (AIO_WORKSPACE)", metavar="NAME"),
    Arg("--json", "JSON, also on a terminal", bool),
    Arg("--human", "for a person, also in a pipe", bool),
)
GROUPS = {
    "files": "files of the workspace",
    "code": "run Python or JavaScript",
    "browser": "the page in the browser",
    "gui": "the whole screen: pictures, mouse, keys",
    "sandbox": "the sandbox itself",
    "skills": "skills for agents",
    "mcp": "tools of the MCP servers",
    "completion": "completion for shells",
}


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Failure(USAGE, f"{visible(message)}; see {self.prog} --help")


def add(parser, arg: Arg, **more):
    options = {"help": arg.help.replace("%", "%%"), **more}
    if arg.type is bool:
        options["action"] = "store_true"
    else:
        options.setdefault("default", arg.default)
        options.update(type=arg.type, metavar=arg.metavar or (None if arg.choices else arg.key.upper()))
        if arg.choices:
            options["choices"] = arg.choices
        if arg.nargs is not None:
            options["nargs"] = arg.nargs
        if arg.option and arg.nargs == "append":
            options.pop("nargs")
            options["action"] = "append"
    if arg.option and arg.required:
        options["required"] = True
    parser.add_argument(*arg.names.split(), **options)


def codes() -> str:
    return "exit codes:\n" + "\n".join(f"  {code:<4} {meaning}" for code, meaning in CODES.items())


def first_word(argv: list) -> str:
    """The group, or the command if it has no group; "" if neither was given."""
    valued = {name for arg in GLOBAL if arg.type is not bool for name in arg.names.split()}
    skip = False
    for word in argv:
        if not skip and not word.startswith("-"):
            return word
        skip = not skip and word in valued
    return ""


def parser_for(commands, wanted: str) -> Parser:
    """With the commands of the wanted group alone: each start of the program would pay for the others."""
    top = Parser(prog="aio", description="The AIO Sandbox API. The credential is the first of --key-file, AIO_TOKEN, AIO_API_KEY and "
                 "SANDBOX_API_KEY.", epilog=codes(), formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    for arg in GLOBAL:
        add(top, arg, default=argparse.SUPPRESS)
    kinds = top.add_subparsers(metavar="COMMAND", dest="group")
    groups = {}
    for command in commands:
        if command.group and command.group not in groups:
            group = kinds.add_parser(command.group, help=GROUPS[command.group], description=GROUPS[command.group], allow_abbrev=False)
            groups[command.group] = group.add_subparsers(metavar="COMMAND", dest="name")
            group.set_defaults(parser=group)
        if command.group and command.group != wanted:
            continue
        within = groups[command.group] if command.group else kinds
        parser = within.add_parser(command.name, help=command.help, description=command.help, allow_abbrev=False)
        for arg in command.args:
            add(parser, arg)
        for arg in GLOBAL:
            add(parser, arg, default=argparse.SUPPRESS)
        parser.set_defaults(command=command)
    top.set_defaults(parser=top, command=None)
    return top
