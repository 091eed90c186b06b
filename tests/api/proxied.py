"""Servers inside sessions for the tests of the preview proxy, and clients that ask them through it."""
import base64
import contextlib
import secrets

from conftest import eventually

# Ports of the workspace's own network; each server gets one that no other test uses.
_NEXT = iter(range(18000, 30000))


@contextlib.contextmanager
def app(api, source: str, ready="listening", program="/usr/bin/python3 -u", port=None):
    """Runs that program, which gets a port as its argument and prints `ready` once it listens, in a session; yields the port."""
    port = port or next(_NEXT)
    session = api.data("/v1/bash/sessions/create")["session_id"]
    name = f"/tmp/app-{port}-{secrets.token_hex(4)}.py"
    text = base64.b64encode(source.encode()).decode()
    api.data("/v1/bash/exec", {"session_id": session, "command": f"echo {text} | base64 -d > {name}"})
    api.data("/v1/bash/exec", {"session_id": session, "command": f"exec {program} {name} {port}", "async_mode": True})

    def started():
        got = api.data("/v1/bash/output", {"session_id": session})
        assert "Traceback" not in got["stderr"], got
        return ready in got["stdout"]

    try:
        eventually(started)
        yield port
    finally:
        api.post(f"/v1/bash/sessions/{session}/close")


# Each request's line and headers as JSON, with the size and the digest of its body.
ECHO = r'''
import hashlib, http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def pieces(self):
        if self.headers.get("transfer-encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            left = int(self.headers.get("content-length", 0))
            while left:
                piece = self.rfile.read(min(left, 65536))
                if not piece: break
                left -= len(piece)
                yield piece
    def answer(self):
        size, digest = 0, hashlib.sha256()
        for piece in self.pieces():
            size += len(piece)
            digest.update(piece)
        body = json.dumps({"method": self.command, "target": self.path, "headers": self.headers.items(), "size": size,
                           "sha256": digest.hexdigest()}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD": self.wfile.write(body)
    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = do_PROPFIND = answer
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("listening")
server.serve_forever()
'''

# Answers every connection with the bytes that the target of its request holds in base64, and then closes, or waits if it says so.
SAYS = r'''
import base64, socket, sys, threading, time
def serve(peer):
    with peer:
        data = b""
        while b"\r\n\r\n" not in data:
            piece = peer.recv(65536)
            if not piece: return
            data += piece
        kind, text = data.split(b" ")[1].split(b"?")[0].strip(b"/").split(b"/")
        said = base64.urlsafe_b64decode(text)
        for _ in range(int(kind[1:] or 1)):
            peer.sendall(said)
        if kind[:1] == b"w": time.sleep(60)
server = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64)
print("listening")
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
'''


def saying(port: int, data: bytes, kind="s") -> str:
    return f"/proxy/{port}/{kind}/{base64.urlsafe_b64encode(data).decode()}"
