"""What the benches that look at processes share: memory and children, from /proc."""
import re


def pss_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return int(re.search(r"^Pss:\s+(\d+)", file.read(), re.M)[1])


def anonymous_kib(pid):
    """Memory that it made itself. Unlike PSS it is not less while a child that was forked a moment ago shares it."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return int(re.search(r"^Anonymous:\s+(\d+)", file.read(), re.M)[1])


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(p) for p in file.read().split()]


def below(pid):
    """Every descendant, nearer ones first."""
    found = [pid]
    for one in found:
        try:
            found += children(one)
        except (FileNotFoundError, ProcessLookupError):  # ended since it was listed
            continue
    return found[1:]


def name(pid):
    """The first argument; "" when it has ended since it was listed."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().split(b"\0")[0].decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
