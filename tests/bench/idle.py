"""Memory of N idle sessions: the PSS of everything in each session, which is caisson-init alone while no command runs."""

import os
import re
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from control import Control  # noqa: E402


def pss_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return int(re.search(r"^Pss:\s+(\d+)", file.read(), re.M)[1])


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(p) for p in file.read().split()]


def name(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().split(b"\0")[0].decode(errors="replace")
    except FileNotFoundError:  # ended since it was listed
        return ""


control = Control(sys.argv[1])
credentials = control.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
launcher = struct.unpack("3i", credentials)[0]
before = pss_kib(launcher)
sessions = [control.create() for _ in range(int(sys.argv[2]))]
inits = [p for p in children(launcher) if name(p) == "caisson-init"]
sizes = [pss_kib(p) for p in inits]
growth = (pss_kib(launcher) - before) / len(sessions)
print(f"{len(sizes)} idle sessions: PSS of each {max(sizes)} KiB at most, {sum(sizes) / len(sizes):.0f} KiB on average; "
      f"launcher {growth:.1f} KiB for each   target 2048")
for session in sessions:
    control.destroy(session)
