"""What answers look like for a person. Every value is escaped: names, titles and texts are others'."""
from __future__ import annotations

from . import output, text
from .output import say


def hint(answer: dict):
    if answer.get("hint"):
        say("hint: " + text.cut(text.visible(answer["hint"]), 2000))


def anything(value, answer: dict) -> str:
    if value == []:
        return "none"
    if value is None or value == {} or value == "":
        message = answer.get("message")
        return "done" if message in (None, "", "Operation successful") else text.visible(message)
    return output.anything(value)


def context(value: dict, _answer: dict) -> str:
    return text.lines(value.get("data") or "")


def usage(value: dict, _answer: dict) -> str:
    group = value.get("cgroup") or {}
    head = [("memory", f"{text.size(group.get('mem_current_bytes'))} of {text.size(group.get('mem_max_bytes')) or 'no limit'}"),
            ("processor", f"{group.get('cpu_usage_pct') or 0:.0f} %")]
    disks = [(one.get("path"), f"{text.size(one.get('used_bytes'))} of {text.size(one.get('total_bytes'))}") for one in value.get("disk") or []]
    found = [(one.get("pid"), one.get("user"), text.size(one.get("rss_bytes")), one.get("comm")) for one in value.get("top_processes") or []]
    return text.columns(head + disks) + ("\n\n" + text.columns(found, ("pid", "user", "memory", "program")) if found else "")


# --- files and code ---

def entries(value: dict, _answer: dict) -> str:
    root, found = value.get("path") or "", []
    for one in value.get("files") or []:
        name = one.get("path") or one.get("name") or ""
        name = name[len(root):].lstrip("/") if name.startswith(root.rstrip("/") + "/") else one.get("name")
        folder = one.get("is_directory")
        found.append((one.get("permissions") or "", "" if folder else text.size(one.get("size")), (one.get("modified_time") or "")[:16].replace("T", " "),
                      f"{name}/" if folder else name))
    return text.columns(found)


def globbed(value: dict, _answer: dict) -> str:
    if value.get("truncated"):
        say("there are more: --most")
    return "\n".join(text.visible(one.get("path")) for one in value.get("files") or [])


def grepped(value: dict, _answer: dict) -> str:
    if value.get("truncated"):
        say("there are more: --most")
    shown = []
    for one in value.get("matches") or []:
        place, at = text.visible(one.get("file")), one.get("line_number") or 0
        before, after = one.get("context_before") or [], one.get("context_after") or []
        for step, line in enumerate([*before, one.get("line_content"), *after], at - len(before)):
            mark = ":" if step == at else "-"
            shown.append(f"{place}{mark}{step}{mark}{text.visible(line, keep=chr(9))}")
    return "\n".join(shown)


def languages(value: dict, _answer: dict) -> str:
    return text.columns([(one.get("language"), one.get("runtime_version"), one.get("description")) for one in value.get("languages") or []])


# --- browser ---

def place(value, answer: dict) -> str:
    if not isinstance(value, dict):
        return anything(value, answer)
    return text.columns([(name, value[name]) for name in ("title", "url", "status") if value.get(name) is not None])


def markdown(value, answer: dict) -> str:
    return text.lines(value["markdown"]) if isinstance(value, dict) and "markdown" in value else anything(value, answer)


def elements(value, _answer: dict) -> str:
    found = []
    for one in value or []:
        if isinstance(one, dict):
            said = one.get("text") or one.get("name") or one.get("value") or one.get("placeholder") or one.get("href") or ""
            found.append((one.get("index"), one.get("tag") or one.get("role"), text.cut(text.visible(said), 80), one.get("selector") or ""))
    return text.columns(found)


def tabs(value, _answer: dict) -> str:
    return text.columns([("*" if one.get("active") else "", one.get("index"), text.cut(text.visible(one.get("title") or ""), 60), one.get("url"))
                         for one in value or [] if isinstance(one, dict)])


# --- skills and MCP ---

def skills(value, _answer: dict) -> str:
    found = (value or {}).get("skills") or []
    return text.columns([(one.get("name"), text.cut(text.visible((one.get("metadata") or {}).get("description") or ""), 100)) for one in found])


def content(value: dict, _answer: dict) -> str:
    return text.lines(value.get("content") or "")


def removed(value: dict, _answer: dict) -> str:
    return f"removed {text.visible((value or {}).get('name') or '')}"


def names(value, _answer: dict) -> str:
    return "\n".join(text.visible(name) for name in value or [])
