"""Servers for what caisson-courier asks of others: http, or https with a CA of the test's own. The CA is trusted as an operator would
have it trusted: a file below /etc/caisson/ca, named by SSL_CERT_FILE."""
import http.server
import json
import pathlib
import secrets
import ssl
import threading
import time

from test_auth_tokens import Issuer

FOLDER = pathlib.Path("/etc/caisson/ca")


class Authority:
    """A CA, in `file` for the operator, and certificates of servers."""

    def __init__(self, folder: pathlib.Path):
        FOLDER.mkdir(parents=True, exist_ok=True)
        self.folder, self.file = folder, FOLDER / f"test-{secrets.token_hex(6)}.pem"
        Issuer.run(*self.new_key("ca"), "-subj", "/CN=test", "-x509", "-days", 2, "-out", self.file)
        self.file.chmod(0o644)

    def new_key(self, name):
        return ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-keyout", self.folder / f"{name}.key")

    def context(self, name: str) -> ssl.SSLContext:
        """Of a server whose certificate is for `name` (IP:127.0.0.1, DNS:localhost)."""
        file = self.folder / (name.replace(":", "-") + ".pem")
        Issuer.run(*self.new_key(file.stem), "-subj", "/CN=server", "-x509", "-days", 2, "-CA", self.file, "-CAkey", self.folder / "ca.key",
                   "-addext", f"subjectAltName={name}", "-out", file)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file, self.folder / f"{file.stem}.key")
        return context

    def remove(self):
        self.file.unlink(missing_ok=True)


class Asked:
    def __init__(self, handler, body):
        self.at, self.method, self.path, self.headers, self.body = time.monotonic(), handler.command, handler.path, handler.headers, body
        self.connection = handler.client_address[1]


class Server:
    """`answer(handler)` writes the answer; `asked` has the requests. With `wait_for` a test waits for more of them."""

    def __init__(self, answer=None, context=None, path="/keys"):
        self.answer, self.asked, self.changed = answer, [], threading.Condition()
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                with owner.changed:
                    owner.asked.append(Asked(self, body))
                    owner.changed.notify_all()
                try:
                    owner.answer(self)
                except OSError:  # the courier has gone
                    self.close_connection = True

            do_GET = do_POST = serve

            def log_message(self, *_):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):  # a client that refuses the certificate
                pass

        self.http = Quiet(("127.0.0.1", 0), Handler)
        if context:
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True, do_handshake_on_connect=False)
        self.http.daemon_threads = True
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.http.server_port}{path}"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def wait_for(self, count: int, seconds=60.0) -> list[Asked]:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.asked) >= count, seconds), f"{len(self.asked)} requests, not {count}"
            return list(self.asked)

    def close(self):
        self.http.shutdown()
        self.http.server_close()


def send(body, status=200, content_type="application/json", **headers):
    """An answer of this text or JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    def answer(handler):
        handler.send_response(status)
        for name, value in {"content-type": content_type, "content-length": str(len(data)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def courier_of(launcher) -> int | None:
    """The pid of the launcher's courier."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            status = (entry / "status").read_text()
        except OSError:
            continue
        if status.startswith("Name:\tcaisson-courier") and f"\nPPid:\t{launcher.pid}\n" in status:
            return int(entry.name)
    return None
