"""Code in a kernel that attacks: what holds its session, what its client is told, and that neither its neighbours nor the agent mind."""
import secrets

import pytest
from cells import Cells, error_of, needs_kernel, text_of, tighter
from conftest import Api, eventually

pytestmark = needs_kernel


@pytest.fixture(scope="module")
def small(launch):
    """A launcher whose kernels have little: an attack that spends everything is over soon."""
    return launch(policies=tighter(processes=200, memory_bytes=512 << 20))


@pytest.fixture(scope="module")
def small_api(small, contract):
    return Api(small.url, small.key, contract)


@pytest.fixture
def neighbour(small_api):
    one = Cells(small_api, "neighbour-" + secrets.token_hex(6))
    one.run("x = 41")
    yield one
    small_api.http.delete(f"/v1/jupyter/sessions/{one.session}")


@pytest.fixture
def attacker(small_api, neighbour):
    one = Cells(small_api, "attacker-" + secrets.token_hex(6))
    one.run("import os, signal, sys, time")
    yield one
    small_api.http.delete(f"/v1/jupyter/sessions/{one.session}")
    assert neighbour.value("x + 1") == "42"  # whatever was done


def is_gone(cells):
    return cells.session not in cells.api.data("/v1/jupyter/sessions", method="GET")["sessions"]


def test_an_exit_in_the_middle_of_a_cell_is_an_answer(attacker):
    done = attacker.run("print('before', flush=True)\ntime.sleep(3)\nos._exit(3)")
    assert done["status"] == "error" and text_of(done) == "before\n"
    assert error_of(done)["ename"] == "DeadKernelError" and "exit code 3" in error_of(done)["evalue"]
    assert is_gone(attacker) and attacker.value("1") == "1"


@pytest.mark.parametrize("code, signal", [("os.kill(os.getpid(), 9)", "SIGKILL"), ("import ctypes; ctypes.string_at(0)", "SIGSEGV")])
def test_a_kernel_that_is_killed_is_an_answer(attacker, code, signal):
    done = attacker.run(code)
    assert done["status"] == "error" and signal in error_of(done)["evalue"] and is_gone(attacker)


def test_memory_without_end_ends_the_kernel_alone(attacker):
    done = attacker.run("hoard = []\nfor _ in range(2000): hoard.append(b'x' * (1 << 20))", timeout=60)
    assert done["status"] == "error" and error_of(done)["ename"] in ("DeadKernelError", "MemoryError")


def test_forks_without_end_stop_at_the_policys_limit(attacker):
    done = attacker.run("""
n = 0
try:
    for n in range(1000):
        if os.fork() == 0:
            signal.pause()
except OSError as why:
    print(n < 200, why.errno)
""", timeout=60)
    # The limit holds for the bridge as well: either the cell says so, or the kernel could not go on.
    assert text_of(done).startswith("True 11") or done["status"] in ("error", "timeout"), done
    assert attacker.api.http.delete(f"/v1/jupyter/sessions/{attacker.session}").status_code in (200, 404)


def test_a_flood_is_cut_and_timed_out_and_the_agent_stays_small(small, attacker):
    before = small.memory_peaks()["agent"]
    body = attacker.whole("print('first')\nwhile True: print('x' * 1000)", timeout=3)
    done = body["data"]
    assert done["status"] == "timeout", (body["hint"], done["outputs"][-1:])
    assert text_of(done).startswith("first\nxxx")
    assert len(text_of(done)) <= 8 << 20 and ("dropped" in body["hint"] or "interrupted" in body["hint"])
    assert small.memory_peaks()["agent"] - before < 128 << 20


def test_displays_without_end_are_cut(attacker):
    body = attacker.whole("from IPython.display import display\nfor i in range(4000): display(i)", timeout=60)
    assert body["data"]["status"] == "ok" and len(body["data"]["outputs"]) == 2000 and "dropped" in body["hint"]


def test_a_display_that_is_too_large_is_left_out_and_said(attacker):
    body = attacker.whole("from IPython.display import display, HTML\ndisplay(HTML('x' * (20 << 20)))\nprint('after')", timeout=60)
    assert body["data"]["status"] == "ok" and text_of(body["data"]) == "after\n" and "dropped" in body["hint"]


def test_the_agents_channel_cannot_be_opened_from_the_kernel(attacker):
    done = attacker.run("""
for what in ("fd/0", "fd/1", "mem"):
    try:
        open(f"/proc/{os.getppid()}/{what}", "wb")
        print("opened", what)
    except OSError as why:
        print(what, why.errno)
""")
    assert text_of(done) == "fd/0 13\nfd/1 13\nmem 13\n"


def test_forged_frames_on_the_kernels_own_stdout_are_text(attacker):
    done = attacker.run("""
import json, struct
head = json.dumps({"event": "output", "cell": 2, "bytes": 2}).encode()
os.write(1, struct.pack("<I", len(head)) + head + b"{}")
""")
    assert done["status"] == "ok" and '{"event": "output"' in text_of(done)
    assert attacker.value("6 * 7") == "42"


def test_messages_forged_on_the_kernels_sockets_do_not_end_the_bridge(attacker):
    done = attacker.run("""
for junk in ([b""], [b"<IDS|MSG>"], [b"x", b"<IDS|MSG>", b"sig", b"{", b"{", b"{", b"{"], [b"x"] * 20):
    get_ipython().kernel.iopub_thread.socket.send_multipart(junk)
session, parent = get_ipython().kernel.session, get_ipython().parent_header
for kind, content in (("stream", {}), ("stream", {"name": 5, "text": []}), ("status", {}), ("error", {}), ("display_data", {"data": 1}),
                      ("execute_result", {}), ("update_display_data", {"transient": 7})):
    session.send(get_ipython().kernel.iopub_socket, kind, content, parent=parent)
print("sent")
""")
    assert "sent" in text_of(done)
    assert attacker.value("6 * 7") == "42"


def test_a_kernel_that_kills_the_bridge_ends_its_own_session(attacker):
    done = attacker.run("os.kill(os.getppid(), signal.SIGKILL); time.sleep(30)")
    assert done["status"] == "error" and error_of(done)["ename"] == "DeadKernelError" and is_gone(attacker)


def test_a_kernel_that_stops_the_bridge_is_over_at_the_agents_deadline(attacker):
    done = attacker.run("print('said', flush=True)\ntime.sleep(3)\nos.kill(os.getppid(), signal.SIGSTOP); time.sleep(60)", timeout=9)
    assert done["status"] == "timeout" and text_of(done) == "said\n" and is_gone(attacker)


def test_nothing_outside_can_be_written_or_reached(attacker):
    done = attacker.run("""
import socket
def tried(what, attempt):
    try:
        attempt()
        print(what, "DONE")
    except OSError as why:
        print(what, "refused")
for path in ("/etc/x", "/usr/bin/x", "/x", "/var/log/caisson/x"):
    tried(path, lambda: open(path, "w"))
tried("net", lambda: socket.create_connection(("1.1.1.1", 53), 2))
tried("raw", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
tried("mount", lambda: os.chroot("/tmp"))
""")
    assert text_of(done).count("refused") == 7 and "DONE" not in text_of(done), done


def test_the_sockets_of_a_kernel_are_nowhere_to_be_found(attacker, neighbour):
    look = "import glob; glob.glob('/dev/shm/*') + glob.glob('/tmp/kernel-*')"
    assert (attacker.value(look), neighbour.value(look)) == ("[]", "[]")
    assert attacker.api.bash("ls -d /dev/shm/* /tmp/kernel-*")["stdout"] == ""


def test_what_is_left_running_goes_with_the_session(attacker):
    attacker.run("import subprocess; subprocess.Popen(['sh', '-c', 'while :; do date +%N > /tmp/alive; sleep 0.05; done'], start_new_session=True)")
    read = lambda: attacker.api.bash("cat /tmp/alive")["stdout"]
    eventually(read)
    attacker.api.http.delete(f"/v1/jupyter/sessions/{attacker.session}")
    eventually(lambda: attacker.api.bash("rm -f /tmp/alive; sleep 1; cat /tmp/alive")["stdout"] == "")


def test_sessions_of_another_workspace_do_not_exist(small_api, small, contract, neighbour):
    made = small_api.post("/v1/workspaces", {"name": "other"})
    if made.status_code == 403:
        pytest.skip(f"refused here: {made.json()['message']}")
    other = Api(small.url, small.key, contract)
    other.http.headers["X-Caisson-Workspace"] = "other"
    try:
        assert other.data("/v1/jupyter/sessions", method="GET")["sessions"] == {}
        assert other.http.delete(f"/v1/jupyter/sessions/{neighbour.session}").status_code == 404
        assert error_of(Cells(other, neighbour.session).run("x"))["ename"] == "NameError"
        assert Cells(other).value("import os; os.listdir(os.path.expanduser('~'))") != ""
    finally:
        small_api.http.delete("/v1/workspaces/other")
