"""A launcher whose bash binds a secret, and the server that it is for."""

import base64

from harness import edit, eventually
from opening import TOKEN, authority, read_request, server_context
from outgoing import RULES
from world import PUBLIC

URL = "https://api.test/x"
BEARER = f'curl -sS --max-time 60 -H "Authorization: Bearer $API_TOKEN" {URL}'
BEGIN = "-----BEGIN CERTIFICATE-----"
EGRESS = [{"host": "api.test", "why": "what a test needs"}, {"host": "later.test", "why": "what a test needs"}]


def is_openers(certificate):
    return b"Caisson " in base64.b64decode(certificate.partition("-----END")[0] or "")


class Bound:
    """A launcher, not yet started, whose bash binds a secret, and the server that it is for, which says what it was told."""

    def __init__(self, launcher, internet, folder, kept):
        self.launcher, self.internet, self.folder, self.file, self.heads = launcher, internet, folder, kept / "token", []
        self.status = b"200 OK"
        self.by = authority(folder, "servers")
        internet.names.zone.update({"api.test": [PUBLIC], "later.test": [PUBLIC]})
        self.context = server_context(folder, self.by, "api.test")
        internet.serve(PUBLIC, 443, self.serve)
        files = internet.files
        internet.files = lambda: {**files(), "/etc/ssl/certs/ca-certificates.crt": self.by[1]}
        self.file.write_text(TOKEN + "\n")
        self.file.chmod(0o600)
        self.secret = {"name": "token", "host": "api.test", "file": str(self.file), "env": "API_TOKEN", "why": "what a test needs"}
        edit(launcher.policies / "bash.json", **{**RULES, "egress": EGRESS}, secrets=[self.secret])

    def serve(self, connection):
        with self.context.wrap_socket(connection, server_side=True) as tls:
            while request := read_request(tls):
                self.heads.append(request[0])
                body = f"you sent {request[0]}".encode()
                tls.sendall(b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (self.status, len(body), body))

    def start(self, *wrapper):
        self.launcher.start(wrapper=[*self.internet.wrapper(), *wrapper])
        trust = self.launcher.run / "trust" / "opened" / "ca-certificates.crt"
        eventually(lambda: trust.exists() and is_openers(trust.read_text().rpartition(BEGIN)[2]), 60, "the opener's authority is known")
        return self.launcher.control()


def placeholder(control, session):
    return control.output(session, "/bin/sh", "-c", 'printf %s "$API_TOKEN"')


def run(control, session, line):
    return control.output(session, "/bin/bash", "-c", f"{line} 2>&1; true")


def used(bound):
    return f"Authorization: Bearer {TOKEN}" in bound.heads[-1]
