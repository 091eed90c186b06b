"""hostile_output.py URL KEY [SECONDS]: what others wait while a workspace's output is made to cost as much as it can. For each parser of session
output: GET /v1/sandbox and `echo` by the bash API in the default workspace, quiet, then beside two clients of another one who ask again and
again for what prints plain text (what such a load costs on this machine, whatever it says), then for what was written against that
parser. The measuring clients are a process of their own. SECONDS (6) for each of the three. In the same moments the floor: a server that
does nothing but answer, and a plain `bash -c echo`: what these wait, the processors' other work takes."""
import http.client
import json
import multiprocessing
import os
import socket
import sys
import time
import urllib.parse

from latency import held, quantile

url, key = sys.argv[1], sys.argv[2]
SECONDS = float(sys.argv[3]) if len(sys.argv) > 3 else 6
ATTACKERS, PAUSE_S, TARGET, NOISE = 2, 0.01, 2.0, "noise"
server = urllib.parse.urlsplit(url).netloc

# The number that a report must begin with, out of the frames of the program that runs the code.
NONCE = """
import sys
frame, nonce = sys._getframe(), ""
while frame:
    for value in list(frame.f_locals.values()):
        if isinstance(value, dict) and "nonce" in value: nonce = value["nonce"]
    frame = frame.f_back
"""
REPORTS = NONCE + r"""
piece = "\x1e%s 8000000\n{" % nonce
for _ in range(400): sys.stdout.write(piece * 200)
sys.stdout.write("}")
"""
PLAIN = "import sys\nfor _ in range(400): sys.stdout.write('plain text of a program that says much\\n' * 220)"
# The bridge's own pipe to the agent, which code in the kernel may open: same session, same user.
FRAMES = r"""
import os, struct
pipe = os.open("/proc/%d/fd/1" % os.getppid(), os.O_WRONLY)
head = b'{"event":"output","display":"d","x":"' + b"\\u0000" * 9000 + b'"}'
for _ in range(100): os.write(pipe, struct.pack("<I", len(head)) + head)
"""
UPDATES = r"""
from IPython.display import display
shown = display("one", display_id="d")
for _ in range(600): display("one", display_id="d")
for _ in range(200): shown.update("two" * 300)
"""
SHELL_PLAIN = "head -c 3000000 /dev/zero | tr '\\0' x | fold -w 100"
MARKERS = r"""yes "$(printf '\033]7717;P;\033\033]7717;\r\r')" | head -c 3000000"""
PREPARE = r"""mkdir -p many plain && cd many && for i in $(seq 3000); do : >"$(printf '\001\r\042\033]%0180d' $i)"; : >../plain/$i; done"""
CROWD = r"""for i in $(seq 150); do (exec -a "$(printf '\001\042\033\\%03000d' $i)" sleep 15) & done; wait"""

KINDS = {
    "code reports": ("/v1/code/execute", {"language": "python", "code": PLAIN}, {"language": "python", "code": REPORTS}),
    "shell markers": ("/v1/shell/exec", {"id": None, "command": SHELL_PLAIN}, {"id": None, "command": MARKERS}),
    "kernel frames": ("/v1/jupyter/execute", {"session_id": None, "code": PLAIN}, {"session_id": None, "code": FRAMES}),
    "kernel displays": ("/v1/jupyter/execute", {"session_id": None, "code": PLAIN}, {"session_id": None, "code": UPDATES}),
    "worker, file lists": ("/v1/file/list", {"path": "plain"}, {"path": "many"}),
    "worker, grep": ("/v1/file/glob", {"path": "plain", "pattern": "**/*"}, {"path": "many", "pattern": "**/*"}),
    "observe": ("/v1/sandbox/observe/live?top_rows=500", None, None),
}  # fmt: skip


def call(connection, method, path, body=None, workspace=None):
    headers = {"X-AIO-API-Key": key, "Content-Type": "application/json"}
    if workspace:
        headers["X-Caisson-Workspace"] = workspace
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def connect():
    return http.client.HTTPConnection(server, timeout=60)


def attack(number, path, body, over, calls):
    connection = connect()
    body = body and {name: f"noise-{number}" if value is None else value for name, value in body.items()}
    while not over.is_set():
        try:
            call(connection, "POST" if body else "GET", path, body, NOISE)
            calls.value += 1
        except (OSError, http.client.HTTPException):
            connection.close()


def answer(listener):
    while True:
        one, _ = listener.accept()
        while one.recv(65536):
            one.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{"success":true}')


def floor():
    listener = socket.create_server(("127.0.0.1", 0))
    multiprocessing.Process(target=answer, args=(listener,), daemon=True).start()
    return http.client.HTTPConnection("127.0.0.1", listener.getsockname()[1], timeout=60)


def spawn():
    nothing = os.open("/dev/null", os.O_WRONLY)
    pid = os.posix_spawn("/bin/bash", ["bash", "-c", "echo"], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, nothing, 1)])
    os.close(nothing)
    return (200, b'"success":true') if os.waitpid(pid, 0)[1] == 0 else (500, b"")


def measure(seconds, told):
    connection, bare, failed = connect(), floor(), 0
    calls = {
        "sandbox": lambda: call(connection, "GET", "/v1/sandbox"),
        "floor": lambda: call(bare, "GET", "/"),
        "bash": lambda: call(connection, "POST", "/v1/bash/exec", {"command": "echo", "session_id": "measured"}),
        "spawn": spawn,
    }
    took = {name: [] for name in calls}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, asked in calls.items():
            begin = time.monotonic()
            status, text = asked()
            took[name].append((time.monotonic() - begin) * 1e3)
            failed += status != 200 or b'"success":true' not in text
            time.sleep(PAUSE_S)
    told.put((took, failed))


def measured(seconds=SECONDS):
    told = multiprocessing.Queue()
    one = multiprocessing.Process(target=measure, args=(seconds, told))
    one.start()
    out = told.get()
    one.join()
    return out


def beside(path, body):
    over, calls = multiprocessing.Event(), [multiprocessing.Value("i", 0) for _ in range(ATTACKERS)]
    them = [multiprocessing.Process(target=attack, args=(n, path, body, over, calls[n])) for n in range(ATTACKERS)]
    for one in them:
        one.start()
    time.sleep(1)
    took, failed = measured()
    over.set()
    for one in them:
        one.join(30)
        one.kill()
    return took, failed, sum(n.value for n in calls)


def setup():
    first = connect()
    status, text = call(first, "POST", "/v1/workspaces", {"name": NOISE})
    assert status in (200, 201), text[:300]
    for number in range(ATTACKERS):
        call(first, "POST", "/v1/shell/sessions/create", {"id": f"noise-{number}"}, NOISE)
    status, text = call(first, "POST", "/v1/bash/exec", {"command": PREPARE, "timeout": 50}, NOISE)
    assert json.loads(text)["data"]["exit_code"] == 0, text[:300]
    status, text = call(first, "POST", "/v1/bash/sessions/create", {"session_id": "measured"})
    assert status == 200, text[:300]


def main():
    setup()
    print(f"p99 of others' calls in ms, quiet | beside plain output | beside hostile output (times quiet, target {TARGET:.0f}; times plain)")
    worst = 0
    for name, (path, plain, hostile) in KINDS.items():
        quiet, failed = measured()
        beside_plain, failed_plain, _ = beside(path, plain)
        if name == "observe":
            call(connect(), "POST", "/v1/bash/exec", {"command": CROWD, "async_mode": True}, NOISE)
            time.sleep(1)
        beside_hostile, failed_hostile, calls = beside(path, hostile)
        for asked in quiet:
            q, p, h = (quantile(took[asked], 0.99) for took in (quiet, beside_plain, beside_hostile))
            if asked in ("sandbox", "bash"):
                worst = max(worst, h / q)
            print(f"{name:20} {asked:8} {q:8.2f} | {p:8.2f} | {h:8.2f}   x {h / q:5.2f} quiet, x {h / p:5.2f} plain")
        print(f"{'':20} {calls} hostile calls answered; calls of others that failed: {failed + failed_plain + failed_hostile}")
    print(f"worst: {worst:.2f} times quiet   {held(worst, TARGET)}")


if __name__ == "__main__":
    main()
