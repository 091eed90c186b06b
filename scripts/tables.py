#!/usr/bin/env python3
"""Checks that a fact that has a table stands there alone.

The names of each table are read from its file. A second list is found where several of them stand close together in another
file, as literals or as words of one literal. Files that must name them, because a compiler or a test compares them with the table,
are its companions.
"""
import fnmatch
import pathlib
import re
import sys

WINDOW = 10  # lines

# table: (its beginning, its end, what a name is (None: each word of its literals), how many names make a list, companions)
TABLES = {
    "policy fields": (r"inline constexpr Row kRows\[\] = \{", r"^\};", r'"(/[a-z_/]+)"', 6, {
        "launcher/compiler/fields.cc", "launcher/compiler/summary.cc", "launcher/common/tables/posture.h", "launcher/common/tables/posture.cc"}),
    "mechanisms": (r"constexpr std::string_view words\(Mechanism\)", r"^\}", None, 5, {
        "launcher/common/probing/probe_report.cc",  # what was tried, which is not one to one
        "launcher/*/steps.h",            # the wall of each step
        "agent/metrics/launcher_names.h"}),  # steps that are named after theirs
    "IPC operations": (r"inline constexpr OpRow kOps\[\] = \{", r"^\};", r'"([a-z_]+)"', 4, {
        "launcher/common/audit/events.h"}),  # events, some of which are named after the operation
    "agent variables": (r"inline constexpr std::string_view kAgentVariables =", r";$", None, 4, {
        "agent/services/common/settings.h"}),
    "calls that name files": (r"inline constexpr PathCall kPathCalls\[\] = \{", r"^\};", r"CAISSON_CALL\((\w+)\)", 5, set()),
    "ways to end": (r"inline constexpr std::string_view kSessionEnds =", r";$", None, 5, {"agent/bridge/end.cc"}),
    "operations of the file worker": (r"kFileOps = \{\{", r"^\}\};", r'FileOp::\w+, "(\w+)"', 5, set()),
    "operations of the page driver": (r"kPageOps = \{\{", r"^\}\};", r'PageOp::\w+, "(\w+)"', 6, set()),
    "steps": (r"inline constexpr StepRow kSteps\[kStepCount\] = \{", r"^\};", r'"([a-z_]+)"', 5, {
        "agent/metrics/launcher_names.h"}),  # labels; a test compares them
}
# A way to end that is said, in whatever way a session or a command is ended.
SAID = re.compile(r'(?:\bend(?:_broken)?\(|end_reason_ = |exec\.reason = |second\.reason = )"([a-z_]+)"')
NAME = re.compile(r"[/A-Za-z0-9_]+")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def without_comments(line: str) -> str:
    return re.sub(r"(^|\s)//.*$", "", line) if "//" in line else line


def words_of(line: str) -> list[str]:
    """The names in a line: literals of one word, and the words of a literal that holds nothing but names."""
    out = []
    for literal in LITERAL.findall(line) if '"' in line else []:
        words = literal.split()
        if words and all(NAME.fullmatch(word) for word in words):
            out += words
    return out + (re.findall(r"\bSYS_(\w+)", line) if "SYS_" in line else [])


def is_use(line: str) -> bool:
    """Where a name that is in no table does not compile."""
    return 'variable("' in line


class Tree:
    def __init__(self, root: pathlib.Path):
        paths = (p for top in ("launcher", "agent") for p in sorted((root / top).rglob("*")) if p.suffix in (".cc", ".h"))
        self.files = {p.relative_to(root).as_posix(): [without_comments(line) for line in p.read_text().splitlines()] for p in paths}
        self.words = {path: [(n, word) for n, line in enumerate(lines) if not is_use(line) for word in words_of(line)]
                      for path, lines in self.files.items()}

    def table(self, begin: str, end: str, name: str | None) -> tuple[str, list[str]]:
        """The file that the table is in, and its names."""
        for path, lines in self.files.items():
            for first, line in enumerate(lines):
                if not re.search(begin, line):
                    continue
                last = next(n for n in range(first + 1, len(lines)) if re.search(end, lines[n]))
                body = "\n".join(lines[first:last + 1])
                return path, re.findall(name, body) if name else " ".join(LITERAL.findall(body)).split()
        return "", []


def second_lists(tree: Tree, what: str) -> list[str]:
    begin, end, name, least, companions = TABLES[what]
    home, names = tree.table(begin, end, name)
    if not names:
        return [f"the table of {what} was not found"]
    known = {n for full in names for n in (full, full.rsplit("/", 1)[-1])}
    if what == "steps":  # many are named after their mechanism
        known -= set(tree.table(*TABLES["mechanisms"][:3])[1])
    out = []
    for path in tree.files:
        if path == home or any(fnmatch.fnmatch(path, one) for one in companions):
            continue
        at = [(number, word.rsplit("/", 1)[-1]) for number, word in tree.words[path] if word in known]
        for number, _ in at:
            close = {word for n, word in at if number <= n < number + WINDOW}
            if len(close) >= least:
                out.append(f"{path}:{number + 1}: a second list of {what} ({' '.join(sorted(close))}): the table is in {home}")
                break
    return out


def unknown_ends(tree: Tree) -> list[str]:
    """Ways to end that no list of ends.h has, and those that the agent has no row for."""
    home, known = tree.table(*TABLES["ways to end"][:3])
    commands = tree.table(r"inline constexpr std::string_view kCommandEnds =", r"^", None)[1]
    out = [f"{path}:{n + 1}: '{word}' is no way to end of {home}"
           for path, lines in tree.files.items() if path.startswith("launcher/") for n, line in enumerate(lines)
           if "end" in line or "reason" in line for word in SAID.findall(line) if word not in {*known, *commands}]
    rows = " ".join(tree.files.get("agent/bridge/end.cc", []))
    return out + [f"agent/bridge/end.cc has no row for '{word}' of {home}" for word in known if f'{{"{word}",' not in rows]


def main() -> int:
    tree = Tree(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    found = [problem for what in TABLES for problem in second_lists(tree, what)] + unknown_ends(tree)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
