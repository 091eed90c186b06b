"""connectors.py WIRE ROUNDS FOLDER: what a connection costs a session without a network of its own (T0), whose connector makes it, over the
same by a session with one (T3). Both go through gate, door and dialer to the same server. Nothing here leaves this machine.
CAISSON_BUILD_DIR: the build."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[2]
TESTS = ROOT / "tests"
sys.path[:0] = [str(pathlib.Path(__file__).parent), *(str(TESTS / folder) for folder in (".", "session", "session/egress", "escape", "hostile"))]

import places  # noqa: E402
from connected import REQUIRED  # noqa: E402
from harness import SESSION_UID, Launcher, edit  # noqa: E402
from latency import quantile  # noqa: E402
from world import PUBLIC, World  # noqa: E402

PORT, ASKED, TARGET = 9000, 1000, 60
RULES = {
    "network": "allowlist",
    "egress": [{"host": PUBLIC, "ports": [PORT], "why": "what is measured"}],
    "egress_limits": {"connections": 4096, "connections_per_second": 10_000},
    "weaken": [{"field": "/network", "why": "what is measured"}],
}
wire, rounds, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])


def client(stack, world, tier):
    """measured(): microseconds of each of many small requests on a connection of its own, by a session of that tier."""
    (folder / tier).mkdir()
    launcher = stack.enter_context(Launcher(folder / tier))
    edit(launcher.policies / "bash.json", **RULES)
    without = []
    if tier == "T0":
        edit(launcher.policies / "base.json", require=REQUIRED)
        without = places.wrapper("T0", launcher.home)
    program = launcher.home / "wire"
    shutil.copy(wire, program)
    os.chown(program, SESSION_UID, SESSION_UID)
    launcher.start(wrapper=[*world.wrapper(), *without], CAISSON_READY_SESSIONS="0")
    control = launcher.control()
    assert control.hello["tier"] == tier, control.hello["tier"]
    session = control.create()
    return lambda: [float(line) for line in control.output(session, f"{control.hello['home']}/wire", "one", PUBLIC, str(PORT), "-", str(ASKED)).split()]


with contextlib.ExitStack() as stack:
    world = World(folder)
    stack.callback(world.close)
    server = subprocess.Popen([wire, "serve", PUBLIC, str(PORT)], preexec_fn=world.world.enter)
    stack.callback(server.wait)
    stack.callback(server.kill)
    time.sleep(0.5)
    clients = {tier: client(stack, world, tier) for tier in ("T0", "T3")}
    found = {tier: [] for tier in clients}
    for _ in range(rounds):
        for tier, measured in clients.items():
            found[tier].append(quantile(measured(), 0.5))
    added = quantile([a - b for a, b in zip(found["T0"], found["T3"])], 0.5)
    print(f"{'a connection by a connector, p50':34} T0 {quantile(found['T0'], 0.5):.0f} us   T3 {quantile(found['T3'], 0.5):.0f} us   "
          f"added {added:.0f} us   target {TARGET}   {'held' if added <= TARGET else 'MISSED'}", flush=True)
