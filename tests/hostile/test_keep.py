"""What outlives the agent, in the hands of a hostile one: what it asks the launcher to hold, and what it leaves for the next."""

import contextlib
import json
import mmap
import os
import pathlib
import random
import shutil
import signal
import socket
import sys
import time

import pytest
import seat
from harness import eventually

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "api"))
from launcher_process import Launcher  # noqa: E402

HELLO = {"protocol": 1, "keep": 1 << 20}
F_ADD_SEALS, F_GET_SEALS = 1033, 1034


def with_fds(one, op, **members):
    """The answer, and its descriptors, which are the caller's."""
    number = one.say(op, **members)
    while True:
        data, fds, _, _ = socket.recv_fds(one.socket, seat.MAX_MESSAGE + 1, 8)
        message = json.loads(data)
        if message.get("id") == number:
            return message, fds
        one.unread.append(message)
        assert not fds


def opened(one, **members):
    answer, fds = with_fds(one, "hello", **{**HELLO, **members})
    assert answer["ok"], answer
    return fds[0]


def successor(launcher, one):
    """The next stand-in, once this one has been killed."""
    one.signal(signal.SIGKILL)
    eventually(lambda: not one.alive())
    program = os.readlink(f"/proc/{one.pid}/exe") if one.alive() else one.program
    return eventually(lambda: (pid := seat.seated(launcher, program)) not in (None, one.pid) and pid) and seat.Seat(launcher, program)


@pytest.fixture
def agent(fresh, hostile):
    hostile.program = os.readlink(f"/proc/{hostile.pid}/exe")
    return hostile


def test_the_file_cannot_be_resized_nor_sealed_further(agent):
    import fcntl

    fd = opened(agent)
    assert os.fstat(fd).st_size == 1 << 20
    for size in (0, 4096, 2 << 20):
        with pytest.raises(PermissionError):
            os.ftruncate(fd, size)
    with pytest.raises(PermissionError):
        fcntl.fcntl(fd, F_ADD_SEALS, 0x0008)
    with pytest.raises(PermissionError):
        os.pwrite(fd, b"x", 1 << 20)
    os.close(fd)


@pytest.mark.parametrize("size", [-1, 0, 1, 4095, (1 << 30) + 1, 1 << 62])
def test_a_file_of_another_size_is_refused(agent, size):
    assert agent.ask("hello", protocol=1, keep=size)["error"]["code"] == "invalid_argument"


def test_a_launcher_neither_maps_nor_grows_by_it(fresh, agent):
    before = seat.resident_kib(fresh.pid)
    fd = opened(agent, keep=64 << 20)
    with mmap.mmap(fd, 64 << 20) as memory:
        memory[:] = b"x" * (64 << 20)
    assert "caisson-keep" not in pathlib.Path(f"/proc/{fresh.pid}/maps").read_text()
    assert seat.resident_kib(fresh.pid) < before + 4096
    os.close(fd)


def test_the_next_agent_gets_the_same_file_and_the_sessions_that_were_to_be_kept(fresh, agent):
    fd = opened(agent)
    os.pwrite(fd, b"word for the next", 100)
    kept, other = agent.create(keep=True), agent.create()
    started = agent.ask("session_exec", session=kept, argv=["sh", "-c", "read a; echo $a; exit 5"], keep=True)["exec"]
    os.close(fd)
    following = successor(fresh, agent)
    again = opened(following, keep=4096)  # its size is the first one's
    assert os.pread(again, 17, 100) == b"word for the next" and os.fstat(again).st_size == 1 << 20
    answer = following.ask("session_adopt")
    assert (answer["session"], answer["execs"], answer["domain"], answer["workspace"]) == (kept, [started], "bash", "default")
    assert "session" not in following.ask("session_adopt")
    assert following.ask("session_stat", session=other)["error"]["code"] == "not_found"
    answer, fds = with_fds(following, "exec_adopt", session=kept, exec=started)
    ends = dict(zip(answer["ends"], fds))
    assert sorted(ends) == ["stderr", "stdin", "stdout"]
    os.write(ends["stdin"], b"hello\n")
    assert os.read(ends["stdout"], 100) == b"hello\n"
    end = eventually(lambda: next((m for m in following.unread if m.get("event") == "exec_exit"), None) or (
        following.ask("session_list") and None))
    assert end["exit_code"] == 5
    for one in (again, *fds):
        os.close(one)
    following.close()


def test_an_end_that_nobody_heard_is_told_again(fresh, agent):
    os.close(opened(agent))
    kept = agent.create(keep=True)
    started = agent.ask("session_exec", session=kept, argv=["sh", "-c", "sleep 0.1; exit 6"], keep=True)["exec"]
    following = successor(fresh, agent)
    os.close(opened(following))
    eventually(lambda: [r for r in fresh.records(kept) if r["event"] == "exec_exit"], what="it has ended")
    assert following.ask("session_adopt")["session"] == kept
    following.ask("exec_adopt", session=kept, exec=started)
    following.ask("session_list")
    assert [m["exit_code"] for m in following.unread if m.get("event") == "exec_exit"] == [6]
    following.close()


def test_what_is_let_go_is_closed(fresh, agent):
    os.close(opened(agent))
    session = agent.create(keep=True)
    before = seat.settled(fresh, 1)["descriptors"]
    started = [agent.ask("session_exec", session=session, argv=["cat"], keep=True)["exec"] for _ in range(5)]
    assert seat.settled(fresh, 1)["descriptors"] == before + 15
    for one in started:
        assert agent.ask("exec_release", session=session, exec=one, end="stdin")["ok"]
        assert agent.ask("exec_release", session=session, exec=one, end="no such end")["ok"]
    eventually(lambda: seat.settled(fresh, 1)["descriptors"] == before + 10)
    for one in started:
        assert agent.ask("exec_release", session=session, exec=one)["ok"]
    eventually(lambda: seat.settled(fresh, 1)["descriptors"] == before)
    assert agent.ask("exec_adopt", session=session, exec=started[0])["error"]["code"] == "not_found"


def test_there_is_a_most_of_commands_that_are_held(fresh, agent):
    os.close(opened(agent))
    session = agent.create(keep=True)
    before = seat.settled(fresh, 1)["descriptors"]
    for _ in range(2000):
        assert agent.ask("session_exec", session=session, argv=["true"], keep=True)["ok"], "without room it runs unkept"
    held = seat.settled(fresh, 1)["descriptors"] - before
    assert held < 4000
    unkept = agent.ask("session_exec", session=session, argv=["cat"], keep=True)["exec"]
    assert agent.ask("exec_adopt", session=session, exec=unkept)["error"]["code"] == "not_found"
    agent.ask("session_destroy", session=session)
    seat.serves(fresh)


def test_nobody_takes_up_what_is_another_ones(fresh, agent):
    os.close(opened(agent))
    control = fresh.control()
    foreign = control.create()
    mine = agent.create(keep=True)
    started = agent.ask("session_exec", session=mine, argv=["cat"], keep=True)["exec"]
    assert "session" not in agent.ask("session_adopt")
    for op in ("exec_adopt", "exec_release"):
        assert agent.ask(op, session=foreign, exec="e-1")["error"]["code"] == "not_found"
    from harness import Refused

    for op, members in (("session_adopt", {}), ("exec_adopt", {"session": mine, "exec": started}),
                        ("exec_release", {"session": mine, "exec": started})):
        with pytest.raises(Refused):
            control.call(op, **members)
    assert agent.ask("agent_restart")["error"]["code"] == "permission_denied"


def test_sessions_without_word_for_the_next_end_with_their_agent(fresh, agent):
    assert agent.ask("hello", protocol=1)["ok"]  # it has no file
    session = agent.create(keep=True)
    following = successor(fresh, agent)
    os.close(opened(following))
    assert "session" not in following.ask("session_adopt")
    assert following.ask("session_stat", session=session)["error"]["code"] == "not_found"
    following.close()


# --- the real agent finds what a hostile one has left ---


class Serving(Launcher):
    def keep_file(self):
        for fd in pathlib.Path(f"/proc/{self.pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                if "caisson-keep" in os.readlink(fd):
                    return fd
        raise AssertionError("the launcher holds no file")

    def records(self):
        whole, _, _ = (self.dir / "audit/launcher.ndjson").read_text().rpartition("\n")  # the last line may be half written
        return [json.loads(line) for line in whole.splitlines()]

    def wait_ready(self, seconds=120):
        super().wait_ready(seconds)

    def without_agent(self, change):
        """The agent is killed, and before there is another one, this is done."""
        before, binary = self.agent_pid, self.dir / "bin/caisson-agent"
        away = binary.with_suffix(".away")
        binary.rename(away)
        os.kill(before, signal.SIGKILL)
        eventually(lambda: not pathlib.Path(f"/proc/{before}").exists())
        time.sleep(0.1)
        change()
        away.rename(binary)
        self.wait_ready()

    def ask(self, path, body=None):
        import urllib.error
        import urllib.request

        request = urllib.request.Request(self.url + path, json.dumps(body or {}).encode(),
                                         {"X-AIO-API-Key": self.key, "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as refused:
            return refused.code, json.loads(refused.read())


@pytest.fixture
def serving(here):
    one = Serving()
    yield one
    one.close()


def test_any_bytes_in_the_file_end_no_agent(serving):
    generator = random.Random(7)
    for _ in range(4):
        for _ in range(3):
            _, made = serving.ask("/v1/bash/sessions/create")
            serving.ask("/v1/bash/exec", {"session_id": made["data"]["session_id"], "command": "seq 1000"})
            serving.ask("/v1/shell/exec", {"command": "echo shell"})

        def forge():
            with serving.keep_file().open("r+b", buffering=0) as file:
                size = os.fstat(file.fileno()).st_size
                with mmap.mmap(file.fileno(), size) as memory:
                    for _ in range(300):
                        at = generator.choice((generator.randrange(16, 80), 4096 + generator.randrange(128 * 40),
                                               generator.randrange(4096, 3 << 20), generator.randrange(size)))
                        memory[at] = generator.randrange(256)
                    # A body that says other things, of the same length.
                    for word, other in ((b'"number":1', b'"number":-'), (b'"state":"prompt"', b'"state":"feedin"'),
                                        (b'"current":-1', b'"current":77')):
                        found = memory.find(word)
                        if found > 0 and generator.random() < 0.5:
                            memory[found : found + len(word)] = other

        serving.without_agent(forge)
        status, got = serving.ask("/v1/bash/exec", {"command": "echo served"})
        assert (status, got["data"]["stdout"]) == (200, "served\n")
    assert not [r for r in serving.records() if r["event"] == "agent_exit" and r["status"] != signal.SIGKILL]


def test_a_forged_session_is_nobodys_and_of_no_other_workspace(serving):
    """The launcher says which sessions there are and whose; what the file says of them moves none."""
    status, made = serving.ask("/v1/bash/sessions/create", {"session_id": "the-only-one"})
    if status != 200:
        pytest.skip("no sessions here")

    def forge():
        with serving.keep_file().open("r+b", buffering=0) as file, mmap.mmap(file.fileno(), 0) as memory:
            at, found = -1, 0
            while (at := memory.find(b'"session":"s-', at + 1)) >= 0:  # in bodies that have been replaced, too
                memory[at + 13] = ord("0") if memory[at + 13] != ord("0") else ord("1")
                found += 1
            assert found

    serving.without_agent(forge)
    assert serving.ask("/v1/bash/output", {"session_id": "the-only-one"})[0] == 404
    ended = eventually(lambda: [r for r in serving.records() if r["event"] == "session_end" and r["reason"] == "destroyed"])
    assert ended


def test_agents_that_die_of_what_they_find_do_so_three_times(serving):
    _, made = serving.ask("/v1/bash/sessions/create")
    session = made["data"]["session_id"]
    held = serving.keep_file().stat().st_ino
    binary = serving.dir / "bin/caisson-agent"
    away = binary.with_suffix(".away")
    before = serving.agent_pid
    binary.rename(away)
    shutil.copy("/bin/false", binary)
    os.kill(before, signal.SIGKILL)
    dropped = eventually(lambda: [r for r in serving.records() if r["event"] == "agent_violation" and "dropped" in r["what"]])
    assert len(dropped) >= 1
    binary.unlink()
    away.rename(binary)
    serving.wait_ready()
    assert serving.ask("/v1/bash/output", {"session_id": session})[0] == 404
    assert serving.ask("/v1/bash/exec", {"command": "echo clean"})[1]["data"]["stdout"] == "clean\n"
    assert serving.keep_file().stat().st_ino != held


def test_agents_that_are_killed_lose_nothing_however_often(serving):
    _, made = serving.ask("/v1/bash/sessions/create")
    session = made["data"]["session_id"]
    for _ in range(6):
        before = serving.agent_pid
        os.kill(before, signal.SIGKILL)
        eventually(lambda: not pathlib.Path(f"/proc/{before}").exists())
        serving.wait_ready()
    assert serving.ask("/v1/bash/output", {"session_id": session})[0] == 200
