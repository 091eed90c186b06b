"""front_door.py URL KEY LAUNCHER-PID BARE ROUNDS JWT-KEY HOME: what the front door costs, in turn in one run, each server on one core
and wrk on another. GET /v1/sandbox with the key and with a JWT, beside a bare Beast server that answers as many bytes; a server in a
workspace through the preview proxy, beside the same program behind nginx. Then slowhttptest in its four modes with 1,000 connections,
while a client measures GET /v1/sandbox: ranges twice, because a file's are answered at once and hold no connection. HOME: the default
workspace's, on the host."""
import base64
import contextlib
import http.client
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from latency import held, quantile  # noqa: E402
from memory import children, name  # noqa: E402

SECONDS, SLOW_S, CLIENTS, CONNECTIONS, PAUSE_S, TARGET_MS = 3, 25, 32, 1000, 0.01, 50
CORE, OTHER, FILE, PORT, WORKSPACES = "0", "1", "/home/gem/ranged", 8999, 4
SMALL, LARGE = 1024, 100 * 1024 * 1024
url, key, launcher, bare, rounds, jwt_key, home = (
    sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]), sys.argv[6], pathlib.Path(sys.argv[7]))
place = urllib.parse.urlsplit(url)
KEYED = f"X-AIO-API-Key: {key}"
MODES = {  # a tool for each address, the connections shared between them
    "slow heads": (["-H", "-i", "5", "-x", "24"], [f"{url}/v1/sandbox?api_key={key}"]),
    "slow bodies": (["-B", "-i", "5", "-s", "65536", "-x", "10", "-t", "POST"], [f"{url}/v1/bash/exec?api_key={key}"]),
    # Answered at once, and each connection then ends: the tool is started again and again.
    "ranges": (["-R", "-a", "5", "-b", "1500", "-t", "GET"], [f"{url}/v1/file/download?path={FILE}&api_key={key}"]),
    # To servers that let them wait, one in each of some workspaces, because the proxy has 256 requests to a workspace at a time. One client
    # has room for fewer than 600 of them (agent/README.md, "Room"); the others are refused, after 2 s.
    "held ranges": (["-R", "-a", "5", "-b", "1500", "-t", "HEAD", "-r", "25"], []),
    "slow readers": (["-X", "-k", "3", "-w", "10", "-y", "20", "-n", "5", "-z", "32"], [f"{url}/v1/openapi.json?api_key={key}"]),
}
# As Debian installs it, but for one worker. `kept`: with connections to the server kept, which nginx does only if told to.
NGINX = """
user root; daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log {folder}/access.log; sendfile on; tcp_nopush on; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream kept {{ server 127.0.0.1:{small}; keepalive 32; }}
  server {{
    listen 127.0.0.1:{port};
    location /small {{ proxy_pass http://127.0.0.1:{small}; }}
    location /kept {{ proxy_pass http://kept; proxy_http_version 1.1; proxy_set_header Connection ""; }}
    location /large {{ proxy_pass http://127.0.0.1:{large}; }}
  }}
}}
"""


def ask(connection, header=KEYED):
    connection.request("GET", "/v1/sandbox", headers=dict([header.split(": ")]))
    answer = connection.getresponse()
    return answer.status, answer.read()


def token():
    """A JWT of the key in the file jwt_key, good for an hour."""
    def text(value):
        return base64.urlsafe_b64encode(value).rstrip(b"=")

    said = b".".join(text(json.dumps(part).encode()) for part in ({"alg": "RS256", "typ": "JWT"}, {"exp": int(time.time()) + 3600}))
    signed = subprocess.run(["openssl", "dgst", "-sha256", "-sign", jwt_key], input=said, capture_output=True, check=True).stdout
    return (said + b"." + text(signed)).decode()


def requests_a_second(target, header=KEYED, clients=CLIENTS):
    told = subprocess.run(["taskset", "-c", OTHER, "wrk", "-t1", f"-c{clients}", f"-d{SECONDS}s", "--timeout", "30s", "-H", header, target],
                          capture_output=True, text=True, check=True).stdout
    assert "Non-2xx" not in told and "Socket errors" not in told, told
    return float(re.search(r"Requests/sec:\s+([\d.]+)", told)[1])


def used_s(pid):
    """Processor time of a process so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(server, *arguments, **more):
    """Requests a second, and how many a second of the server's own processor time: others on the machine change the first alone."""
    before = used_s(server)
    rate = requests_a_second(*arguments, **more)
    return rate, rate * SECONDS / max(used_s(server) - before, 1e-3)


def in_turn(contenders):
    """{name: [(rate, rate of processor time) of each round]}"""
    found = {one: [] for one in contenders}
    for _ in range(rounds):
        for one, contender in contenders.items():
            found[one].append(contender())
    return found


def report(title, found, ours, theirs, target, most=False):
    """target: the least ratio ours / theirs; most: the greatest theirs / ours."""
    for which, unit in enumerate(("a second", "a second of processor time")):
        a, b = ([turn[which] for turn in found[one]] for one in (ours, theirs))
        ratio = quantile([(y / x if most else x / y) for x, y in zip(a, b)], 0.5)
        good = ratio <= target if most else ratio >= target
        print(f"{title:38} {ours} {quantile(a, 0.5):8.0f}   {theirs} {quantile(b, 0.5):8.0f} {unit:27} {'x slower' if most else 'ratio   '} "
              f"{ratio:5.2f}   target {target}   {'held' if good else 'MISSED'}")


@contextlib.contextmanager
def running(command, port, core=None):
    process = subprocess.Popen((["taskset", "-c", core] if core else []) + command)
    try:
        await_port(port)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def await_port(port, path="/", headers=None):
    for _ in range(100):
        with contextlib.suppress(OSError):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("HEAD", path, headers=headers or {})
            if connection.getresponse().status == 200:
                return
        time.sleep(0.1)
    sys.exit(f"nothing answers on port {port}{path}")


def in_workspace(port, size):
    """The same program in a session of the default workspace, on the core of wrk."""
    program = home / "bare"
    if not program.exists():
        shutil.copy(bare, program)
        program.chmod(0o755)
    connection = http.client.HTTPConnection(place.netloc)
    body = json.dumps({"command": f"exec ~/bare {port} {size}", "async_mode": True})
    connection.request("POST", "/v1/bash/exec", body, {"X-AIO-API-Key": key, "Content-Type": "application/json"})
    said = json.loads(connection.getresponse().read())
    assert said["success"], said
    await_port(place.port, f"/proxy/{port}/", {"X-AIO-API-Key": key})
    for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if process.read_bytes().split(b"\0")[1:3] == [str(port).encode(), str(size).encode()] and b"bare" in process.read_bytes():
                subprocess.run(["taskset", "-pc", OTHER, process.parent.name], check=True, stdout=subprocess.DEVNULL)


def previews(agent, folder):
    """A server in the workspace through ours; the same program on the host through nginx."""
    small, large, port = place.port + 3, place.port + 4, place.port + 5
    for inside, size in ((8001, SMALL), (8002, LARGE)):
        in_workspace(inside, size)
    settings = pathlib.Path(folder, "nginx.conf")
    settings.write_text(NGINX.format(folder=folder, small=small, large=large, port=port))
    with running([bare, str(small), str(SMALL)], small, OTHER), running([bare, str(large), str(LARGE)], large, OTHER), \
            running(["nginx", "-c", str(settings), "-e", f"{folder}/error.log"], port, CORE) as master:
        (worker,) = children(master)

        def nginx(path, clients=CLIENTS):
            return lambda: measure(worker, f"http://127.0.0.1:{port}{path}", clients=clients)

        found = in_turn({"ours": lambda: measure(agent, f"{url}/proxy/8001/"), "nginx": nginx("/small"), "nginx, kept": nginx("/kept")})
        report(f"preview, {SMALL} bytes", found, "ours", "nginx", 2, most=True)
        report(f"preview, {SMALL} bytes", found, "ours", "nginx, kept", 2, most=True)
        found = in_turn({"ours": lambda: measure(agent, f"{url}/proxy/8002/", clients=1), "nginx": nginx("/large", 1)})
        report("preview, 100 MiB", found, "ours", "nginx", 1.3, most=True)


def latencies(over):
    connection, took, refused = http.client.HTTPConnection(place.netloc, timeout=60), [], 0
    while not over.is_set():
        begin = time.monotonic()
        try:
            status, _ = ask(connection)
        except (OSError, http.client.HTTPException):
            connection.close()
            status = 0
        took.append((time.monotonic() - begin) * 1e3)
        refused += status != 200
        time.sleep(PAUSE_S)
    return took, refused


SILENT = f"""
import asyncio
async def wait(reader, writer):
    await asyncio.sleep({4 * SLOW_S})
async def main():
    await (await asyncio.start_server(wait, "127.0.0.1", {PORT}, backlog=512)).serve_forever()
asyncio.run(main())
"""


def post(where, credential=key, **body):
    connection = http.client.HTTPConnection(place.netloc, timeout=60)
    connection.request("POST", where, json.dumps(body), {"X-AIO-API-Key": credential, "Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    assert answer["success"], answer
    return answer["data"]


def silent_servers():
    """The addresses of servers in workspaces of their own, each with a token of that workspace."""
    for number in range(WORKSPACES):
        name = f"ranges-{number}"
        post("/v1/workspaces", name=name)
        token = post("/v1/tokens", label=name, workspace=name, seconds=600)["token"]
        post("/v1/bash/exec", token, command=f"exec /usr/bin/python3 -c '{SILENT}'", async_mode=True)
        yield f"{url}/proxy/{PORT}/?api_key={token}"
    time.sleep(2)


def answered():
    """Requests of others than the client, up to now."""
    for _ in range(60):  # once there is room for the answer again
        connection = http.client.HTTPConnection(place.netloc, timeout=60)
        connection.request("GET", "/metrics", headers={"X-AIO-API-Key": key})
        answer = connection.getresponse()
        text = answer.read().decode()
        if answer.status == 200:
            break
        time.sleep(0.5)
    assert answer.status == 200, text
    counts = re.findall(r'^caisson_http_requests_total\{route="([^"]*)".*\} (\d+)$', text, re.MULTILINE)
    return sum(int(count) for route, count in counts if route not in ("/v1/sandbox", "/metrics"))


def connections():
    """How many clients' connections the kernel has at the server's port."""
    rows = (line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:])
    return sum(row[3] == "01" and int(row[1].split(":")[1], 16) == place.port for row in rows)


def beside(mode):
    """The client's times while slowhttptest runs in one mode, the most connections that it had at a time, and how many of its requests were
    answered."""
    options, targets = MODES[mode]
    over, found, most, end = threading.Event(), [], 0, time.monotonic() + SLOW_S
    before = answered()
    client = threading.Thread(target=lambda: found.append(latencies(over)))
    client.start()
    while (left := round(end - time.monotonic())) > 0:
        tools = [subprocess.Popen(["slowhttptest", "-c", str(CONNECTIONS // len(targets)), "-r", str(500 // len(targets)), "-l", str(left), "-p", "5",
                                   *options, "-u", target], stdout=subprocess.DEVNULL) for target in targets]
        while any(tool.poll() is None for tool in tools):
            most = max(most, connections() - 1)  # the client's own
            time.sleep(0.2)
    over.set()
    client.join()
    return *found[0], most, answered() - before


resource.setrlimit(resource.RLIMIT_NOFILE, (min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
if missing := [tool for tool in ("wrk", "slowhttptest", "nginx", "openssl", "taskset") if not shutil.which(tool)]:
    sys.exit(f"not installed: {' '.join(missing)}")
agent = next(pid for pid in children(launcher) if name(pid).endswith("caisson-agent"))
size = len(ask(http.client.HTTPConnection(place.netloc))[1])
bearer = f"Authorization: Bearer {token()}"
assert ask(http.client.HTTPConnection(place.netloc), bearer)[0] == 200
subprocess.run(["taskset", "-apc", CORE, str(agent)], check=True, stdout=subprocess.DEVNULL)
with running([bare, str(place.port + 2), str(size)], place.port + 2, CORE) as plain:
    turns = in_turn({"the key": lambda: measure(agent, f"{url}/v1/sandbox"), "a JWT": lambda: measure(agent, f"{url}/v1/sandbox", bearer),
                     "bare": lambda: measure(plain, f"http://127.0.0.1:{place.port + 2}/")})
for who in ("the key", "a JWT"):
    report(f"GET /v1/sandbox, {size} bytes", turns, who, "bare", 0.5)
previews(agent, os.path.dirname(jwt_key))
post("/v1/bash/exec", command=f"head -c 100000 /dev/zero > {FILE}")
MODES["held ranges"][1].extend(silent_servers())
for mode in MODES:
    took, refused, most, answers = beside(mode)
    p99 = quantile(took, 0.99)
    print(f"beside {CONNECTIONS} {mode:12} ({most:4d} connected at most, {answers:5d} answered): p50 {quantile(took, 0.5):6.2f} ms   p99 {p99:6.2f} ms   "
          f"{len(took)} calls, {refused} failed   {held(p99, TARGET_MS)}")
