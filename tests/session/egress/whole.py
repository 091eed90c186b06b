"""Gate, door and dialer as the launcher starts them, sealed, in the place of a container."""

import os
import socket
import subprocess
import time

import stage
import world


class Whole:
    """The gate in the network namespace that stands for the container's, a workspace's namespaces beside it."""

    def __init__(self, internet, lists, prepare=lambda: None, variables=None):
        """prepare: in the gate's process, before its exec. variables: the container's."""
        self.internet, self.place, self.servers = internet, stage.Namespaces(), []
        self.socket, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(60)
        self.process = subprocess.Popen(
            [world.BUILD / "launcher" / "caisson-gate", "993", "994", "/run/caisson"],
            preexec_fn=lambda: (internet.as_container(), prepare(), os.dup2(child.fileno(), 3)),
            pass_fds=[3],
            stdin=subprocess.DEVNULL,
            env=variables or {},
        )
        child.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(60)
        file = stage.memory_file(lists)
        order = stage.struct.pack("IIQ", stage.MAKE, 1, 1) + b"default"
        stage.send(self.socket, order, [file, theirs.fileno(), self.place.user])
        os.close(file)
        theirs.close()
        if (answer := stage.answer_of(ours, self.place)) != "made":
            self.close()
            raise AssertionError(answer)

    def told_until(self, kind, **members):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            data, _ = stage.receive(self.socket)
            record = stage.json.loads(data[4:])
            found = stage.TOLD[stage.struct.unpack("I", data[:4])[0]]
            if found == kind and all(record.get(key) == value for key, value in members.items()):
                return record
        raise AssertionError(kind)

    def set_lists(self, lists, generation):
        file = stage.memory_file(lists)
        stage.send(self.socket, stage.struct.pack("IIQ", stage.LIST, generation, 1) + b"default", [file])
        os.close(file)

    def ask(self, op, workspace=1, **members):
        """What the agent would ask of the way out: its result, or (error, what)."""
        return stage.ask(self.socket, op, workspace, **members)

    def serve(self, port, text):
        """A server of a session's own, at its loopback: what it answers is `text`, and the request that it got."""
        code = f"""
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"{text} {{self.path}} {{self.headers['Host']}}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", {port}), Handler)
print("listening", flush=True)
server.serve_forever()
"""
        server = subprocess.Popen(["/usr/bin/python3", "-I", "-c", code], preexec_fn=self.place.enter, stdout=subprocess.PIPE)
        assert server.stdout.readline() == b"listening\n"
        self.servers.append(server)

    def curl(self, *argv, first=lambda: None):
        """(exit status, output) of curl as a session's user, whose names are answered at 127.0.0.53. first: as root, before."""
        resolv = self.internet.folder / "session-resolv.conf"
        resolv.write_text("nameserver 127.0.0.53\noptions ndots:1\n")

        def enter():
            first()
            world.bind({"/etc/resolv.conf": resolv})
            self.place.enter()

        done = subprocess.run(["curl", "-sS", "--max-time", "90", *argv], preexec_fn=enter, capture_output=True, text=True, timeout=150, check=False)
        return done.returncode, done.stdout + done.stderr

    def close(self):
        for server in self.servers:
            server.kill()
            server.wait()
            server.stdout.close()
        self.socket.close()
        self.process.wait(60)
        self.place.close()
