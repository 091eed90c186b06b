"""The same attacks between tenants: the attacker's sessions are of one workspace, and what is attacked is in another: its home, its
servers, its processes."""

import contextlib
import json
import os
import pathlib

import sight
from decoys import CANARY, ENTRIES, sleeper
from harness import inside

# In the attacked workspace: files that only the home's own mode and the walls keep, and servers that answer whoever reaches them.
FILES = """
import json, os, stat
home = os.getcwd()
os.umask(0)
os.mkdir("outside", 0o777)
for name in ENTRIES + ("secret", "hidden"):
    with open("outside/" + name, "w") as file: file.write(CANARY + " " + name + chr(10))
os.mkdir("outside/empty", 0o777)
os.symlink("file", "outside/link")
with open("private", "w") as file: file.write(CANARY)
out = home
"""
SERVERS = """
import json, os, select, socket, sys
sockets, name, port = [], sys.argv[1], 0
for kind, address in ((socket.SOCK_STREAM, "outside/socket"), (socket.SOCK_STREAM, chr(0) + name), (socket.SOCK_DGRAM, chr(0) + name + "-datagram")):
    sockets.append(socket.socket(socket.AF_UNIX, kind))
    sockets[-1].bind(address)
    if kind == socket.SOCK_STREAM: sockets[-1].listen(64)
try:
    sockets.append(socket.create_server(("127.0.0.1", 0)))
    port = sockets[-1].getsockname()[1]
except OSError:
    pass
os.chmod("outside/socket", 0o777)
print(json.dumps(port), flush=True)
kept = []
while True:
    for one in select.select(sockets, [], [])[0]:
        try: kept.append(one.accept()) if one.type == socket.SOCK_STREAM else one.recv(64)
        except OSError: pass
    del kept[:-8]
"""


# Below what the attacks of the resources take: a workspace's limits, beside the policy's.
LIMITS = {"CAISSON_WORKSPACE_DISK_MIB": "32", "CAISSON_WORKSPACE_PROCESSES": "200"}


class Between(sight.Sight):
    environment, attackers = LIMITS, {"workspace": "attacker"}

    def options(self):
        # Without mounts a home is where its path says, and its owner must be able to go there.
        return ("--home", "/home/gem") if self.tier == "T0" else ()

    def attacked(self):
        return self.control.create(workspace="attacked")

    def settle(self):
        for name in ("attacker", "attacked"):
            self.control.call("workspace_create", name=name)
        super().settle()
        # Root's own files, for whoever runs them: a tenant's home has none.
        for name in ("suid", "sgid", "capable"):
            self.places[name] = self.launcher.home / name

    def bring(self, session):
        command = 'cat >"$HOME/escape" && chmod 0755 "$HOME/escape" && printf %s "$HOME"'
        return self.control.output(session, "/bin/sh", "-c", command, stdin=self.program.read_bytes())

    def neighbour(self):
        self.other = self.attacked()
        home = inside(self.control, self.other, f"ENTRIES, CANARY = {ENTRIES!r}, {CANARY!r}\n{FILES}")
        name = f"{self.decoys.name}-tenant"
        _, fds = self.control.start(self.other, "/usr/bin/python3", "-I", "-c", SERVERS, name, stdin=False)
        port = json.loads(os.read(fds[0], 100))
        # By a process of its own that nothing attacks: the one way to it where mounts are private.
        keeper = sleeper(self.control, self.other)
        self.decoys.outside = pathlib.Path(f"/proc/{keeper}/root{home}/outside")
        place = home if self.tier == "T0" else f"/proc/{self.number(keeper)}/root{home}"
        if port:
            with contextlib.suppress(OSError):  # it is this very server's, where sessions have no network of their own
                self.decoys.servers.tcp_server(port)
        return {"private_tcp": port or self.decoys.servers.tcp, "private_home": f"{place}/private", "outside": f"{place}/outside",
                "secret": f"{place}/outside/secret", "usock": f"{place}/outside/socket", "abstract": name,
                "abstract_datagram": f"{name}-datagram"}  # fmt: skip
