#!/usr/bin/env python3
"""Counts the outcome of one test leg from its result files and names every skip and failure.

  results.py ctest JUNIT GTEST_DIR     ctest's own file, and one file per GoogleTest executable with its single cases
  results.py pytest JUNIT
  results.py failed RESULTS            of all legs' files: each failure with its reason, for the end of the run
  results.py slowest RESULTS           and the tests that took longest

The first two print skips and failures to stderr and "passed failed skipped" to stdout. An executable that died before it could
write its file counts as one failure: ctest knows of it.
"""
import pathlib
import sys
import xml.etree.ElementTree as xml

SLOWEST = 20  # tests that are listed


def note(kind: str, name: str, text: str | None) -> None:
    first = (text or "").strip().splitlines()
    print(f"    {kind}: {name}{': ' + first[0][:200] if first else ''}", file=sys.stderr)


def outcome(case: xml.Element) -> tuple[str, str]:
    """(passed|failed|skipped, why) of one testcase, as GoogleTest, ctest and pytest write it."""
    for child in case:
        if child.tag in ("failure", "error"):
            return "failed", child.get("message") or child.text or ""
        if child.tag == "skipped":
            return "skipped", child.get("message") or child.text or ""
    if case.get("status") in ("fail", "disabled", "notrun") and case.get("result") is None:
        return ("failed" if case.get("status") == "fail" else "skipped"), case.get("status", "")
    if case.get("status") == "notrun":  # GoogleTest: a disabled test
        return "skipped", "disabled"
    return "passed", ""


def single(junit: pathlib.Path, folder: pathlib.Path | None):
    """The single cases of a result file. ctest's file names executables, whose cases are in the folder unless one ended too early."""
    for test in xml.parse(junit).iter("testcase"):
        details = folder / f"{test.get('name')}.xml" if folder else None
        cases = list(xml.parse(details).iter("testcase")) if details and details.is_file() else None
        yield from cases or []
        if cases is None or (outcome(test)[0] == "failed" and not any(outcome(case)[0] == "failed" for case in cases)):
            yield test


def name_of(case: xml.Element) -> str:
    return f"{case.get('classname', '')}.{case.get('name', '')}".strip(".")


def reason(text: str) -> list[str]:
    """The lines that say why: of a pytest traceback those of the error, else the first ones."""
    lines = [line for line in text.splitlines() if line.strip()]
    return [line[:240] for line in ([line for line in lines if line.startswith("E  ")] or lines)[:12]]


def every(results: pathlib.Path):
    """The single cases of all legs."""
    for file in sorted([*results.glob("*.xml"), *results.glob("*/results.xml")]):
        folder = file.with_suffix("")
        yield from single(file, folder if folder.is_dir() else None)


def failed(results: pathlib.Path) -> None:
    for case in every(results):
        if outcome(case)[0] == "failed":
            text = next((child.text or child.get("message") or "" for child in case if child.tag in ("failure", "error")), "")
            print("\n    ".join([f"failed: {name_of(case)}", *reason(text)]), file=sys.stderr)


def slowest(results: pathlib.Path) -> None:
    """pytest counts what a fixture takes to the first test that needs it."""
    for case in sorted(every(results), key=lambda case: -float(case.get("time") or 0))[:SLOWEST]:
        print(f"    {float(case.get('time') or 0):6.1f} s  {name_of(case)}", file=sys.stderr)


def main() -> int:
    kind, junit = sys.argv[1], pathlib.Path(sys.argv[2])
    if at_the_end := {"failed": failed, "slowest": slowest}.get(kind):
        at_the_end(junit)
        return 0
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    if not junit.is_file():
        print("    no result file: the leg did not run to its end", file=sys.stderr)
        counts["failed"] = 1
    else:
        for case in single(junit, pathlib.Path(sys.argv[3]) if kind == "ctest" else None):
            state, why = outcome(case)
            counts[state] += 1
            if state != "passed":
                note(state, name_of(case), why)
    print(counts["passed"], counts["failed"], counts["skipped"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
