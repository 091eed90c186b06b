"""Hostile code through /v1/nodejs and /run_code (test_code.py has the same for /v1/code): its own run ends as it must, with what it had
written, its session is gone, and nobody beside it notices."""
import secrets
import urllib.parse

import pytest
from conftest import Api, eventually


class Nodejs:
    """POST /v1/nodejs/execute, as (succeeded, exit code, stdout, stderr)."""
    domain, label, language = "nodejs", "run", "javascript"

    def __call__(self, api, code: str) -> tuple[bool, int, str, str]:
        done = api.data("/v1/nodejs/execute", {"code": code, "timeout": 60})
        assert done["status"] in ("ok", "error") and (done["status"] == "ok") == (done["exit_code"] == 0), done
        return done["status"] == "ok", done["exit_code"], done["stdout"], done["stderr"]


class Judge:
    """POST /run_code, as the same."""
    domain, label = "code", "run_code"

    def __init__(self, language: str, name: str):
        self.language, self.name = language, name

    def __call__(self, api, code: str) -> tuple[bool, int, str, str]:
        got = api.post("/run_code", {"code": code, "language": self.name, "run_timeout": 60}).json()
        run = got["run_result"]
        assert got["status"] in ("Success", "Failed") and run["status"] == "Finished", got
        return got["status"] == "Success", run["return_code"], run["stdout"], run["stderr"]


@pytest.fixture(scope="module")
def api(launch, contract) -> Api:
    """A server of this module's own: its prepared sessions are counted, and others leave REPLs that take their place."""
    launcher = launch()
    return Api(launcher.url, launcher.key, contract)


@pytest.fixture(scope="module")
def neighbour(api) -> dict:
    """A REPL with a variable, which must not notice."""
    session = {"language": "python", "session_id": secrets.token_hex(4)}
    api.data("/v1/code/execute", {**session, "code": "kept = 41"})
    return session


@pytest.fixture(params=[Nodejs(), Judge("javascript", "nodejs"), Judge("python", "python")],
                ids=["nodejs", "run_code javascript", "run_code python"])
def attack(request, api, neighbour):
    """attack(code by language): runs it, and sees to it that its session is gone and its neighbour is not."""
    way = request.param
    way(api, "1")  # then some are prepared, of which the attack takes one
    if isinstance(way, Judge):  # and of those for the other kind of programs as well, so that they can be counted
        for name in ("python", "nodejs"):
            Judge("", name)(api, "1")

    def there() -> set[str]:
        return {s["session"] for s in api.sessions() if (s.get("domain"), s.get("label")) == (way.domain, way.label)}

    def run(code: dict[str, str]):
        eventually(lambda: len(there()) == (4 if isinstance(way, Judge) else 2))
        before = there()
        result = way(api, code[way.language])
        eventually(lambda: not before <= there())
        assert api.data("/v1/code/execute", {**neighbour, "code": "print(kept)"})["stdout"] == "41\n"
        assert api.bash("echo fine")["stdout"] == "fine\n" and way(api, "1")[0]
        return result
    return run


def test_children_without_end(attack):
    succeeded, code, out, _ = attack({
        "javascript": "console.log('part');\nconst {spawn} = require('child_process');\n"
                      "for (let i = 0; i < 600; ++i) spawn('sleep', ['60']).on('error', (why) => { throw why; });",
        "python": "import os, time\nprint('part', flush=True)\nfor _ in range(600):\n  if os.fork() == 0:\n    time.sleep(60); os._exit(0)\n"
                  "time.sleep(50)\nprint('all')"})
    assert not succeeded and code != 0 and out == "part\n"


def test_output_without_end(attack):
    succeeded, _, out, _ = attack({
        "javascript": "for (let i = 0; i < 400; ++i) process.stdout.write('x'.repeat(100000) + '\\n');\nconsole.log('last');",
        "python": "import sys\nfor i in range(400): sys.stdout.write('x' * 100000 + '\\n')\nprint('last')"})
    assert succeeded and out.startswith("xxx") and out.endswith("last\n")
    assert "bytes of output dropped" in out and len(out) < 10 << 20


def test_memory_without_end(attack):
    succeeded, code, out, _ = attack({
        "javascript": "console.log('part');\nconst x = [];\nwhile (true) x.push(Buffer.alloc(32 << 20, 1));",
        "python": "print('part', flush=True)\nx = []\nwhile True: x.append(bytearray(b'x' * (32 << 20)))"})
    assert not succeeded and code != 0 and out == "part\n"


@pytest.mark.parametrize("address", ["1.1.1.1", "127.0.0.1", "169.254.169.254", "::1"])
def test_connections_to_the_outside(attack, api, address):
    port = urllib.parse.urlsplit(api.url).port  # where somebody answers: the server itself
    succeeded, code, out, err = attack({
        "javascript": f"console.log('part');\nconst socket = require('net').connect({port}, '{address}');\n"
                      "socket.on('connect', () => { console.log('connected'); process.exit(); });",
        "python": f"import socket\nprint('part', flush=True)\nsocket.create_connection(('{address}', {port}), 5)\nprint('connected')"})
    assert not succeeded and code == 1 and out == "part\n"
    # Sockets of a network in which nobody else is; none at all in a tier without network namespaces.
    assert any(name in err for name in ("EACCES", "EPERM", "PermissionError", "ENETUNREACH", "ECONNREFUSED", "EADDRNOTAVAIL",
                                        "Network is unreachable", "ConnectionRefusedError", "Cannot assign requested address"))


@pytest.mark.parametrize("path", ["/usr/bin/x", "/etc/x", "/x", "/proc/sys/kernel/core_pattern", "/home/gem/../../root/x"])
def test_writing_outside_of_what_is_granted(attack, path):
    succeeded, code, out, err = attack({
        "javascript": f"console.log('part');\nrequire('fs').writeFileSync('{path}', 'x');\nconsole.log('written');",
        "python": f"print('part', flush=True)\nopen('{path}', 'w').write('x')\nprint('written')"})
    assert not succeeded and code == 1 and out == "part\n"
    assert any(name in err for name in ("EACCES", "EROFS", "EPERM", "ENOENT", "PermissionError", "Read-only file system", "FileNotFoundError"))
