#!/usr/bin/env python3
"""Counts the outcome of one test leg from its result files and names every skip and failure.

  results.py ctest JUNIT GTEST_DIR     ctest's own file, and one file per GoogleTest executable with its single cases
  results.py pytest JUNIT
  results.py failed FOLDER                     all result files below it: each failure with its reason, for the end of the run

The first two print skips and failures to stderr and "passed failed skipped" to stdout. An executable that died before it could
write its file counts as one failure: ctest knows of it.
"""
import pathlib
import sys
import xml.etree.ElementTree as xml


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


def count(cases, counts: dict) -> None:
    for case in cases:
        state, why = outcome(case)
        counts[state] += 1
        if state != "passed":
            note(state, f"{case.get('classname', '')}.{case.get('name', '')}".strip("."), why)


def reason(text: str) -> list[str]:
    """The lines that say why: of a pytest traceback those of the error, else the first ones."""
    lines = [line for line in text.splitlines() if line.strip()]
    return [line[:240] for line in ([line for line in lines if line.startswith("E  ")] or lines)[:12]]


def failed(folder: pathlib.Path) -> None:
    for file in sorted(folder.rglob("*.xml")):
        if file.with_suffix("").is_dir():  # the single cases are in there
            continue
        for case in xml.parse(file).iter("testcase"):
            if outcome(case)[0] == "failed":
                print(f"failed: {case.get('classname', '')}.{case.get('name', '')}", file=sys.stderr)
                text = next((child.text or child.get("message") or "" for child in case if child.tag in ("failure", "error")), "")
                print("\n".join(f"    {line}" for line in reason(text)), file=sys.stderr)


def main() -> int:
    kind, junit = sys.argv[1], pathlib.Path(sys.argv[2])
    if kind == "failed":
        failed(junit)
        return 0
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    if not junit.is_file():
        print("    no result file: the leg did not run to its end", file=sys.stderr)
        counts["failed"] = 1
    elif kind == "pytest":
        count(xml.parse(junit).iter("testcase"), counts)
    else:
        for test in xml.parse(junit).iter("testcase"):
            details = pathlib.Path(sys.argv[3]) / f"{test.get('name')}.xml"
            before = counts["failed"]
            if details.is_file():
                count(xml.parse(details).iter("testcase"), counts)
            if not details.is_file() or (outcome(test)[0] == "failed" and counts["failed"] == before):
                count([test], counts)
    print(counts["passed"], counts["failed"], counts["skipped"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
