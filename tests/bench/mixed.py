"""mixed.py URL KEY LAUNCHER-PID AUDIT-DIR [SECONDS]: eight clients who call everything there is, each in sessions of its own, for SECONDS (60), and one
who makes and ends a thousand sessions a minute.
Counts calls and failures, and watches what launcher, agent and file worker keep: memory of their own, descriptors, processes below them."""
import http.client
import json
import os
import pathlib
import random
import sys
import threading
import time
import urllib.parse

from memory import anonymous_kib, below, children, name

CLIENTS, SESSIONS_A_MINUTE = 8, 1000
url, key, launcher = sys.argv[1], sys.argv[2], int(sys.argv[3])
audit = pathlib.Path(sys.argv[4])
seconds = float(sys.argv[5]) if len(sys.argv) > 5 else 60
server = urllib.parse.urlsplit(url).netloc
SAMPLE_S = 5 if seconds <= 300 else 60
times: dict[str, list[float]] = {}
failures: list[str] = []
lock = threading.Lock()


class Client:
    def __init__(self, number):
        self.name, self.random = f"mixed-{number}", random.Random(number)
        self.connection = http.client.HTTPConnection(server, timeout=60)
        self.calls = [
            ("bash", "/v1/bash/exec", {"command": "echo $((6 * 7)); ls / | wc -l", "session_id": self.name}, '"stdout":"42\\n'),
            ("bash, new session", "/v1/bash/exec", {"command": "echo 42"}, '"stdout":"42\\n'),
            ("shell", "/v1/shell/exec", {"command": "echo $((6 * 7))", "id": self.name}, '"output":"42'),
            ("file write", "/v1/file/write", {"file": self.name, "content": "x" * 4096}, '"success":true'),
            ("file read", "/v1/file/read", {"file": self.name}, '"success":true'),
            ("file view", "/v1/file/str_replace_editor", {"command": "view", "path": self.name}, '"success":true'),
            ("file replace", "/v1/file/replace", {"file": self.name, "old_str": "xx", "new_str": "xx"}, '"success":true'),
            ("file search", "/v1/file/search", {"file": self.name, "regex": "x+"}, '"success":true'),
            ("file glob", "/v1/file/glob", {"path": ".", "pattern": "mixed-*"}, '"success":true'),
            ("file list", "/v1/file/list", {"path": "."}, '"success":true'),
            ("file grep", "/v1/file/grep", {"path": ".", "pattern": "x{3}"}, '"success":true'),
            ("code python", "/v1/code/execute", {"language": "python", "code": "print(6 * 7)"}, '"stdout":"42\\n'),
            ("nodejs", "/v1/nodejs/execute", {"code": "console.log(6 * 7)"}, '"stdout":"42\\n'),
            ("run_code", "/run_code", {"language": "python", "code": "print(6 * 7)"}, '"stdout":"42\\n'),
            ("jupyter", "/v1/jupyter/execute", {"code": "6 * 7", "session_id": self.name}, '"42"'),
        ]

    def call(self, what, path, body, expected):
        begin = time.monotonic()
        self.connection.request("POST", path, json.dumps(body), {"X-AIO-API-Key": key, "Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read().decode()
        with lock:
            times.setdefault(what, []).append(time.monotonic() - begin)
            if answer.status != 200 or expected not in text:
                failures.append(f"{what}: {answer.status} {text[:200]}")

    def run(self, end):
        first = [("bash, create", "/v1/bash/sessions/create", {"session_id": self.name}, '"success":true'),
                 ("shell, create", "/v1/shell/sessions/create", {"id": self.name}, '"success":true'), self.calls[3]]  # fmt: skip
        while time.monotonic() < end or not samples:
            try:
                self.call(*(first.pop(0) if first else self.random.choice(self.calls)))
            except (OSError, http.client.HTTPException) as why:
                with lock:
                    failures.append(f"{self.name}: {why!r}")
                self.connection.close()


class Maker(Client):
    """Makes sessions, uses and ends them: so many a minute, as long as the machine is that fast."""

    def run(self, end):
        next_at, count = time.monotonic(), 0
        while time.monotonic() < end:
            count += 1
            session = {"session_id": f"{self.name}-{count}"}
            try:
                self.call("session, create", "/v1/bash/sessions/create", session, '"success":true')
                self.call("session, exec", "/v1/bash/exec", {**session, "command": "echo 42"}, '"stdout":"42\\n')
                self.call("session, close", f"/v1/bash/sessions/{session['session_id']}/close", {}, '"success":true')
            except (OSError, http.client.HTTPException) as why:
                with lock:
                    failures.append(f"{self.name}: {why!r}")
                self.connection.close()
            next_at = max(next_at + 60 / SESSIONS_A_MINUTE, time.monotonic() - 1)
            time.sleep(max(0, next_at - time.monotonic()))


def kept(pid):
    """KiB of its own, and descriptors."""
    return anonymous_kib(pid), len(os.listdir(f"/proc/{pid}/fd"))


def worker():
    """What opens the files of the workspace: begun by the first call that needs it."""
    return next((pid for pid in below(launcher) if name(pid).endswith("caisson-file-worker")), None)


agent = next(pid for pid in children(launcher) if name(pid).endswith("caisson-agent"))
samples = []
begin = time.monotonic()
threads = [threading.Thread(target=Client(n).run, args=(begin + seconds,)) for n in range(CLIENTS)]
threads.append(threading.Thread(target=Maker(CLIENTS).run, args=(begin + seconds,)))
for thread in threads:
    thread.start()
while any(thread.is_alive() for thread in threads):
    time.sleep(min(SAMPLE_S, max(0.1, begin + seconds - time.monotonic())))
    opener = worker()
    samples.append((time.monotonic() - begin, kept(launcher), kept(agent), kept(opener) if opener else (0, 0), len(children(launcher))))
total = sum(map(len, times.values()))
for what, took in sorted(times.items()):
    took.sort()
    print(f"{what:20s} {len(took):6d} calls   p50 {took[len(took) // 2] * 1e3:7.1f} ms   p99 {took[len(took) * 99 // 100] * 1e3:7.1f} ms")
for at, (kib, fds), (agent_kib, agent_fds), (worker_kib, worker_fds), count in samples:
    print(f"{at:5.0f} s   launcher {kib / 1024:6.1f} MiB, {fds:3d} descriptors   agent {agent_kib / 1024:6.1f} MiB, {agent_fds:3d}   "
          f"file worker {worker_kib / 1024:6.1f} MiB, {worker_fds:3d}   {count:3d} children")
for failure in failures[:10]:
    print("FAILED", failure)
# The first samples are from before everything was used once.
middle, last = samples[len(samples) // 3], samples[-1]
growth = [(last[i][0] - middle[i][0]) / 1024 for i in (1, 2, 3)]
asked = len(times["session, close"])
ended = sum(line.count('"event":"session_end"') for log in audit.glob("launcher*.ndjson") for line in log.open())
print(f"sessions made and ended a minute: {ended * 60 / samples[-1][0]:.0f}, of which the ninth client's {asked * 60 / samples[-1][0]:.0f}")
print(f"{total} calls of {CLIENTS + 1} clients in {samples[-1][0]:.0f} s ({total / samples[-1][0]:.0f} a second), {len(failures)} failed   target 0   "
      f"{'MISSED' if failures else 'held'}")
print(f"memory in the last two thirds: launcher {growth[0]:+.1f} MiB, agent {growth[1]:+.1f} MiB, file worker {growth[2]:+.1f} MiB")
