"""browser.py [ROUNDS]: browser and desktop of a workspace beside the same programs without walls, things in turn in one run. Ratios only:
absolute times belong to the machine."""
import asyncio
import base64
import http.client
import json
import os
import pathlib
import random
import re
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "api"), str(pathlib.Path(__file__).parents[1])]
from bare_desktop import BareDesktop  # noqa: E402
from latency import held, quantile  # noqa: E402
from launcher_process import Launcher  # noqa: E402

ROUNDS = int(sys.argv[1]) if sys.argv[1:2] and sys.argv[1].isdigit() else 30
PAGE = "data:text/html,<title>t</title><button id=b style='width:300px;height:300px'>b</button>"
SPINS = "data:text/html,<canvas id=c width=1200 height=900></canvas><script>const c=document.getElementById('c').getContext('2d');let n=0;" \
        "(function f(){n++;for(let i=0;i<40;i++){c.fillStyle='hsl('+(n*7+i*9)%25360+',80%25,50%25)';c.fillRect((n*11+i*30)%251200,(i*23)%25900,120,90)}" \
        "requestAnimationFrame(f)})()</script>"


class Http:
    """One connection to the agent."""

    def __init__(self, launcher, workspace=""):
        self.connection = http.client.HTTPConnection("127.0.0.1", launcher.port, timeout=120)
        self.connection.connect()
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.headers = {"X-AIO-API-Key": launcher.key, "Content-Type": "application/json", **({"X-Caisson-Workspace": workspace} if workspace else {})}

    def ask(self, method, path, body=None):
        self.connection.request(method, path, None if body is None else json.dumps(body), self.headers)
        answer = self.connection.getresponse()
        content = answer.read()
        assert answer.status == 200, (path, answer.status, content[:300])
        return content

    def done(self, method, path, body=None):
        answer = json.loads(self.ask(method, path, body))
        assert answer["success"], answer
        return answer["data"]


class Socket:
    """A WebSocket client without a library, whose own time would be measured. Text and binary messages alike."""

    def __init__(self, port, path, headers=()):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                 f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}", *headers, "", ""]
        self.socket.sendall("\r\n".join(lines).encode())
        self.file = self.socket.makefile("rb", buffering=1 << 20)
        assert b" 101 " in self.file.readline()
        while self.file.readline().strip():
            pass
        self.left, self.last = b"", 0

    def send(self, data, kind=2):
        size = len(data)
        head = struct.pack("!BB", 0x80 | kind, 0x80 | size) if size < 126 else struct.pack("!BBH", 0x80 | kind, 0xFE, size)
        self.socket.sendall(head + b"\0\0\0\0" + data)

    def frame(self):
        kind, size = self.file.read(2)
        if size == 126:
            size, = struct.unpack("!H", self.file.read(2))
        elif size == 127:
            size, = struct.unpack("!Q", self.file.read(8))
        data = self.file.read(size)
        return b"" if kind & 0x0F > 2 else data, kind & 0x80

    def message(self):
        out, last = self.frame()
        while not last:
            more, last = self.frame()
            out += more
        return out

    def read(self, size):
        parts, have = [self.left], len(self.left)
        while have < size:
            parts.append(self.frame()[0])
            have += len(parts[-1])
        data = b"".join(parts)
        self.left = data[size:]
        return data[:size]

    def skip(self, size):
        """As read(), of what nobody looks at: its copies would be measured."""
        while size > len(self.left):
            size -= len(self.left)
            self.left = self.frame()[0]
        self.left = self.left[size:]

    def call(self, method, params=None, session=None):
        self.last += 1
        self.send(json.dumps({"id": self.last, "method": method, "params": params or {}, **({"sessionId": session} if session else {})}).encode(), 1)
        while True:
            answer = json.loads(self.message() or b"{}")
            if answer.get("id") == self.last:
                return answer["result"]


class Unix:
    """The same reads from a UNIX socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rb", buffering=1 << 20)
        self.send, self.read, self.place = self.socket.sendall, self.file.read, memoryview(bytearray(1 << 20))

    def skip(self, size):
        while size > 0:
            size -= self.file.readinto(self.place[:size])


class Rfb:
    """A viewer that asks for the whole screen, uncompressed."""

    def __init__(self, link):
        self.link = link
        link.read(12), link.send(b"RFB 003.008\n")
        link.read(link.read(1)[0]), link.send(b"\1")
        link.read(4), link.send(b"\1")
        self.width, self.height = struct.unpack(">HH", link.read(4))
        link.read(16), link.read(struct.unpack(">I", link.read(4))[0])
        link.send(struct.pack(">BxHi", 2, 1, 0))

    def picture(self):
        self.link.send(struct.pack(">BBHHHH", 3, 0, 0, 0, self.width, self.height))
        missing = self.width * self.height
        while missing > 0:
            kind = self.link.read(1)[0]
            if kind == 2:
                continue
            if kind == 3:
                self.link.read(struct.unpack(">3xI", self.link.read(7))[0])
                continue
            for _ in range(struct.unpack(">xH", self.link.read(3))[0]):
                _, _, width, height, _ = struct.unpack(">HHHHi", self.link.read(12))
                self.link.skip(width * height * 4)
                missing -= width * height


def milliseconds(work):
    begin = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - begin)


def in_turn(rounds, **works):
    times = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(milliseconds(work))
    return {name: statistics.median(values) for name, values in times.items()}


def tell(what, ours, theirs, target, unit="ms"):
    print(f"{what:64s} {ours:9.2f} {unit} / {theirs:9.2f} {unit} = {ours / theirs:5.2f}   {held(ours / theirs, target)}", flush=True)


def lines():
    """pid -> (parent, command line) of everything."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text()
            found[int(entry.name)] = (int(stat[stat.rindex(")") + 2 :].split()[1]), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found


def below(roots, table):
    out, grown = set(roots), True
    while grown:
        grown = False
        for pid, (parent, _) in table.items():
            if parent in out and pid not in out:
                out.add(pid)
                grown = True
    return out


def pss_mb(pids):
    total = 0
    for pid in pids:
        try:
            total += int(re.search(r"^Pss:\s+(\d+)", pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)[1])
        except (OSError, TypeError):
            continue
    return total / 1024


def ours_pids(launcher, table):
    """The processes of the two sessions, with the init of each."""
    whole = below({launcher.process.pid}, table)
    return below({table[pid][0] for pid in whole if re.match(r"Xvnc |\S*caisson-cdp ", table[pid][1])}, table)


def own_flags(launcher):
    """Those of the Chromium of the default workspace, for one without walls."""
    Http(launcher).ask("GET", "/json/version")
    own = next(line for _, line in lines().values() if "--remote-debugging-pipe" in line and "--type=" not in line)
    kept = [word for word in own.split()[1:] if word.startswith("--") and not word.startswith(("--remote-debugging-pipe", "--user-data-dir"))]
    return [*kept, "--remote-debugging-port=0"]


def start_times(launcher, rounds):
    ours, theirs, flags = [], [], own_flags(launcher)
    default = Http(launcher)
    for number in range(rounds + 1):
        name = f"bench{number}"
        default.done("POST", "/v1/workspaces", {"name": name})
        ours.append(milliseconds(lambda: Http(launcher, name).ask("GET", "/json/version")))
        default.ask("DELETE", f"/v1/workspaces/{name}")
        bare = []
        theirs.append(milliseconds(lambda: bare.append(BareDesktop(flags))))
        bare[0].close()
    tell("a workspace's first /json/version / bare Xvnc, openbox, Chromium", statistics.median(ours[1:]), statistics.median(theirs[1:]), 1.5)


def memory(launcher):
    Http(launcher).ask("GET", "/v1/browser/screenshot")
    bare = BareDesktop(own_flags(launcher))
    time.sleep(15)  # both have come to rest
    table = lines()
    tell("memory (PSS) of both sessions with one page / bare", pss_mb(ours_pids(launcher, table)), pss_mb(below(bare.pids(), table)), 1.1, "MB")
    bare.close()


def attach(link):
    target = link.call("Target.createTarget", {"url": PAGE})["targetId"]
    return link.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]


def calls(launcher, rounds):
    api, key = Http(launcher), [f"X-AIO-API-Key: {launcher.key}"]
    api.done("POST", "/v1/browser/page/navigate", {"url": PAGE})
    bare = BareDesktop(own_flags(launcher))
    ours, theirs = Socket(launcher.port, "/cdp", key), Socket(bare.port, "/" + bare.address.split("/", 3)[3])
    session, other = attach(ours), attach(theirs)
    expression = {"expression": "1+1", "returnByValue": True}
    got = in_turn(rounds * 20, ours=lambda: ours.call("Runtime.evaluate", expression, session), theirs=lambda: theirs.call("Runtime.evaluate", expression, other))
    tell("Runtime.evaluate through /cdp / a bare local port", got["ours"], got["theirs"], 1.5)

    for name, query, target in (("JPEG", "?format=jpeg", 0.25), ("PNG", "", 0.5)):
        picture = {"format": name.lower()}
        got = in_turn(rounds, ours=lambda query=query: api.ask("GET", f"/v1/browser/screenshot{query}"),
                      theirs=lambda picture=picture: theirs.call("Page.captureScreenshot", picture, other))
        tell(f"/v1/browser/screenshot, {name} / CDP's own", got["ours"], got["theirs"], target)

    click = ["xdotool", "mousemove", "600", "600", "click", "1"]
    got = in_turn(rounds, ours=lambda: api.done("POST", "/v1/browser/actions", {"action_type": "CLICK", "x": 600, "y": 600}),
                  theirs=lambda: subprocess.run(click, env=bare.env, check=True))
    tell("CLICK / xdotool", got["ours"], got["theirs"], 0.1)

    web, unix = Rfb(Socket(launcher.port, "/websockify", key)), Rfb(Unix(bare.rfb))
    got = in_turn(rounds, ours=web.picture, theirs=unix.picture)
    tell("a full raw frame through /websockify / the UNIX socket", got["ours"], got["theirs"], 2.5)
    page_operations(launcher, bare, rounds)
    bare.close()


def playwright(*arguments):
    """playwright-core of the page driver, by itself: begun(name) takes an operation and gives its milliseconds."""
    driver = pathlib.Path(os.environ["CAISSON_BUILD_DIR"]) / "launcher/tools/driver"
    script = """const {chromium} = require(process.argv[1] + '/node_modules/playwright-core');
      (async () => { const browser = await chromium.connectOverCDP(process.argv[2], {headers: JSON.parse(process.argv[4])}); const page = await browser.contexts()[0].newPage(); await page.goto(process.argv[3]);
      const works = {evaluate: () => page.evaluate('document.title'), click: () => page.click('#b'), text: () => page.innerText('body')};
      require('readline').createInterface({input: process.stdin}).on('line', async name => { const t = process.hrtime.bigint(); await works[name](); console.log(Number(process.hrtime.bigint() - t) / 1e6); });
      console.log('ready'); })();"""
    own = driver / "bin/node"  # where the system's is too old
    node = subprocess.Popen([str(own) if own.exists() else "node", "-e", script, str(driver), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    assert node.stdout.readline() == "ready\n"

    def begun(name):
        node.stdin.write(name + "\n")
        return float(node.stdout.readline())
    return node, begun


def page_operations(launcher, bare, rounds):
    api = Http(launcher)
    alone, bare_done = playwright(f"http://127.0.0.1:{bare.port}", PAGE, "{}")
    inside, inside_done = playwright(f"http://127.0.0.1:{launcher.port}", PAGE, json.dumps({"X-AIO-API-Key": launcher.key}))
    bodies = {"evaluate": ("POST", "/v1/browser/page/evaluate", {"expression": "document.title"}), "click": ("POST", "/v1/browser/page/click", {"selector": "#b"}),
              "text": ("GET", "/v1/browser/page/text", None)}
    for name, asked in bodies.items():
        took = {"ours": [], "session": [], "bare": []}
        for _ in range(rounds * 2):
            pause = random.random() / 30 if name == "click" else 0  # it takes some frames of the page: none begins in step with them
            for whose, work in (("ours", lambda asked=asked: milliseconds(lambda: api.done(*asked))), ("session", lambda name=name: inside_done(name)),
                                ("bare", lambda name=name: bare_done(name))):
                time.sleep(pause)
                took[whose].append(work())
        ours, session, without = (statistics.median(times) for times in took.values())
        tell(f"page operation {name} / playwright through /cdp", ours, session, 1.3)
        tell(f"page operation {name} / playwright on the bare browser", ours, without, 1.3)
    for node in (alone, inside):
        node.kill()
        node.wait()


async def watch(port, key, count, over):
    """Viewers as noVNC is one: Tight, the next picture asked for sixty times a second; what comes is dropped."""
    import websockets

    async def one():
        async with websockets.connect(f"ws://127.0.0.1:{port}/websockify", extra_headers={"X-AIO-API-Key": key}, max_size=None, ping_interval=None) as link:
            for said in (b"RFB 003.008\n", b"\1", b"\1", struct.pack(">BxHiii", 2, 3, 7, -26, 0)):
                await link.recv()
                await link.send(said)

            async def drop():
                async for _ in link:
                    pass
            task = asyncio.create_task(drop())
            while not over.is_set():
                await link.send(struct.pack(">BBHHHH", 3, 1, 0, 0, 1280, 1024))
                await asyncio.sleep(1 / 60)
            task.cancel()
    await asyncio.gather(*(one() for _ in range(count)), return_exceptions=True)


def viewers(launcher, seconds=20):
    api = Http(launcher)
    api.done("POST", "/v1/browser/page/navigate", {"url": SPINS})
    quiet = [milliseconds(lambda: api.ask("GET", "/v1/sandbox")) for _ in range(300)]
    program = [sys.executable, __file__, "--watch", str(launcher.port), launcher.key, str(seconds + 5), "16"]
    crowd = subprocess.Popen(program)
    time.sleep(4)
    end, times = time.monotonic() + seconds, []
    while time.monotonic() < end:
        times.append(milliseconds(lambda: api.ask("GET", "/v1/sandbox")))
        time.sleep(0.01)
    crowd.wait()
    p99 = quantile(times, 0.99)
    print(f"GET /v1/sandbox beside 16 viewers of 60 frames a second: p50 {quantile(times, 0.5):.1f} ms, p99 {p99:.1f} ms (quiet p99 {quantile(quiet, 0.99):.1f} ms)   "
          f"target 50 ms   {'held' if p99 < 50 else 'MISSED'}", flush=True)


def main():
    launcher = Launcher()
    try:
        start_times(launcher, max(3, ROUNDS // 6))
        memory(launcher)
        calls(launcher, ROUNDS)
        viewers(launcher)
    finally:
        launcher.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--watch"]:
        stop = threading.Event()
        threading.Timer(float(sys.argv[4]), stop.set).start()
        asyncio.run(watch(int(sys.argv[2]), sys.argv[3], int(sys.argv[5]), stop))
    else:
        main()
