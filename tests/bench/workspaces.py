"""workspaces.py CONTROL_SOCKET [ROUNDS [EXECS [BOMB...]]]: exec latency in one workspace while another runs fork and memory bombs, each session of it again
as soon as a limit has ended it. Quiet and loaded rounds alternate, so that both meet the same machine. With CAISSON_BENCH_URL the API of
the same launcher is asked for a command in the default workspace as well."""
import http.client
import os
import pathlib
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from control import Control, Refused  # noqa: E402
from latency import exec_us, held, quantile, tell  # noqa: E402

ROUNDS, EXECS = (int(n) for n in (sys.argv[2:4] + ["5", "60"][len(sys.argv[2:4]) :]))
BOMBS = {
    # Every process forks as often as it may and then spins.
    "fork": "import os\nfor _ in range(20):\n  try: os.fork()\n  except OSError: pass\nwhile True: pass",
    "memory": "x = []\nwhile True: x.append(bytearray(b'x' * (16 << 20)))",
}


def post(path, body):
    api.request("POST", path, body, {"X-AIO-API-Key": os.environ["SANDBOX_API_KEY"], "Content-Type": "application/json"})
    return api.getresponse().read()


def api_us():
    begin = time.monotonic()
    assert b'"exit_code":0' in post("/v1/bash/exec", '{"command":"true","session_id":"bench"}')
    return (time.monotonic() - begin) * 1e6


class Bomber(threading.Thread):
    """Keeps two sessions of the workspace busy with one kind of bomb."""

    def __init__(self, path, workspace, bomb):
        super().__init__(daemon=True)
        self.control, self.bomb, self.stopping, self.ended = Control(path), bomb, threading.Event(), 0
        self.control.socket.settimeout(0.2)
        self.workspace = workspace

    def light(self):
        session = self.control.create("shell", workspace=self.workspace)
        _, fds = self.control.start(session, "/usr/bin/python3", "-I", "-c", self.bomb, stdin=False)
        for fd in fds:
            os.close(fd)
        return session

    def run(self):
        burning = set()
        while not self.stopping.is_set():
            try:
                while len(burning) < 2:
                    burning.add(self.light())
                message, _ = self.control.receive()
                if message.get("event") == "session_end":
                    burning.discard(message["session"])
                    self.ended += 1
            except (TimeoutError, Refused):
                continue  # no process is left in the workspace for another session
        self.control.close()  # which ends its sessions


def measure(kind):
    times, asked, ended = {"quiet": [], kind: []}, [], 0
    for _ in range(ROUNDS):
        times["quiet"] += [exec_us(control, victim) for _ in range(EXECS)]
        bomber = Bomber(sys.argv[1], "bombs", BOMBS[kind])
        bomber.start()
        time.sleep(0.5)  # it grows
        times[kind] += [exec_us(control, victim) for _ in range(EXECS)]
        asked += [api_us() for _ in range(EXECS)] if api else []
        bomber.stopping.set()
        bomber.join()
        ended += bomber.ended
        while control.call("workspace_list")[0]["workspaces"][0]["sessions"]:  # "bombs" comes first
            time.sleep(0.05)
    tell(times)
    sys.stdout.flush()
    for name, q in (("median", 0.5), ("p99", 0.99)):
        ratio = quantile(times[kind], q) / quantile(times["quiet"], q)
        print(f"{name} beside a {kind} bomb / quiet: {ratio:.2f}   {held(ratio, 2)}   ({ended} sessions ended)")
    if asked:
        most = max(asked) / 1e3
        print(f"POST /v1/bash/exec beside a {kind} bomb: median {quantile(asked, 0.5) / 1e3:.1f} ms   p99 {quantile(asked, 0.99) / 1e3:.1f} ms   "
              f"most {most:.1f} ms   {held(most, 100)}")


control = Control(sys.argv[1])
api = None
if url := os.environ.get("CAISSON_BENCH_URL"):
    api = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=60)
    post("/v1/bash/sessions/create", '{"session_id":"bench"}')
control.socket.settimeout(300)  # an emulated machine takes its time
for workspace in ("bombs", "victim"):
    control.call("workspace_create", name=workspace)
victim = control.create("shell", workspace="victim")
limits = control.call("workspace_list")[0]["workspaces"][0]["limits"]
print(f"limits of each workspace, by {limits.pop('by')}: {limits}")
for kind in sys.argv[4:] or BOMBS:
    measure(kind)
