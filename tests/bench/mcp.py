"""mcp.py PROXY ROUNDS OUT: what the MCP hub costs, in turn in one run. One tool of one server is called over the server's own pipes, through
/mcp, and through npm's mcp-proxy, which stands in a folder with its node_modules. The server is sealed in a session behind /mcp, and nowhere
else. Figures of all rounds go to OUT, as JSON. CAISSON_BUILD_DIR: the build."""
import collections
import contextlib
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "api"), str(ROOT / "tests")]

from latency import held, quantile  # noqa: E402
from launcher_process import Launcher, free_port  # noqa: E402
from upstream import SERVERS, configured, granting, python  # noqa: E402

REVISION, CLIENTS, ASKED, SECONDS = "2025-11-25", 8, 1000, 3
ADDED_MS, TIMES = 1.5, 4.0
ACCEPT = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
HELLO = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


def message(method, params, id_=None):
    return json.dumps({"jsonrpc": "2.0", **({} if id_ is None else {"id": id_}), "method": method, "params": params}).encode()


def call(number):
    return message("tools/call", {"name": "greet", "arguments": {}}, number)


class Pipes:
    """The server itself: the floor."""

    def __init__(self, stack):
        self.server = subprocess.Popen(["/usr/bin/python3", "-B", str(SERVERS / "plain.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        stack.callback(self.server.wait)
        stack.callback(self.server.kill)
        self.ask(message("initialize", HELLO, 0))

    def send(self, body):
        self.server.stdin.write(body + b"\n")
        self.server.stdin.flush()

    def ask(self, body):
        self.send(body)
        return self.server.stdout.readline()

    def rate(self):
        """Calls a second with as many under way as there are clients elsewhere."""
        begin, count = time.monotonic(), 0
        for number in range(CLIENTS):
            self.send(call(number))
        while time.monotonic() < begin + SECONDS:
            self.server.stdout.readline()
            self.send(call(count))
            count += 1
        took = time.monotonic() - begin
        for _ in range(CLIENTS):
            self.server.stdout.readline()
        return count / took


class Session:
    """A client of Streamable HTTP: blocking, without a library, whose own time would be measured."""

    def __init__(self, port, headers):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.headers = {**ACCEPT, **headers}
        head, body = self.post(message("initialize", HELLO, 0))
        assert head.startswith(b"HTTP/1.1 200"), head + body
        self.id = re.search(rb"(?i)^mcp-session-id: *(\S+)", head, re.M)[1].decode()
        self.headers |= {"Mcp-Session-Id": self.id, "MCP-Protocol-Version": REVISION}
        assert self.post(message("notifications/initialized", {}))[0].startswith(b"HTTP/1.1 202")
        answer = self.ask(call(1))
        assert b'"greetings"' in answer, answer

    def post(self, body):
        lines = [b"POST /mcp HTTP/1.1", f"Host: 127.0.0.1:{self.socket.getpeername()[1]}".encode(), b"Content-Length: %d" % len(body),
                 *(f"{name}: {value}".encode() for name, value in self.headers.items())]
        self.socket.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        got = b""
        while b"\r\n\r\n" not in got:
            got += self.more()
        head, _, rest = got.partition(b"\r\n\r\n")
        size = re.search(rb"(?i)^content-length: *(\d+)", head, re.M)
        chunked = size is None and re.search(rb"(?i)^transfer-encoding: *chunked", head, re.M)
        while len(rest) < int(size[1]) if size else chunked and not rest.endswith(b"0\r\n\r\n"):
            rest += self.more()
        return head, rest

    def more(self):
        part = self.socket.recv(65536)
        assert part, "the server closed the connection"
        return part

    def ask(self, body):
        return self.post(body)[1]


class Served:
    def __init__(self, port, headers):
        self.port, self.headers = port, headers
        self.clients = [Session(port, headers) for _ in range(CLIENTS)]
        self.ask = self.clients[0].ask

    def rate(self):
        headers = {**ACCEPT, **self.headers, "MCP-Protocol-Version": REVISION}
        options = [part for name, value in headers.items() for part in ("-H", f"{name}: {value}")]
        done = subprocess.run(["wrk", "-t1", f"-c{CLIENTS}", f"-d{SECONDS}s", "-s", str(pathlib.Path(__file__).with_name("mcp_calls.lua")), *options,
                               f"http://127.0.0.1:{self.port}/mcp", "--", *(client.id for client in self.clients)],
                              capture_output=True, text=True, timeout=120, check=False)
        found = re.search(r"^CALLS (\d+) (\d+) (\d+)$", done.stdout, re.M)
        assert found and found[3] == "0" and int(found[1]), done.stdout + done.stderr
        return int(found[1]) / int(found[2]) * 1e6


def hub(stack):
    launcher = Launcher(policies=granting("mcp"), EXTRA_MCP_SERVERS=configured(plain=python("plain", prefix="")), CAISSON_REQUESTS_PER_SECOND="0")
    stack.callback(launcher.close)
    return Served(launcher.port, {"X-AIO-API-Key": launcher.key})


def proxy(stack, folder):
    port, node = free_port(), next(folder.glob("node_modules/node-linux-*/bin/node"), shutil.which("node"))
    process = subprocess.Popen([node, folder / "node_modules/mcp-proxy/dist/bin/mcp-proxy.mjs", "--host", "127.0.0.1", "--port", str(port),
                                "--server", "stream", "--", "/usr/bin/python3", "-B", str(SERVERS / "plain.py")],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stack.callback(process.wait)
    stack.callback(process.kill)
    end = time.monotonic() + 30
    while True:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
            return Served(port, {})
        assert time.monotonic() < end and process.poll() is None, "mcp-proxy does not listen"
        time.sleep(0.1)


def latencies_us(ask):
    took = []
    for number in range(2, ASKED + 2):
        body = call(number)
        begin = time.monotonic()
        answer = ask(body)
        took.append((time.monotonic() - begin) * 1e6)
        assert b'"greetings"' in answer, answer
    return took


def main():
    folder, rounds, out = pathlib.Path(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
    if not shutil.which("wrk"):
        sys.exit("not installed: wrk")
    took, slow, rates = (collections.defaultdict(list) for _ in range(3))
    with contextlib.ExitStack() as stack:
        contenders = {"pipes": Pipes(stack), "hub": hub(stack), "mcp-proxy": proxy(stack, folder)}
        for _ in range(rounds):
            for name, contender in contenders.items():
                found = latencies_us(contender.ask)
                took[name].append(quantile(found, 0.5))
                slow[name].append(quantile(found, 0.999))
            for name, contender in contenders.items():
                rates[name].append(contender.rate())
    for name in contenders:
        print(f"tools/call, {name:10} one client, p50 {quantile(took[name], 0.5):6.0f} us, p99.9 {quantile(slow[name], 0.5):6.0f} us   "
              f"{CLIENTS} clients {quantile(rates[name], 0.5):6.0f} calls a second")
    added = quantile([ours - floor for ours, floor in zip(took["hub"], took["pipes"])], 0.5) / 1000
    times = quantile([ours / theirs for ours, theirs in zip(rates["hub"], rates["mcp-proxy"])], 0.5)
    share = quantile([ours / floor for ours, floor in zip(rates["hub"], rates["pipes"])], 0.5)
    print(f"{'added by the hub to a call over pipes, p50':52s} {added:5.2f} ms   {held(added, ADDED_MS)}")
    print(f"{f'calls a second, {CLIENTS} clients, hub / mcp-proxy':52s} {times:5.2f}   target {TIMES:.2f}   {'held' if times >= TIMES else 'MISSED'}")
    print(f"{'calls a second, hub / pipes (the floor)':52s} {share:5.2f}")
    rows = {f"tools/call, {name}": {"p50_us": took[name], "p99.9_us": slow[name], "calls_per_s": rates[name]} for name in contenders}
    out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
