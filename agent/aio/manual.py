"""The tables of README.md, from those of the program: `PYTHONPATH=agent python3 -m aio.manual` writes them anew."""
from __future__ import annotations

import pathlib
import re

from .commands import COMMANDS
from .failure import CODES
from .table import GLOBAL, Arg, Command

README = pathlib.Path(__file__).with_name("README.md")


def usage(arg: Arg) -> str:
    name = arg.metavar or ("|".join(map(str, arg.choices)) if arg.choices else arg.key.upper())
    if not arg.option:
        many = "…" if arg.nargs not in (None, "?") else ""
        return f"[{name}{many}]" if arg.nargs in ("?", "*") else name + many
    shown = arg.names.replace(" ", ", ") + ("" if arg.type is bool else " " + name)
    return shown if arg.required else f"[{shown}]"


def row(command: Command) -> str:
    line = " ".join(["aio", command.path, *(usage(arg) for arg in command.args if not arg.option), *(usage(arg) for arg in command.args if arg.option)])
    line = line.replace("|", "\\|")
    return f"| `{line}` | {command.help} |"


def tables() -> dict:
    commands = "\n".join(["| command | what it does |", "|---|---|", *map(row, COMMANDS)])
    everywhere = "\n".join(["| option | meaning |", "|---|---|", *(f"| `{usage(arg).strip('[]')}` | {arg.help} |" for arg in GLOBAL)])
    codes = "\n".join(["| code | meaning |", "|---|---|", *(f"| {code} | {meaning} |" for code, meaning in CODES.items())])
    return {"commands": commands, "options": everywhere, "codes": codes}


def renewed(page: str) -> str:
    for name, table in tables().items():
        page, count = re.subn(rf"(<!-- begin generated: {name} -->\n).*?(<!-- end generated -->)", lambda found, table=table: f"{found[1]}{table}\n{found[2]}",
                              page, flags=re.DOTALL)
        if count != 1:
            raise SystemExit(f"README.md: no place for the table '{name}'")
    return page


if __name__ == "__main__":
    README.write_text(renewed(README.read_text()))
