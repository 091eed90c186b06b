"""The program: parses, runs one command, and turns every end into an exit code and at most one line on stderr."""
from __future__ import annotations

import importlib
import os
import signal
import sys

from .failure import OURS, PIPE, SERVER, USAGE, Failure, Stopped
from .output import Output, say
from .table import first_word, parser_for
from .text import cut, visible


def stop(number, _frame):
    raise Stopped(number)


def quiet():
    """What is still buffered has no reader; Python would complain at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def fill():
    """Whoever closed a standard descriptor would have a connection take its number, and be read and written as one."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    sys.stdout = sys.stdout or open(os.devnull, "w")
    sys.stderr = sys.stderr or open(os.devnull, "w")


def own(code: int, argv: list) -> int:
    """The other codes of exec are those of the command that it runs."""
    return OURS if first_word(argv) == "exec" else code


def command(argv: list) -> int:
    from .client import Client
    from .commands import COMMANDS
    from .settings import Settings

    options = parser_for(COMMANDS, first_word(argv)).parse_args(argv)
    if options.command is None:
        options.parser.print_help(sys.stderr)
        return USAGE
    options.argv = argv
    module, _, function = (options.command.run or "call.run").partition(".")
    run = getattr(importlib.import_module("aio." + module), function)
    if options.command.group == "completion":
        return run(None, options, None)
    client = Client(Settings(options))
    try:
        return run(client, options, Output(options))
    finally:
        client.close()


def main(argv: list) -> int:
    fill()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # a locale without the letters is no reason to fail
    try:
        code = command(argv)
        sys.stdout.flush()
        return code
    except Failure as why:
        say(why.text)
        return own(why.code, argv)
    except Stopped as stopped:
        return 128 + stopped.signal
    except BrokenPipeError:
        quiet()
        return PIPE
    except UnicodeEncodeError:
        say("an argument is not UTF-8 text, which is all that can be sent")
        return own(USAGE, argv)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as why:
        # Most likely the server does not speak this API; a fault of ours looks the same.
        if os.environ.get("AIO_TRACEBACK"):
            raise
        say(f"the server's answer is not understood: {type(why).__name__}: {cut(visible(why), 200)}; AIO_TRACEBACK=1 shows where")
        return own(SERVER, argv)
    finally:
        try:
            sys.stdout.flush()
        except (OSError, ValueError):
            quiet()
