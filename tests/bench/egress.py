"""egress.py WIRE ROUNDS FOLDER: what the way out costs, in turn in one run. Clients in a workspace's network namespace reach a server in
another through door and dialer, transparently and by CONNECT; beside them nginx (stream), tinyproxy and the plainest splice relay, whose
clients reach the same server from the namespace in which the dialer stands. Relays run on one core, the server and its clients on another.
Nothing here leaves this machine. CAISSON_BUILD_DIR: the build."""
import contextlib
import pathlib
import shutil
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(pathlib.Path(__file__).parent), str(ROOT / "tests"), str(ROOT / "tests" / "session"), str(ROOT / "tests" / "session" / "egress")]

from latency import quantile  # noqa: E402
from world import PUBLIC, World, rule  # noqa: E402

CORE, OTHER = "0", "1"
PORT, NGINX, TINY, SPLICE, PLAIN = 9000, 9001, 9002, 9003, 80
SECONDS, CLIENTS, STREAMS, ASKED, IDLE = 3, 16, 64, 2000, 2000
LIMITS = {"connections": 16384, "per_second": 1_000_000}
wire, rounds, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
STREAM = f"""
user root; daemon off; worker_processes 1; pid {{folder}}/nginx.pid; error_log {{folder}}/error.log;
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
events {{{{ worker_connections 4096; }}}}
stream {{{{ server {{{{ listen 127.0.0.1:{NGINX} backlog=4096; proxy_pass {PUBLIC}:{PORT}; }}}} }}}}
"""
TINYPROXY = f"""
User root
Group root
Port {TINY}
Listen 127.0.0.1
Timeout 600
LogLevel Critical
LogFile "{{folder}}/tinyproxy.log"
PidFile "{{folder}}/tinyproxy.pid"
MaxClients 1000
ConnectPort {PORT}
"""


class Contender:
    """Where a client connects to, and what it says first: None, a name for an explicit proxy, NAME:PORT for CONNECT."""

    def __init__(self, net, address, port, host=None):
        self.net, self.target = net, [address, str(port), host or "-"]

    def measured(self, what, *arguments):
        done = subprocess.run(["taskset", "-c", OTHER, wire, what, *self.target, *map(str, arguments)], preexec_fn=self.net.enter,
                              capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, (self.target, what, done.stderr)
        return [float(line) for line in done.stdout.split()]


def pinned(pid, core):
    subprocess.run(["taskset", "-apc", core, str(pid)], check=True, stdout=subprocess.DEVNULL)


def many_connections(net):
    """A port that was used is free again at once, for all contenders: 28,000 are used up in three seconds."""
    command = ["sysctl", "-qw", "net.ipv4.ip_local_port_range=1024 65535", "net.ipv4.tcp_tw_reuse=1"]
    subprocess.run(command, preexec_fn=net.enter, check=True)


def started(stack, command, net, core, address, port):
    process = subprocess.Popen(["taskset", "-c", core, *command], preexec_fn=net.enter)
    stack.callback(process.wait)
    stack.callback(process.kill)
    end = time.monotonic() + 10
    while True:
        probe = net.socket(socket.AF_INET, socket.SOCK_STREAM)
        with probe, contextlib.suppress(OSError):
            probe.connect((address, port))
            return process
        assert time.monotonic() < end and process.poll() is None, command
        time.sleep(0.05)


def in_turn(contenders, what, *arguments):
    """{name: [median of each round's figures]}"""
    found = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            found[name].append(quantile(contender.measured(what, *arguments), 0.5))
    return found


def ratio(title, found, ours, theirs, target):
    value = quantile([a / b for a, b in zip(found[ours], found[theirs])], 0.5)
    print(f"{title:34} {ours} {quantile(found[ours], 0.5):12.0f}   {theirs} {quantile(found[theirs], 0.5):12.0f}   ratio {value:5.2f}   "
          f"target {target}   {'held' if value >= target else 'MISSED'}", flush=True)


def added(found, ours, target):
    value = quantile([a - b for a, b in zip(found[ours], found["direct"])], 0.5)
    print(f"{'one client, a small request, p50':34} {ours} {quantile(found[ours], 0.5):.0f} us   direct {quantile(found['direct'], 0.5):.0f} us   "
          f"added {value:.0f} us   target {target}   {'held' if value <= target else 'MISSED'}", flush=True)


def idle_memory(world):
    """Bytes of the door's own memory for each of many idle relays."""
    address = world.ask("api.test")[1][0]
    clients = []

    def more(count):
        for _ in range(count):
            client = world.workspace.socket(socket.AF_INET, socket.SOCK_STREAM)
            client.connect((address, PORT))
            client.sendall(b"GET /1 HTTP/1.1\r\n\r\n")
            assert client.recv(1000)
            clients.append(client)

    more(200)  # what is made once is there
    before = world.door.memory()
    more(IDLE)
    each = (world.door.memory() - before) * 1024 / IDLE
    for client in clients:
        client.close()
    print(f"{'an idle connection':34} {each:.0f} bytes of the door's own memory   target 1024   {'held' if each <= 1024 else 'MISSED'}", flush=True)


if missing := [tool for tool in ("nginx", "tinyproxy", "taskset") if not shutil.which(tool)]:
    sys.exit(f"not installed: {' '.join(missing)}")
for name, text in (("nginx.conf", STREAM), ("tinyproxy.conf", TINYPROXY)):
    (folder / name).write_text(text.format(folder=folder))
with contextlib.ExitStack() as stack:
    world = World(folder)
    stack.callback(world.close)
    world.names.zone["api.test"] = [PUBLIC]
    for net in world.nets:
        many_connections(net)
    for port in (PORT, PLAIN):
        started(stack, [wire, "serve", PUBLIC, str(port)], world.world, OTHER, PUBLIC, port)
    world.open(rule("api.test", ports=[PORT, PLAIN]), port=PORT, **LIMITS)
    for service in (world.door, world.dialer):
        pinned(service.pid, CORE)
    started(stack, ["nginx", "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")], world.out, CORE, "127.0.0.1", NGINX)
    (folder / "hosts").write_text(f"127.0.0.1 localhost\n{PUBLIC} api.test\n")

    def as_container():
        world.as_container()

    tiny = subprocess.Popen(["taskset", "-c", CORE, "tinyproxy", "-d", "-c", str(folder / "tinyproxy.conf")], preexec_fn=as_container)
    stack.callback(tiny.wait)
    stack.callback(tiny.kill)
    started(stack, [wire, "splice", "127.0.0.1", str(SPLICE), PUBLIC, str(PORT)], world.out, CORE, "127.0.0.1", SPLICE)
    synthetic = world.ask("api.test")[1][0]
    tunnel = f"api.test:{PORT}"
    direct, nginx, splice = (Contender(world.out, *to) for to in ((PUBLIC, PORT), ("127.0.0.1", NGINX), ("127.0.0.1", SPLICE)))
    ours, ours_connect = Contender(world.workspace, synthetic, PORT), Contender(world.workspace, "127.0.0.1", PORT, tunnel)
    tiny_connect = Contender(world.out, "127.0.0.1", TINY, tunnel)
    for streams in (1, STREAMS):
        found = in_turn({"ours": ours, "nginx": nginx, "tinyproxy": tiny_connect, "splice": splice}, "bulk", streams, SECONDS)
        for other, target in (("nginx", 1.2), ("tinyproxy", 2), ("splice", 0.8)):
            ratio(f"bytes a second, {streams} streams", found, "ours", other, target)
    found = in_turn({"ours": ours, "nginx": nginx, "CONNECT": ours_connect, "tinyproxy": tiny_connect}, "small", CLIENTS, SECONDS)
    ratio(f"new connections, {CLIENTS} clients", found, "ours", "nginx", 0.8)
    ratio(f"new connections, {CLIENTS} clients", found, "CONNECT", "tinyproxy", 1.2)
    plain = {"ours": Contender(world.workspace, "127.0.0.1", PORT, "api.test"), "tinyproxy": Contender(world.out, "127.0.0.1", TINY, "api.test")}
    found = {name: in_turn({name: one}, "kept" if name == "ours" else "asked", CLIENTS, SECONDS)[name] for name, one in plain.items()}
    ratio(f"plain HTTP by proxy, {CLIENTS} clients", found, "ours", "tinyproxy", 2)
    found = in_turn({"direct": direct, "transparent": ours, "CONNECT": ours_connect}, "one", ASKED)
    added(found, "transparent", 150)
    added(found, "CONNECT", 300)
    idle_memory(world)
