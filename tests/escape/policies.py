"""The policies under which the attacks are tried."""

import json

from harness import edit

# Where policies give sessions more. nested-sandbox: they may make namespaces as Chromium does, which `nested` does before each attack.
KINDS = ("packages", "nested-sandbox", "nested")
# Below what a control may take: 100 processes, 64 MiB.
LIMITS = {"processes": 64, "memory_bytes": 48 << 20, "open_files": 256, "cpu_seconds": 2, "tmp_bytes": 32 << 20, "tmp_inodes": 1500}


def write_policies(policies, base):
    """The shipped ones with the granted decoys below `base`, and limits that are reached soon."""
    shipped = json.loads((policies / "base.json").read_text())
    grants = [{"path": str(base / "ro"), "access": "read"}, {"path": str(base / "rw"), "access": "read-write"}]
    hide = [*shipped["hide"], str(base / "ro/hidden")]
    edit(policies / "base.json", grants=shipped["grants"] + grants, hide=hide, limits={**shipped["limits"], **LIMITS})
    # The other domains were narrowed against the shipped base, not against this one.
    for path in policies.glob("*.json"):
        if path.stem not in ("base", "bash", "hermit", "run", "schema", "shell"):
            path.unlink()
    (policies / "hermit.json").write_text(
        json.dumps({"extends": "base", "description": "Alone.", "home": "private", "tmp": "private"})
    )
    (policies / "hermit.json").chmod(0o644)


def give_more(policies, kind):
    """Sessions may do more, as KINDS names it."""
    why = "what its sessions can do is tried"
    if kind == "packages":
        return edit(policies / "bash.json", system_packages=True, weaken=[{"field": "/system_packages", "why": why}])
    base = json.loads((policies / "base.json").read_text())["syscalls"]["allow"]
    allow = [*(one for one in base if one != "netlink-route"), "nested-sandbox"]
    return edit(policies / "bash.json", syscalls={"allow": allow}, weaken=[{"field": "/syscalls/allow", "why": why}])
