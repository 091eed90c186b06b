#!/usr/bin/env python3
"""planted.py SOURCE BUILD TABLE: a row more in a table, in copies of the files that are said to need it.

With all of them the rest of the tree, unchanged, compiles and knows the row; without one of them it does not compile, and the
compiler names what is missing. What has to be touched for a row is thus what is planted here, and nothing else.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

SOURCE, BUILD = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


class Planted:
    """Changed copies of files, found before those of the tree."""

    def __init__(self, folder: str):
        self.folder = pathlib.Path(folder)
        entries = json.loads((BUILD / "compile_commands.json").read_text())
        words = next(shlex.split(e["command"]) for e in entries if e["file"].endswith("launcher/compiler/fields.cc"))
        compiler = next(n for n, word in enumerate(words) if re.search(r"(clang\+\+|g\+\+)[-0-9]*$", word))
        # Not what -Xclang brings in: that is about precompiled headers.
        own = [word for before, word in zip(words[compiler:], words[compiler + 1:]) if "-Xclang" not in (before, word)]
        kept = [word for word in own if word.startswith(("-D", "-std=", "-I", "-f", "-isystem"))]
        self.command = [words[compiler], f"-I{folder}", *kept, "-w"]

    def find(self, pattern: str) -> str:
        """The file of launcher/ or agent/ that holds it."""
        found = [p for top in ("launcher", "agent") for p in sorted((SOURCE / top).rglob("*"))
                 if p.suffix in (".h", ".cc") and re.search(pattern, p.read_text())]
        assert len(found) == 1, f"{pattern}: {found}"
        return found[0].relative_to(SOURCE).as_posix()

    def path(self, name: str) -> pathlib.Path:
        return self.folder / name if (self.folder / name).exists() else SOURCE / name

    def plant(self, name: str, *changes: tuple[str, str]) -> str:
        """Each change: a pattern that is there once, and what takes its place."""
        text = self.path(name).read_text()
        for pattern, text_there in changes:
            text, count = re.subn(pattern, text_there, text, flags=re.MULTILINE)
            assert count == 1, f"{name}: {pattern} is there {count} times"
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)
        return name

    def includes(self, name: str) -> set[str]:
        """The files of launcher/ that it includes, and those that these include."""
        found, todo = set(), [name]
        while todo:
            text = self.path(todo.pop()).read_text()
            new = set(re.findall(r'^#include "(launcher/[^"]+)"', text, flags=re.MULTILINE)) - found
            found |= new
            todo += new
        return found

    def compile(self, file: pathlib.Path, *more: str) -> str:
        """What the compiler says; empty where it is content."""
        done = subprocess.run([*self.command, str(file), *more], capture_output=True, text=True, check=False, timeout=850)
        return "" if done.returncode == 0 else done.stderr or "failed"

    def accepts(self, *names: str) -> None:
        for name in names:
            said = self.compile(self.path(name), "-fsyntax-only")
            assert said == "", f"{name}: {said}"

    def refuses(self, name: str, what: str) -> None:
        said = self.compile(self.path(name), "-fsyntax-only")
        assert what in said, f"{name}: it says {said or 'nothing'}, and not: {what}"

    def holds(self, text: str, error: str = "") -> None:
        """A file with this text compiles, or gives this error."""
        (self.folder / "holds.cc").write_text(text)
        self.accepts("holds.cc") if not error else self.refuses("holds.cc", error)


def policy_field(p: Planted) -> None:
    fields, summary = "launcher/compiler/fields.cc", "launcher/compiler/summary.cc"
    p.plant("launcher/common/policy/policy.h", (r"^  unsigned umask = 022;$", r"\g<0>\n  bool planted = false;"),
            (r"^  Limited limits;$", r"\g<0>\n  bool not_planted = false;"))
    p.refuses(fields, "a member of Policy has no row in rows.h")
    p.plant("launcher/common/policy/rows.h", (r'^    \{"/umask",.*$', r'\g<0>\n    {"/planted", &Policy::planted, Widens::larger, &Narrowing::not_planted},'))
    p.refuses(fields, "a row of rows.h has no field here")
    p.plant(fields, (r"^(\};)(\n\nconstexpr Field kSets)", r'    field("/planted", "A field for a test."),\n\1\2'))
    p.accepts(fields)
    p.refuses(summary, "explain says nothing of a row of rows.h")
    p.plant(summary, (r"^constexpr Telling kTellings\[\] = \{$",
                      r'\g<0>\n    {"starts", "/planted", [](const Policy& p, const Say& say) { say("planted", p.planted ? "yes" : "no"); }},'))
    p.refuses(summary, "the posture score (common/tables/posture.h) says nothing of a row of rows.h")
    p.plant("launcher/common/tables/posture.h", (r"kNotScored\[\] = \{", r'\g<0>"/planted", '))
    # All that knows policies and no plans in one file; fields.cc last, for its short names.
    names = [path.relative_to(SOURCE).as_posix() for folder in ("common/policy", "compiler")
             for path in sorted((SOURCE / "launcher" / folder).glob("*.cc"), key=lambda path: (path.name == "fields.cc", path.name))]
    parts = [p.path(name) for name in names if not p.includes(name) & {"launcher/common/confine/plan.h", "launcher/common/kernel/raw.h"}]
    (p.folder / "all.cc").write_text("".join(f'#include "{part}"\n' for part in [*parts, SOURCE / "tests/unit/planted/policy_field.cc"]))
    said = p.compile(p.folder / "all.cc", "-O0", "-o", str(p.folder / "all"),
                     *[str(BUILD / f"launcher/libcaisson_{name}.a") for name in ("tables", "egress_list", "base")])
    assert said == "", said
    subprocess.run([p.folder / "all"], check=True, timeout=60)


def plan_member(p: Planted) -> None:
    subset = "launcher/pid1/execute/subset.cc"
    p.plant("launcher/common/confine/plan.h", (r"^  std::string canonical;.*$", r"\g<0>\n  bool planted = false;"))
    p.refuses(subset, "decomposes into")
    p.plant("launcher/common/confine/frozen_plan.h", (r"canonical\)$", "canonical, planted)"))
    p.refuses(subset, "static assertion failed")
    p.plant(subset, (r"^    CAISSON_RULE\(canonical, .*$", r"\g<0>\n    CAISSON_RULE(planted, kSame),"))
    p.accepts(subset, "launcher/common/confine/query_plan.cc")


def ipc_operation(p: Planted) -> None:
    p.plant("launcher/common/ipc/ops.h", (r"^  agent_restart,", r"  planted,\n\g<0>"), (r"^    \{Op::agent_restart,.*$", r'    {Op::planted, "planted", "!session"},\n\g<0>'))
    p.holds('#include "launcher/common/ipc/ops.h"\nusing namespace caisson::ipc;\nstatic_assert(find_op("planted")->op == Op::planted);')
    answers = p.find(r"> kAnswers\[\] = \{")
    p.refuses(answers, "static assertion failed")
    p.plant(answers, (r"^      \{Op::agent_restart, (.*)\},$", r"      {Op::planted, \1},\n\g<0>"))
    p.accepts(answers, "launcher/pid1/ipc/connection.cc")


def agent_variable(p: Planted) -> None:
    p.plant("launcher/common/ipc/agent_settings.h", (r'kAgentVariables =\n    "', r'\g<0>CAISSON_PLANTED '))
    p.refuses("agent/services/common/settings.cc", "static assertion failed")
    p.plant("agent/services/common/settings.h", (r'^    text_row\("TZ",', r'    number_row("CAISSON_PLANTED", 3, 1, 5, "for a test"),\n\g<0>'))
    p.accepts("agent/services/common/settings.cc")
    p.holds('#include "agent/services/common/settings.h"\nstatic_assert(caisson::services::variable("CAISSON_PLANTED").fallback == 3);')


def path_call(p: Planted) -> None:
    p.plant("launcher/common/tables/path_calls.h", (r"^    \{CAISSON_CALL\(chdir\),.*$", r'\g<0>\n    {CAISSON_CALL(swapon), "swap", Want::look, -1, 0, true},'))
    p.holds('#include "launcher/common/tables/path_calls.h"\nstatic_assert(caisson::observed_call(SYS_swapon)->name == "swapon");')
    p.accepts("launcher/compiler/filter.cc", "launcher/auditor/decode.cc")


def way_to_end(p: Planted) -> None:
    use = '#include "launcher/common/base/ends.h"\nconstexpr caisson::SessionEnd kEnd("planted");'
    p.holds(use, "this word is not in the list")
    p.plant("launcher/common/base/ends.h", (r'"destroyed client_gone ', r'"destroyed planted client_gone '))
    p.holds(use)


def worker_operation(p: Planted) -> None:
    protocol, worker = "agent/frames/file_protocol.h", "agent/worker/main.cc"
    count = re.search(r"std::array<FileOpRow, (\d+)>", p.path(protocol).read_text())
    p.plant(protocol, (r"^  download_close$", r"  planted,\n\g<0>"), (r"^    \{FileOp::download_close,.*$", r'    {FileOp::planted, "planted", "path"},\n\g<0>'),
            *([(re.escape(count[0]), f"std::array<FileOpRow, {int(count[1]) + 1}>")] if count else []))
    p.holds('#include "agent/frames/file_protocol.h"\nusing namespace caisson::frames;\nstatic_assert(file_op("planted") == FileOp::planted);')
    p.refuses(worker, "static assertion failed")
    p.plant(worker, (r"^    \{FileOp::download_close, (.*)\},$", r"    {FileOp::planted, \1},\n\g<0>"))
    p.accepts(worker)


def step(p: Planted) -> None:
    steps = p.plant(p.find(r"StepRow kSteps\[kStepCount\]"), (r"^  done,$", r"  planted,\n\g<0>"),
                    (r"^    \{Step::done,.*$", r'    {Step::planted, "planted", Mechanism::fds},\n\g<0>'))
    p.holds(f'''#include "{steps}"
using namespace caisson::confine;
static_assert([] {{
  for (int i = 0; i < kStepCount; ++i)
    if (kSteps[i].name == nullptr || static_cast<int>(kSteps[i].step) != i) return false;
  return std::string_view(kSteps[static_cast<int>(Step::planted)].name) == "planted";
}}());''')


TABLES = (policy_field, plan_member, ipc_operation, agent_variable, path_call, way_to_end, worker_operation, step)

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder_name:
        next(table for table in TABLES if table.__name__ == sys.argv[3])(Planted(folder_name))
