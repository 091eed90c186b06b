"""A container whose sessions go out, and what is around it: this machine, and an internet of namespaces that lead out of no machine
(tests/session/egress/world.py)."""

import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import sys

from conftest import ROOT, sh

sys.path += [str(ROOT / "tests" / part) for part in ("session", "session/egress", "escape")]
import attacks  # noqa: E402
from world import RESOLV_CONF, Net, World  # noqa: E402

AF_NETLINK, NETLINK_NETFILTER, EPROTONOSUPPORT = 16, 12, 93


def without_nf_tables(profile):
    """The same profile, except that it refuses sockets to the packet filter, as a kernel without CONFIG_NETFILTER_NETLINK does. It permits
    the other families that Caisson and its sessions ask for."""

    def family(number, *more, action="ALLOW", op="EQ"):
        first = {"index": 0, "value": number, "op": f"SCMP_CMP_{op}"}
        return {"names": ["socket"], "action": f"SCMP_ACT_{action}", "args": [first, *more]}

    def protocol(op):
        return {"index": 2, "value": NETLINK_NETFILTER, "op": f"SCMP_CMP_{op}"}

    kept = [rule for rule in profile["syscalls"] if rule["names"] != ["socket"]]
    assert len(kept) < len(profile["syscalls"])
    refused = {**family(AF_NETLINK, protocol("EQ"), action="ERRNO"), "errnoRet": EPROTONOSUPPORT}
    return profile | {"syscalls": [*kept, family(AF_NETLINK, op="LT"), family(AF_NETLINK + 1), family(AF_NETLINK, protocol("NE")), refused]}


class Policies:
    """The image's, of which some domains go out by these rules, in a folder that is mounted over the container's."""

    def __init__(self, folder, **domains):
        self.folder = shutil.copytree(ROOT / "policies", folder / "policies")
        self.write(**domains)

    def write(self, **domains):
        """egress of each. The files stay the same: they are the container's own."""
        for domain, egress in domains.items():
            file = self.folder / f"{domain}.json"
            policy = json.loads((ROOT / "policies" / file.name).read_text())
            weaken = [*policy.get("weaken", []), *attacks.POLICY["weaken"]]
            file.write_text(json.dumps(policy | {"network": "allowlist", "egress": egress, "weaken": weaken}))


class Out:
    """A stand of attacks.py: sessions of a container that has this internet around it. kind: how they meet the door."""

    def __init__(self, served, policies, folder, kind):
        self.served, self.policies, self.kind = served, policies, kind
        self.pid = int(sh(served.engine, "inspect", "-f", "{{.State.Pid}}", served.name).stdout)
        # T1 has no root that owns a log directory: there it lies in memory.
        self.audit = f"/proc/{self.pid}/root/" + ("dev/shm/caisson-1000/audit" if self.tier == "T1" else "var/log/caisson/audit")
        self.world = World(folder, Net(self.pid))
        attacks.listens(self.world)
        self.seen = attacks.Seen(self.world)

    @property
    def tier(self):
        return self.served.started["tier"]

    def inside(self, *codes):
        command = "exec " + shlex.join(["/usr/bin/python3", "-I", "-c", attacks.told(*codes, agent=8080)])
        done = self.served.http.post("/v1/bash/exec", json={"command": command, "timeout": 100}).json()["data"]
        return json.loads(done["stdout"])

    def records(self):
        return [json.loads(line) for line in pathlib.Path(self.audit, "launcher.ndjson").read_text().splitlines()]

    def residual(self):
        session = self.served.bash("true")["session_id"]
        statement = self.served.http.get(f"/v1/sessions/{session}/confinement").json()["data"]["statement"]
        return {one["id"]: one["what"] for one in statement["confinement"]["residual"]}

    def reload(self, **domains):
        def taken():
            return [r for r in self.records() if r["event"] == "policy_reload"]

        before = taken()
        self.policies.write(**domains)
        os.kill(self.pid, signal.SIGHUP)
        self.served.eventually(lambda: len(taken()) > len(before))
        assert taken()[-1]["accepted"], taken()[-1]

    def close(self):
        self.world.close()


def flags(policies, folder):
    (folder / "resolv.conf").write_text(RESOLV_CONF)
    return "-v", f"{policies.folder}:/etc/caisson/policies:U", "-v", f"{folder}/resolv.conf:/etc/resolv.conf:ro"


def ports_in(text):
    return [int(port) for port in re.findall(r"\d+", text.partition("the loopback's too: ")[2].partition(";")[0])]
