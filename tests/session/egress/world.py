"""Door and dialer between a workspace and an internet of three network namespaces, none of which leads out of this machine:

workspace (every address is its own, as caisson-gate makes it)   door -> dialer (out: 11.0.0.1) -> servers (world: 11.0.0.254 and others)
"""

import contextlib
import ctypes
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import stage
from harness import BUILD
from names import NameServer, addresses_in, question

SEAL, EGRESS = BUILD / "launcher" / "caisson-seal", BUILD / "launcher" / "caisson-egress"
UNSEALED = "CAISSON_UNSEALED" in os.environ  # a build with sanitizers, which no filter would leave alive
CLONE_NEWNS, MS_BIND, MS_REC_PRIVATE = 0x20000, 0x1000, 0x4000 | 0x40000
IP_TRANSPARENT, IPV6_TRANSPARENT, IPV6_RECVPKTINFO = 19, 75, 49
PUBLIC, PUBLIC6, OTHER, PRIVATE, METADATA = "93.184.216.34", "2a00:2::34", "93.184.216.99", "10.9.9.9", "169.254.169.254"
OUT, SERVER = "11.0.0.1", "11.0.0.254"
RESOLV_CONF = f"nameserver {SERVER}\n"
UIDS = {"door": "993", "dialer": "994", "opener": "995"}


class Net:
    """A network namespace, held by a process in it, or that of a process that is there."""

    def __init__(self, pid=None):
        self.holder = None
        if pid is None:
            self.holder = subprocess.Popen(["unshare", "--net", "sleep", "3600"])
            own, pid = os.stat("/proc/self/ns/net").st_ino, self.holder.pid
            while os.stat(f"/proc/{pid}/ns/net").st_ino == own:
                time.sleep(0.005)
        self.fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        self.ip("link set lo up")

    def ip(self, command):
        subprocess.run(["ip", *command.split()], preexec_fn=self.enter, check=True, timeout=90)

    def enter(self):
        stage.call(stage.libc.setns(self.fd, stage.CLONE_NEWNET))

    @contextlib.contextmanager
    def inside(self):
        back = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        self.enter()
        try:
            yield
        finally:
            stage.call(stage.libc.setns(back, stage.CLONE_NEWNET))
            os.close(back)

    def socket(self, *kind):
        with self.inside():
            made = socket.socket(*kind)
        made.settimeout(60)
        return made

    def close(self):
        os.close(self.fd)
        if self.holder:
            self.holder.kill()
            self.holder.wait()


def rule(name=None, suffix=None, address=None, prefix=None, ports=(), deny=False, private=False, read_only=False, sni_optional=False, alarm=False, inspect=False,
         paths=(), why="a test"):  # fmt: skip
    flags = deny | private << 1 | read_only << 2 | sni_optional << 3 | alarm << 4 | inspect << 5
    if address is not None:
        v6 = ":" in address
        packed = socket.inet_pton(socket.AF_INET6 if v6 else socket.AF_INET, address).ljust(16, b"\0")
        host = b"\2" + bytes([v6]) + packed + bytes([prefix if prefix is not None else 128 if v6 else 32])
    else:
        text = (name or suffix).encode()
        host = bytes([name is None]) + struct.pack("=H", len(text)) + text
    ranges = b"".join(struct.pack("=HH", *(p if isinstance(p, tuple) else (p, p))) for p in ports)
    texts = b"".join(struct.pack("=H", len(text)) + text.encode() for text in (*paths, why))
    return bytes([flags]) + host + bytes([len(ports)]) + ranges + bytes([len(paths)]) + texts


def binding(name, placeholder, host, port=443, methods=(), path="/", field="authorization", file="/etc/caisson/secrets/one", env="TOKEN", command="", why="what a test needs"):
    texts = b"".join(struct.pack("=H", len(text)) + text.encode() for text in (name, placeholder, host, path, field, file, env, command, why))
    return texts + struct.pack("=HIB", port, 3600, len(methods)) + b"".join(struct.pack("=H", len(m)) + m.encode() for m in methods)


def upstream(server="", user="", secret="", command="", resolve="there", include=(), exclude=()):
    """The proxy that a policy names, as upstream_bytes() of launcher/egress/list writes it."""
    kind, _, place = server.rpartition("://")
    host, _, port = place.rpartition(":")
    lines = [("kind", kind or "http"), ("host", host), ("port", port), ("user", user), ("password", ""), ("secret", secret), ("command", command), ("resolve", resolve), ("of", "policy")]
    return "".join(f"{key} {value}\n" for key, value in [*lines, *(("include", p) for p in include), *(("exclude", p) for p in exclude)]).encode()


def list_of(*rules, domain="bash", mode=0, ask=0, connections=512, per_second=500, bytes_per_second=0, idle=300, through=b"", bindings=(), trust="", client_commands=False):
    """A domain's list as list_bytes() of launcher/egress/list writes it, and as PID 1 joins it to others."""
    list_ = b"egress4\n" + struct.pack("=BBIIQII", mode, ask, connections, per_second, bytes_per_second, idle, len(rules)) + b"".join(rules)
    list_ += struct.pack("=H", len(through)) + through
    list_ += bytes([len(bindings)]) + b"".join(bindings) + struct.pack("=H", len(trust)) + trust.encode() + bytes([client_commands])
    return f"{domain}\n{len(list_)}\n".encode() + list_


def bind(files):
    """In a child, before its exec: these files in the place of the machine's."""
    stage.call(stage.libc.unshare(CLONE_NEWNS))
    stage.call(stage.libc.mount(b"none", b"/", None, ctypes.c_ulong(MS_REC_PRIVATE), None))
    for path, file in files.items():
        stage.call(stage.libc.mount(os.fsencode(file), path.encode(), None, ctypes.c_ulong(MS_BIND), None))


class Service(stage.Service):
    """Door, dialer or opener, sealed as it is in earnest; the test is its launcher."""

    def __init__(self, name, net, files):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

        def prepare():
            net.enter()
            bind(files)
            os.dup2(theirs.fileno(), 3)

        program = [EGRESS, name] if UNSEALED else [SEAL, name, UIDS[name], EGRESS, name]
        self.process = subprocess.Popen(program, preexec_fn=prepare, pass_fds=[3], env={})
        theirs.close()
        super().__init__(ours, name, UIDS[name], self.process.pid, ours)
        assert self.hear()[0] == stage.READY

    def status(self, name):
        with open(f"/proc/{self.pid}/status") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith(name + ":"))

    def memory(self):
        """KiB of its own: not the program's file."""
        return int(self.status("RssAnon").split()[0])

    def hear(self):
        data, _ = stage.receive(self.socket)
        said, size, workspace = struct.unpack("IIQ", data[:16])
        assert size == len(data) - 16
        return said, workspace, data[16:].decode()

    def close(self):
        self.socket.close()
        self.process.wait(60)


def next_record(service, seen, wanted):
    """The next record of the service that has these members; `seen` keeps the others."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for record in seen:
            if all(record.get(key) == value for key, value in wanted.items()):
                seen.remove(record)
                return record
        said, _, text = service.hear()
        if said == stage.RECORD:
            seen.append(json.loads(text))
    raise AssertionError(f"no record {wanted}: {seen}")


class World:
    def __init__(self, folder, out=None):
        """out: where the dialer stands, if that is there already."""
        self.folder = folder
        self.workspace, self.out, self.world = self.nets = [Net(), out or Net(), Net()]
        for family in ("-4", "-6"):
            self.workspace.ip(f"{family} route add local default dev lo")
        self.out.ip(f"link add v0 type veth peer name v1 netns {self.world.holder.pid}")
        for net, device, own in ((self.out, "v0", "1"), (self.world, "v1", "254")):
            net.ip(f"addr add 11.0.0.{own}/24 dev {device}")
            net.ip(f"addr add 2a00:1::{own}/64 dev {device} nodad")
            net.ip(f"link set {device} up")
        self.out.ip("route replace default via 11.0.0.254")
        self.out.ip("-6 route add default via 2a00:1::254")
        for address in (PUBLIC, OTHER, PRIVATE, METADATA, "100.64.0.9"):
            self.world.ip(f"addr add {address}/32 dev lo")
        self.world.ip(f"addr add {PUBLIC6}/128 dev lo nodad")
        self.names = NameServer(self.world.socket(socket.AF_INET, socket.SOCK_DGRAM), self.listener(SERVER, 53))
        (folder / "resolv.conf").write_text(RESOLV_CONF)
        (folder / "hosts").write_text(f"127.0.0.1 localhost\n{PUBLIC} from-hosts.test\n")
        self.door = self.dialer = None
        self.records, self.servers = [], []
        self.sockets = []

    def listener(self, address, port, backlog=4096):
        made = self.world.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((address, port))
        made.listen(backlog)
        made.settimeout(None)
        return made

    def files(self):
        return {"/etc/resolv.conf": self.folder / "resolv.conf", "/etc/hosts": self.folder / "hosts"}

    def as_container(self):
        """In a child, before its exec: it stands where the dialer does."""
        self.out.enter()
        bind(self.files())

    def wrapper(self):
        """The same for a program that the harness starts."""
        binds = "".join(f"mount --bind {file} {path} && " for path, file in self.files().items())
        return ["nsenter", f"--net=/proc/{self.out.holder.pid}/ns/net", "unshare", "--mount", "--", "sh", "-c", binds + 'exec "$@"', "sh"]

    def as_workspace(self):
        """In a child, before its exec: it stands where sessions do, and asks the door for names."""
        self.workspace.enter()
        (self.folder / "inside.conf").write_text("nameserver 127.0.0.53\noptions ndots:1\n")
        bind({"/etc/resolv.conf": self.folder / "inside.conf"})

    def start_dialer(self):
        self.dialer = Service("dialer", self.out, self.files())

    def start_door(self):
        self.door = Service("door", self.workspace, {})

    def join(self):
        ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for service, end in zip((self.door, self.dialer), ends):
            stage.send(service.socket, struct.pack("IIQ", stage.TO_PEER, 0, 0), [end.fileno()])
            end.close()

    def open(self, *rules, port=443, **limits):
        """Everything runs; transparent listeners at this port."""
        self.start_dialer()
        self.start_door()
        self.join()
        self.sockets = self.listeners(self.workspace, port)
        self.set_list(*rules, sockets=self.sockets, **limits)
        return self

    @staticmethod
    def listeners(net, port):
        """As caisson-gate makes them: transparent ones for both families at this port, and the names socket."""
        kinds = ((socket.AF_INET, socket.SOCK_STREAM), (socket.AF_INET6, socket.SOCK_STREAM), (socket.AF_INET6, socket.SOCK_DGRAM))
        v4, v6, names = made = [net.socket(*kind) for kind in kinds]
        v4.setsockopt(socket.IPPROTO_IP, IP_TRANSPARENT, 1)
        for one in (v6, names):
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, one is v6)
            one.setsockopt(socket.IPPROTO_IPV6, IPV6_TRANSPARENT, 1)
        names.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
        v4.bind(("0.0.0.0", port))
        v6.bind(("::", port))
        names.bind(("::", 53))
        v4.listen(4096), v6.listen(4096)
        return made

    def beside(self, *rules, port, **limits):
        """A second workspace at the same door: its network namespace."""
        net = Net()
        for family in ("-4", "-6"):
            net.ip(f"{family} route add local default dev lo")
        self.nets.append(net)
        made = self.listeners(net, port)
        self.sockets += made
        self.set_list(*rules, workspace=2, sockets=made, **limits)
        return net

    def set_list(self, *rules, generation=1, sockets=(), workspace=1, **limits):
        for service, extra in ((self.door, sockets), (self.dialer, ())):
            file = stage.memory_file(list_of(*rules, **limits))
            stage.send(service.socket, struct.pack("IIQ", stage.OPEN, generation, workspace), [file, *(s.fileno() for s in extra)])
            os.close(file)

    def ask(self, name, type_=1, server="127.0.0.53", net=None):
        """(code, answers) of a workspace's names socket."""
        asker = (net or self.workspace).socket(socket.AF_INET, socket.SOCK_DGRAM)
        with asker:
            asker.connect((server, 53))
            asker.send(question(name, type_))
            return addresses_in(asker.recv(4096))

    def connect(self, host, port, timeout=60, net=None):
        """A client in the workspace, to an address or a name."""
        if not host.replace(".", "").isdigit() and ":" not in host:
            code, found = self.ask(host, net=net)
            assert code == 0 and found, f"{host}: {code}"
            host = found[0]
        client = (net or self.workspace).socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        client.settimeout(timeout)
        client.connect((host, port))
        return client

    def resets(self, host, port):
        """Whether a client is reset before its first byte. connect(2) says so itself where the reset comes before it looks."""
        try:
            client = self.connect(host, port)
        except ConnectionResetError:
            return True
        with client:
            return read_all(client) == b"RST"

    def serve(self, address, port, handle):
        """handle(connection) for each, in a thread of its own. The list that grows with each connection."""
        listening, seen = self.listener(address, port), []

        def one(connection):
            with contextlib.suppress(OSError), connection:
                handle(connection)

        def run():
            with contextlib.suppress(OSError):
                while True:
                    connection, peer = listening.accept()
                    seen.append(peer)
                    threading.Thread(target=one, args=(connection,), daemon=True).start()

        threading.Thread(target=run, daemon=True).start()
        self.servers.append(listening)
        return seen

    def record(self, **wanted):
        """The next record of the door that has these members."""
        return next_record(self.door, self.records, wanted)

    def close(self):
        for service in (self.door, self.dialer):
            if service:
                service.close()
        for made in [*self.sockets, *self.servers]:
            with contextlib.suppress(OSError):
                made.shutdown(socket.SHUT_RDWR)
            made.close()
        self.names.close()
        for net in self.nets:
            net.close()


def echo(connection):
    while data := connection.recv(65536):
        connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)


def read_all(client):
    """Everything up to the end; b"RST" at the end where there is a reset."""
    out = b""
    try:
        while data := client.recv(65536):
            out += data
    except ConnectionResetError:
        out += b"RST"
    return out


def client_hello(server_name):
    """The bytes of a real one."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    out = ssl.MemoryBIO()
    tls = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=server_name)
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return out.read()


def kill(service):
    os.kill(service.pid, signal.SIGKILL)
    service.process.wait(60)
