"""The API key is known to the client and the agent's memory only: no session, file, command line, log or audit record has it."""
import pathlib
import re

import pytest
from conftest import Api, eventually


@pytest.fixture(scope="module")
def key(api) -> str:
    if len(api.key) < 16:
        pytest.skip("the key is too short to be searched for without finding it by chance")
    return api.key


def found(api, session, tree: str, key: str) -> list[str]:
    """The files that hold the key, of those that a command in a session can read. The key comes by stdin: a command line that
    held it would be found itself."""
    began = api.bash(f"cat > /tmp/pattern; {tree} 2>/dev/null | grep -vx /tmp/pattern; rm /tmp/pattern; echo searched",
                     session_id=session, async_mode=True)
    api.data("/v1/bash/write", {"session_id": session, "command_id": began["command_id"], "input": key + "\n"})
    api.data("/v1/bash/write", {"session_id": session, "command_id": began["command_id"], "input": "\x04"})

    def over():
        got = api.data("/v1/bash/output", {"session_id": session, "wait": True, "wait_timeout": 20, "offset": 1 << 40})
        return got["command"]["status"] == "completed"
    eventually(over, 170)
    lines = api.data("/v1/bash/output", {"session_id": session})["stdout"].splitlines()
    assert lines[-1] == "searched"
    return lines[:-1]


def holds(file: pathlib.Path, key: str) -> bool:
    try:
        return key.encode() in file.read_bytes()
    except OSError:  # a directory, or what is gone meanwhile
        return False


def test_the_search_finds_what_is_there(api, session, key):
    api.bash("echo prefix-0123456789abcdef-suffix > /tmp/planted", session_id=session)
    assert found(api, session, "grep -rlaFf /tmp/pattern /tmp", "0123456789abcdef") == ["/tmp/planted"]


def test_the_key_is_in_no_environment_of_bash(api, key):
    assert key not in api.bash("env; export -p; declare -p")["stdout"]


def test_the_key_is_in_no_environment_of_shell(api, shell, key):
    assert key not in api.shell("env; set", id=shell, truncate=False)["output"]


def test_no_variable_of_the_servers_reaches_a_session(api):
    names = re.findall(r"^(\w+)=", api.bash("env")["stdout"], re.M)
    assert [name for name in names if name.startswith(("CAISSON", "SANDBOX_API", "LD_"))] == []


@pytest.mark.parametrize("file", ["cmdline", "environ", "maps", "comm", "status"])
def test_the_key_is_in_no_proc_file_that_a_session_reads(api, session, key, file):
    assert found(api, session, f"grep -laFf /tmp/pattern /proc/[0-9]*/{file}", key) == []


def test_the_key_is_in_no_file_that_a_session_reads(api, session, key):
    assert found(api, session, "grep -rlaFf /tmp/pattern --devices=skip /home /tmp /run /var /dev/shm /etc", key) == []


def test_a_session_sees_no_process_of_the_server(api):
    if "caisson-launch" in api.bash("cat /proc/1/comm")["stdout"]:
        pytest.skip("this tier has no PID namespaces: names of processes are seen, their content is not (the other tests)")
    names = api.bash("cat /proc/[0-9]*/comm")["stdout"]
    assert "caisson-agent" not in names and "caisson-launch" not in names


def test_the_memory_and_environment_of_the_server_cannot_be_read(api, native, session, key):
    """One of the session's own processes may have that number in its PID namespace and may be read: it has no variable of the server's."""
    for pid, own in ((native.agent_pid, "CAISSON_PORT="), (native.pid, key)):
        assert own in pathlib.Path(f"/proc/{pid}/environ").read_text()
        done = api.bash(f"tr '\\0' '\\n' < /proc/{pid}/environ", session_id=session)
        assert done["exit_code"] == 1 or own not in done["stdout"], pid
        assert api.bash(f"cat /proc/{pid}/mem", session_id=session)["exit_code"] == 1, pid


def test_the_key_is_on_no_command_line_of_the_host(native, key):
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert key.encode() not in entry.read_bytes(), entry
        except OSError:  # it ended meanwhile
            continue


def test_the_key_is_in_no_audit_record_nor_log_even_when_it_was_used(api, native, key):
    api.http.get("/v1/sandbox", params={"api_key": key})
    api.http.get("/v1/nothing", params={"api_key": key})
    api.bash("true")
    files = [*(native.dir / "audit").rglob("*"), native.log]
    assert len(files) > 2
    assert [f for f in files if holds(f, key)] == []


def test_a_wrong_key_is_not_logged(api, native):
    wrong = "wrong-key-0f3b5c7d9e"
    api.http.get("/v1/sandbox", headers={"X-AIO-API-Key": wrong})
    api.http.get("/v1/sandbox", params={"api_key": wrong})
    assert wrong not in native.log.read_text()


def test_only_root_and_the_agent_itself_read_the_agents_environment(native):
    environ = pathlib.Path(f"/proc/{native.agent_pid}/environ").stat()
    assert environ.st_mode & 0o077 == 0


def test_the_key_is_not_in_the_agents_environment_once_it_serves(native, key):
    assert key.encode() not in pathlib.Path(f"/proc/{native.agent_pid}/environ").read_bytes()


def test_a_generated_key_is_announced_once_works_and_is_in_no_audit_record(launch, contract):
    launcher = launch(key=None)
    keys = set(re.findall(r"X-AIO-API-Key: ([\w-]{16,})", launcher.log.read_text()))
    assert len(keys) == 1
    key = keys.pop()
    assert Api(launcher.url, key, contract).bash("echo x")["stdout"] == "x\n"
    announcement = [line for line in launcher.log.read_text().splitlines() if key in line]
    assert len(announcement) == 2  # by itself, and in a line to paste
    assert [f for f in (launcher.dir / "audit").rglob("*") if holds(f, key)] == []


def test_flaw_07_without_auth_no_foreign_name_is_served(launch):
    """A page whose name was rebound to this address: its GETs carry no Origin, so the name is all that tells."""
    launcher = launch(key=None, CAISSON_AUTH="none", CAISSON_ALLOW_HOST="sandbox.example")
    port = launcher.url.rsplit(":", 1)[1]

    def status(host, line="GET /v1/sandbox HTTP/1.1", *headers):
        with Api(launcher.url, "").raw() as raw:
            raw.send("\r\n".join([line, *([] if host is None else [f"Host: {host}"]), *headers, "", ""]).encode())
            answer = raw.answer()
            return answer.status, answer.body.decode()

    for host in ("localhost", f"localhost:{port}", "127.0.0.1", f"[::1]:{port}", "192.0.2.7:80", "sandbox.example", "Sandbox.Example:80"):
        assert status(host)[0] == 200, host
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "localhost.evil.example", "[evil.example]", "[::1]x",
                 "localhost:x", "sandbox.example.evil"):
        code, body = status(host)
        assert code == 403 and "CAISSON_ALLOW_HOST" in body, (host, body)
    for line in ("GET / HTTP/1.1", "GET /v1/openapi.json HTTP/1.1", "GET /readyz HTTP/1.1", "OPTIONS /v1/sandbox HTTP/1.1",
                 "POST /v1/bash/exec HTTP/1.1", "GET /nothing HTTP/1.1"):
        assert status("evil.example", line)[0] == 403, line
    upgrade = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")
    assert status("evil.example", "GET /v1/shell/ws HTTP/1.1", *upgrade)[0] == 403
    assert status(None, "GET /v1/sandbox HTTP/1.0")[0] == 403
    assert status("evil.example", "GET /v1/sandbox HTTP/1.1", "X-Forwarded-Host: localhost")[0] == 403
    assert status("localhost", "GET http://evil.example/v1/sandbox HTTP/1.1")[0] == 400


def test_without_auth_a_browser_is_served_under_a_local_name_only(launch):
    launcher = launch(key=None, CAISSON_AUTH="none")
    api = Api(launcher.url, "")
    assert api.bash("echo x")["stdout"] == "x\n"
    assert "none" in launcher.log.read_text() or "no key" in launcher.log.read_text().lower()
    with api.raw() as raw:  # a page that rebound its name to this address
        raw.send(b"GET /v1/sandbox HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n\r\n")
        assert raw.answer().status == 403
