"""hostile_clients.py URL KEY LAUNCHER-PID [CLIENTS]: GET /v1/sandbox, quiet and beside CLIENTS (1000) hostile clients: a half sends bodies of the
largest size that is permitted and never ends them, a third asks for large answers and reads none, the rest asks for commands that
print without end. All speak to 127.0.0.1, hold for SECONDS, and come again when they are ended. At the end the sessions that were there
before must be there still."""
import http.client
import json
import pathlib
import resource
import selectors
import socket
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from latency import held, quantile  # noqa: E402
from memory import children, name  # noqa: E402

MIB, SECONDS, PAUSE_S, TARGET_MS = 1 << 20, 20, 0.01, 50
url, key, launcher = sys.argv[1], sys.argv[2], int(sys.argv[3])
count = int(sys.argv[4]) if len(sys.argv) > 4 else 1000
place = urllib.parse.urlsplit(url)


def call(connection, method, path, body=None):
    connection.request(method, path, json.dumps(body) if body else None, {"X-AIO-API-Key": key, "Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()


def data(path, body):
    status, text = call(http.client.HTTPConnection(place.netloc, timeout=60), "POST", path, body)
    assert status == 200 and json.loads(text)["success"], text[:300]
    return json.loads(text)["data"]


def request(path, body, length=None):
    return (f"POST {path} HTTP/1.1\r\nHost: bench\r\nX-AIO-API-Key: {key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {length or len(body)}\r\n\r\n").encode() + body


class Attack(threading.Thread):
    """All hostile clients, in one thread: each sends as fast as it is taken and reads nothing. One that was ended comes again, at most
    once a second."""

    def __init__(self, requests):
        super().__init__(daemon=True)
        self.requests, self.over, self.connected, self.sent, self.again = requests, threading.Event(), threading.Event(), 0, 0

    def connect(self, waiting, payload):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        client.connect_ex((place.hostname, place.port))
        waiting.register(client, selectors.EVENT_WRITE, [payload, memoryview(payload)])

    def run(self):
        waiting, lost = selectors.DefaultSelector(), []
        for payload in self.requests:
            self.connect(waiting, payload)
        self.connected.set()
        beat = time.monotonic()
        while not self.over.is_set():
            for found, _ in waiting.select(0.1):
                payload, left = found.data
                try:
                    n = found.fileobj.send(left[: 64 << 10])
                except BlockingIOError:
                    continue
                except OSError:
                    waiting.unregister(found.fileobj)
                    found.fileobj.close()
                    lost.append(payload)
                    continue
                self.sent += n
                found.data[1] = left[n:]
                if not found.data[1]:  # all is sent: what is left to see is its end
                    waiting.modify(found.fileobj, selectors.EVENT_READ, [payload, left[:0]])
                elif n == 0:
                    continue
            if time.monotonic() - beat > 1:
                for payload in lost:
                    self.connect(waiting, payload)
                self.again += len(lost)
                lost, beat = [], time.monotonic()
        for found in list(waiting.get_map().values()):
            found.fileobj.close()


def latencies(seconds):
    connection, took, refused = http.client.HTTPConnection(place.netloc, timeout=60), [], 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.monotonic()
        try:
            status, _ = call(connection, "GET", "/v1/sandbox")
        except (OSError, http.client.HTTPException):
            connection.close()
            status = 0
        took.append((time.monotonic() - begin) * 1e3)
        refused += status != 200
        time.sleep(PAUSE_S)
    took.sort()
    return took, refused


def peak(pid):
    return int(pathlib.Path(f"/proc/{pid}/status").read_text().split("\nVmHWM:")[1].split()[0]) / 1024


resource.setrlimit(resource.RLIMIT_NOFILE, (min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
agent = next(pid for pid in children(launcher) if name(pid).endswith("caisson-agent"))
sessions = [data("/v1/bash/sessions/create", {"session_id": f"kept-{n}"})["session_id"] for n in range(8)]
shells = [data("/v1/shell/sessions/create", {"id": f"kept-{n}"})["session_id"] for n in range(8)]
for shell in shells:
    data("/v1/shell/exec", {"id": shell, "command": "kept=41"})
large = data("/v1/bash/exec", {"command": "head -c 7000000 /dev/zero | tr '\\0' x", "session_id": sessions[0]})
asked = json.dumps({"session_id": sessions[0], "command_id": large["command_id"]}).encode()
flood = json.dumps({"command": "yes", "session_id": sessions[1], "timeout": 10, "hard_timeout": SECONDS}).encode()
kinds = [request("/v1/bash/exec", b" " * (8 * MIB - 1), 8 * MIB), request("/v1/bash/output", asked), request("/v1/bash/exec", flood)]
floods = min(count // 6, 16)
requests = [kinds[0]] * (count // 2) + [kinds[2]] * floods
requests += [kinds[1]] * (count - len(requests))

quiet, quiet_failed = latencies(SECONDS / 2)
attack = Attack(requests)
attack.start()
attack.connected.wait()
beside, failed = latencies(SECONDS)
attack.over.set()
attack.join()
alive = pathlib.Path(f"/proc/{agent}").exists()
print(f"GET /v1/sandbox quiet:                    p50 {quantile(quiet, 0.5):7.2f} ms   p99 {quantile(quiet, 0.99):7.2f} ms   {len(quiet)} calls, {quiet_failed} failed")
print(f"beside {count} hostile clients ({floods} floods): p50 {quantile(beside, 0.5):7.2f} ms   p99 {quantile(beside, 0.99):7.2f} ms   "
      f"{len(beside)} calls, {failed} failed   {held(quantile(beside, 0.99), TARGET_MS)}")
print(f"they sent {attack.sent / MIB:.0f} MiB and came again {attack.again} times; the agent "
      f"{f'lives, at most {peak(agent):.0f} MiB resident' if alive else 'is dead'}")
lost = 0
for session in sessions:
    lost += data("/v1/bash/exec", {"command": "echo here", "session_id": session})["stdout"] != "here\n"
for shell in shells:
    lost += data("/v1/shell/exec", {"id": shell, "command": "echo $((kept + 1))"})["output"] != "42"
print(f"sessions lost: {lost} of {len(sessions) + len(shells)}   target 0   {'held' if lost == 0 and alive else 'MISSED'}")
