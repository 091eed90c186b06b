#!/usr/bin/env python3
"""Checks that references to documentation lead somewhere: links in the Markdown files, with their anchors, and pages that any file of the
repository names, with the section in quotes behind it (`launcher/common/audit/README.md, "Observed paths"`)."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)#\s]*)#?([^)\s]*)\)")
PAGE = re.compile(r'(?<![\w./])((?:[\w-]+/)*(?:README|SECURITY|CONTRIBUTING)\.md)`?(?:,\s+"([^"]+)")?')


def tracked(*patterns: str) -> list[pathlib.Path]:
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.splitlines()]


def headings(page: pathlib.Path) -> list[str]:
    return re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)


def anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def broken_links(page: pathlib.Path):
    for path, fragment in LINK.findall(page.read_text()):
        target = page.parent / path if path else page
        if "://" in path:
            continue
        if not target.exists():
            yield f"'{path}' does not exist"
        elif fragment and fragment not in map(anchor, headings(target)):
            yield f"'{path}' has no section '#{fragment}'"


def broken_names(file: pathlib.Path):
    for name, section in PAGE.findall(file.read_text()):
        page = next((base / name for base in (ROOT, file.parent) if (base / name).exists()), None)
        if page is None:
            yield f"'{name}' does not exist"
        elif section and section not in headings(page):
            yield f"'{name}' has no section '{section}'"


def main() -> int:
    found = [f"{page.relative_to(ROOT)}: {what}" for page in tracked("*.md") for what in broken_links(page)]
    sources = tracked("*.md", "*.h", "*.cc", "*.py", "scripts/*", ":!CHANGELOG.md")
    found += [f"{file.relative_to(ROOT)}: {what}" for file in sources for what in broken_names(file)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
