"""The launcher's own programs once their code were somebody else's: what they gave up is gone."""
import errno
import platform
import subprocess

import pytest

from harness import LAUNCHER, below, blocked, copy_policies, eventually

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the injector is written for x86-64")


@pytest.fixture
def inject(compiled, here):
    def run(pid, *calls):
        done = subprocess.run([compiled("injector"), str(pid), *calls], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        results = [int(line) for line in done.stdout.split()]
        assert len(results) == len(calls)
        return dict(zip(calls, (errno.errorcode[-r] if r < 0 else "works" for r in results)))

    return run


def waiting(pid, call, descriptor):
    eventually(lambda: blocked(pid, call, descriptor), what="it waits")
    return pid


@pytest.fixture
def place(tmp_path):
    """Policies, and calls that reach out of them: each with what a program says that may only read them."""
    policies = copy_policies(tmp_path / "policies")
    secret, doomed = tmp_path / "secret", policies / "shell.json"
    secret.write_text("key")
    calls = {
        f"open:{policies}/bash.json": "works",
        f"open:{secret}": "EACCES",
        "open:/proc/self/maps": "EACCES",
        f"open:{policies}/../secret": "EACCES",
        f"list:{tmp_path}": "EACCES",
        f"create:{policies}/new.json": "EPERM",
        f"create:{tmp_path}/new": "EPERM",
        f"remove:{doomed}": "ENOSYS",
        "socket": "ENOSYS",
        "fork": "ENOSYS",
        "setuid": "ENOSYS",
        "exec:/usr/bin/true": "ENOSYS",
    }
    return policies, calls


def test_who_reads_policies_reaches_nothing_else(place, inject):
    policies, calls = place
    with subprocess.Popen([LAUNCHER.parent / "caisson-policies", policies, "", ""], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as reader:
        assert inject(waiting(reader.pid, "write", 1), *calls) == calls
        assert len(reader.stdout.read()) > 65536, "and it goes on"
    assert reader.returncode == 0


def test_who_compiles_filters_reaches_no_file_at_all(place, inject):
    policies, calls = place
    calls[f"open:{policies}/bash.json"] = "EACCES"
    with subprocess.Popen([LAUNCHER.parent / "caisson-policies", "--filter"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as compiler:
        assert inject(waiting(compiler.pid, "read", 0), *calls) == calls
        compiler.stdin.close()
        assert b"request is from another version" in compiler.stdout.read()
    assert compiler.returncode == 0


def test_the_same_calls_work_where_nothing_was_given_up(place, inject):
    """Else the above would prove nothing. In a PID namespace, with whose end the child that it forks ends."""
    _, calls = place
    with subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "cat"], stdin=subprocess.PIPE) as outer:
        cat = eventually(lambda: below(outer.pid, "cat"), what="cat")
        assert inject(waiting(cat, "read", 0), *calls) == dict.fromkeys(calls, "works")
