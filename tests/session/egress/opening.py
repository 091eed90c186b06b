"""The opener beside door and dialer, and servers with TLS whose authority it trusts. The test is the launcher that hands secrets."""

import os
import socket
import ssl
import struct
import subprocess

import stage
import world

TO_OPENER, SECRET, AUTHORITY = 6, 11, 7  # egress_protocol.h
NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
TOKEN, HELD = "ghp_thetrueone0123456789", "ghp_placeholder000000001"


def authority(folder, name):
    """Key and certificate of an authority of the test's own."""
    key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
    openssl("req", "-x509", *NEW_KEY, "-days", "2", "-subj", f"/CN={name}", "-keyout", key, "-out", certificate)
    return key, certificate


def openssl(*argv):
    subprocess.run(["openssl", *map(str, argv)], check=True, capture_output=True, timeout=60)


def server_context(folder, by, host):
    """What speaks for that host, with a certificate of this authority."""
    key, request, certificate, extensions = (folder / f"{host}.{end}" for end in ("key", "csr", "crt", "ext"))
    openssl("req", *NEW_KEY, "-subj", f"/CN={host}", "-keyout", key, "-out", request)
    extensions.write_text(f"subjectAltName=DNS:{host}\n")
    openssl("x509", "-req", "-in", request, "-CA", by[1], "-CAkey", by[0], "-CAcreateserial", "-days", "2", "-extfile", extensions, "-out", certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def read_request(connection):
    """Head and body, which has a length or none."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return None
        data += more
    head, body = data.split(b"\r\n\r\n", 1)
    length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        body += connection.recv(65536)
    return head.decode(), body


class Opening:
    """`internet` with an opener. answer(head, body): what the server at api.test says, as bytes."""

    def __init__(self, internet, folder, bindings=None, answer=None, port=443, rules=None):
        self.internet, self.folder, self.port = internet, folder, port
        self.by = authority(folder, "servers")
        self.heads, self.bodies, self.records, self.connections, self.closes = [], [], [], 0, False
        self.answer = answer or (lambda head, body: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        self.context = server_context(folder, self.by, "api.test")
        internet.names.zone.update({"api.test": [world.PUBLIC], "other.test": [world.OTHER]})
        internet.serve(world.PUBLIC, port, self.serve)
        self.bindings = [world.binding("token", HELD, "api.test", port=port)] if bindings is None else bindings
        self.rules = rules or [world.rule("api.test", ports=[port]), world.rule("other.test", ports=[port])]
        internet.start_dialer()
        internet.start_door()
        self.opener = world.Service("opener", internet.out, {"/etc/ssl/certs/ca-certificates.crt": self.by[1]})
        internet.join()
        ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for service, order, end in ((internet.door, TO_OPENER, ends[0]), (self.opener, stage.TO_PEER, ends[1])):
            stage.send(service.socket, struct.pack("IIQ", order, 0, 0), [end.fileno()])
            end.close()
        internet.sockets = internet.listeners(internet.workspace, port)
        self.set_lists(sockets=internet.sockets)
        self.pem = folder / "workspace.pem"
        self.hash, _, pem = self.told(AUTHORITY).partition("\n")
        self.pem.write_text(pem)

    def set_lists(self, generation=1, bindings=None, sockets=()):
        bytes_ = world.list_of(*self.rules, bindings=self.bindings if bindings is None else bindings)
        for service, extra in ((self.opener, ()), (self.internet.dialer, ()), (self.internet.door, sockets)):
            file = stage.memory_file(bytes_)
            stage.send(service.socket, struct.pack("IIQ", stage.OPEN, generation, 1), [file, *(one.fileno() for one in extra)])
            os.close(file)

    def bind(self, name="token", secret=TOKEN, domain="bash"):
        file = stage.memory_file(secret.encode())
        stage.send(self.opener.socket, struct.pack("IIQ", SECRET, 1, 1) + f"{domain} {name}".encode(), [file])
        os.close(file)

    def serve(self, connection):
        with self.context.wrap_socket(connection, server_side=True) as tls:
            self.connections += 1
            while request := read_request(tls):
                self.heads.append(request[0])
                self.bodies.append(request[1])
                tls.sendall(self.answer(*request))
                if self.closes:
                    return

    def told(self, wanted):
        while True:
            said, _, text = self.opener.hear()
            if said == wanted:
                return text

    def record(self, **wanted):
        """The next record of the opener that has these members."""
        return world.next_record(self.opener, self.records, wanted)

    def curl(self, *argv, trusted=True):
        """curl in the workspace: (exit status, output)."""
        trust = ["--cacert", self.pem] if trusted else []
        done = subprocess.run(["curl", "-sS", "-i", "--max-time", "60", *trust, *argv], preexec_fn=self.internet.as_workspace, capture_output=True,
                              text=True, check=False, timeout=120)  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    def close(self):
        self.opener.close()
