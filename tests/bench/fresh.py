"""fresh.py KEY TURNS NAME=PORT=LAUNCHER=CONTROL_SOCKET...: fresh sessions a second over HTTP, eight clients at a time, each with one
`true`; the processor time that one takes of all below the launcher and, where perf(1) is, of the launcher and what builds for it alone;
then the latency of a creation when no session is ready. A build, and one to compare it with, take turns."""
import http.client
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from control import Control  # noqa: E402
from turns import TURN_S, median, processor_s, rate  # noqa: E402

KEY, TURNS, CREATIONS = sys.argv[1], int(sys.argv[2]), 24
PERF = shutil.which("perf")
BUILDING = ("caisson-launche", "caisson-builder")  # what a process is called until it executes caisson-init; of old, the launcher


class Server:
    def __init__(self, port, launcher, control):
        self.port, self.launcher, self.control = int(port), launcher, control
        self.rows = {"sessions/s": [], "ms of all": [], "ms of launcher and builder": [], "ms to create": []}

    def runner(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

        # Without a session's name: it gets one of its own, and the oldest makes room for it.
        def run():
            connection.request("POST", "/v1/bash/exec", '{"command":"true"}', {"X-AIO-API-Key": KEY, "Content-Type": "application/json"})
            answer = connection.getresponse().read()
            assert b'"exit_code":0' in answer, answer
        return run

    def turn(self):
        with tempfile.TemporaryDirectory() as place:
            perf = PERF and subprocess.Popen([PERF, "record", "-q", "-a", "-F", "997", "-e", "cpu-clock", "-o", f"{place}/perf", "sleep", str(TURN_S)],
                                             stderr=subprocess.DEVNULL)
            per_second, ms = rate(self.runner, lambda: processor_s(self.launcher))
            self.rows["sessions/s"].append(per_second)
            self.rows["ms of all"].append(ms)
            if perf and perf.wait() == 0:
                report = subprocess.run([PERF, "report", "-i", f"{place}/perf", "--sort", "comm", "-n", "--stdio", "-q"], capture_output=True, text=True)
                samples = {words[2]: int(words[1]) for words in map(str.split, report.stdout.splitlines()) if len(words) > 2 and words[1].isdigit()}
                self.rows["ms of launcher and builder"].append(
                    1000 * sum(samples.get(name, 0) for name in BUILDING) / 997 / (per_second * TURN_S))
        client = Control(self.control)
        client.call("workspace_create", name="fresh")  # sessions are ready in the default one alone

        def create():
            client.call("session_create", domain="bash", workspace="fresh")
        create()
        begin = time.monotonic()
        for _ in range(CREATIONS):
            create()
        self.rows["ms to create"].append((time.monotonic() - begin) * 1000 / CREATIONS)
        client.call("workspace_destroy", workspace="fresh")
        client.close()


def main():
    servers = {name: Server(*where) for name, *where in (word.split("=") for word in sys.argv[3:])}
    for server in servers.values():
        server.runner()()
    for _ in range(TURNS):
        for server in servers.values():
            server.turn()
    first = next(iter(servers))
    for row in servers[first].rows:
        for name, server in servers.items():
            values = server.rows[row]
            if not values:
                print(f"{row:28} {name:8} left out: perf is not installed")
                continue
            ratio = f"   {first} / {name}: {median(servers[first].rows[row]) / median(values):.2f}" if name != first else ""
            print(f"{row:28} {name:8} {median(values):8.2f} ({min(values):.2f} to {max(values):.2f}){ratio}", flush=True)


main()
