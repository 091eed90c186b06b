"""Memory of N idle sessions: the PSS of everything in each session, which is caisson-init alone while no command runs."""

import os
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from control import Control  # noqa: E402
from memory import children, name, pss_kib  # noqa: E402

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
