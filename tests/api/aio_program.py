"""aio as its users have it: packed into one file, run as a process, in a pipe or on a terminal; and a server that says what a test wants."""
import contextlib
import email.parser
import email.policy
import http.server
import importlib.util
import json
import os
import pathlib
import pty
import select
import subprocess
import sys
import threading
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "agent/aio"
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("AIO_", "CAISSON_", "SANDBOX_"))}


def pack(target: pathlib.Path) -> pathlib.Path:
    made = importlib.util.spec_from_file_location("aio_pack", SOURCE / "pack.py")
    module = importlib.util.module_from_spec(made)
    made.loader.exec_module(module)
    module.pack(target)
    return target


class Aio:
    """aio(*words): a finished process. `input`: its stdin; nothing if absent. Other keywords are environment variables."""

    def __init__(self, program: pathlib.Path, url: str, key: str):
        self.program, self.environment = program, {**CLEAN, "AIO_API_URL": url, **({"AIO_API_KEY": key} if key else {})}

    def argv(self, *words):
        return [sys.executable, str(self.program), *map(str, words)]

    def __call__(self, *words, input=b"", cwd=None, **environment):
        given = {name: value for name, value in {**self.environment, **environment}.items() if value is not None}
        return subprocess.run(self.argv(*words), input=input, capture_output=True, timeout=60, env=given, cwd=cwd, check=False)

    def text(self, *words, **options) -> str:
        done = self(*words, **options)
        assert done.returncode == 0 and not done.stderr, done
        return done.stdout.decode()

    def json(self, *words, **options):
        return json.loads(self.text(*words, **options))

    def fails(self, code: int, *words, **options) -> str:
        """The one line that it says."""
        done = self(*words, **options)
        assert done.returncode == code and not done.stdout, done
        [line] = done.stderr.decode().splitlines()
        assert line.startswith("aio: "), line
        return line

    def start(self, *words, **options):
        return subprocess.Popen(self.argv(*words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment,
                                **options)

    def on_terminal(self, *words, **options) -> tuple:
        """(exit code, what the terminal was sent)"""
        with terminal(self.argv(*words), {**self.environment, "TERM": "xterm"}, **options) as one:
            shown = one.read_until(None)
            return one.process.wait(60), shown


class Terminal:
    def __init__(self, process, fd):
        self.process, self.fd, self.seen = process, fd, b""

    def send(self, keys: bytes):
        os.write(self.fd, keys)

    def read_until(self, what) -> str:
        """What has come when `what` (bytes; None: its end) does."""
        end = time.monotonic() + 50
        while what is None or what not in self.seen:
            assert time.monotonic() < end, self.seen
            if not select.select([self.fd], [], [], 1)[0]:
                continue
            try:
                piece = os.read(self.fd, 65536)
            except OSError:  # EIO: nobody has the terminal open any more
                piece = b""
            if not piece:
                assert what is None, self.seen
                break
            self.seen += piece
        shown, self.seen = self.seen, b""
        return shown.decode()


@contextlib.contextmanager
def terminal(argv, environment, **options):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True, **options)
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(ours)


class FakeServer:
    """answers[METHOD PATH] is (status, headers, body), a JSON value for an answer that says success, or a function of the request that
    returns either. `requests` has what came: method, path with its query, headers, body."""

    def __init__(self):
        self.answers, self.requests = {}, []
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                request = (self.command, self.path, self.headers, body)
                fake.requests.append(request)
                answer = fake.answers.get(f"{self.command} {self.path.partition('?')[0]}", (404, {}, b'{"success": false, "message": "Not Found"}'))
                answer = answer(request) if callable(answer) else answer
                if not isinstance(answer, tuple):
                    answer = (200, {"Content-Type": "application/json"}, json.dumps({"success": True, "message": "m", "data": answer}).encode())
                status, headers, content = answer
                self.send_response(status)
                for name, value in {"Content-Length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(content)

            do_GET = do_POST = do_DELETE = do_PUT = serve

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def form_of(request) -> dict:
    """The parts of a multipart body."""
    _, _, headers, body = request
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(b"Content-Type: " + headers["Content-Type"].encode() + b"\r\n\r\n" + body)
    return {part.get_param("name", header="content-disposition"): part.get_payload(decode=True) for part in message.iter_parts()}
