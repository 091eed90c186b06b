"""Ends that come at an inconvenient moment: of one session among others, of a command nobody was told of yet, of the launcher."""

import contextlib
import json
import os
import pathlib
import resource
import signal
import subprocess
import threading
import time

import pytest
from harness import Refused, below, eventually

WHY = [{"field": "/disable", "why": "a test of tiers without it"}]


@pytest.mark.parametrize("name", ["T0", "no mounts"])
def test_without_namespaces_a_session_ends_alone(weakened, name):
    control = weakened(name)
    assert control.hello["tier"] == "T0"
    ending, other = control.create(), control.create()
    control.destroy(ending)
    assert control.output(other, "echo", "alive") == "alive\n"


def test_sessions_that_end_take_no_domain_along_that_is_just_being_tried(weakened, fresh):
    """What they swept for orphans of their own was also the first process of a canary, of the same uid, of which nobody had told yet: on
    a busy machine one of some fifty canaries."""
    control, over, refused = weakened("T0"), threading.Event(), []

    def in_time(make):
        try:
            return make()
        except Refused as why:  # what is not built in its time was not ended by anybody
            if why.error["code"] != "timeout":
                raise

    def end_sessions():
        other = fresh.control()
        while not over.is_set():
            try:
                if one := in_time(other.create):
                    other.destroy(one)
            except Refused as why:
                refused.append(why.error)

    busy = [subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]) for _ in range(4)]
    ending = [threading.Thread(target=end_sessions) for _ in range(2)]
    for one in ending:
        one.start()
    try:
        for _ in range(15):
            control.call("policy_reload")
            for domain in ("file", "code", "shell", "jupyter"):
                if one := in_time(lambda name=domain: control.create(name)):
                    control.destroy(one)
    finally:
        over.set()
        for one in ending:
            one.join()
        for one in busy:
            one.kill()
            one.wait()
    assert refused == []


def test_an_observer_outlives_sessions_without_a_pid_namespace(weakened, fresh):
    (fresh.policies / "observed.json").write_text(
        json.dumps({"extends": "base", "audit": {"paths": "observe"}, "disable": ["pid_ns", "proc"], "weaken": WHY})
    )
    control = weakened("T3")
    first, second = control.create("observed"), control.create("observed")
    observer = eventually(lambda: below(fresh.pid, "caisson-observe"), what="the observer")
    control.destroy(first)
    assert control.output(second, "echo", "alive") == "alive\n"
    assert below(fresh.pid, "caisson-observe") == observer


def test_of_a_command_that_started_while_its_session_was_ended_all_is_told(launcher, control):
    for _ in range(10):
        session = control.create()
        asked = control.send("session_exec", session=session, argv=["true"], stdin=False)
        control.send("session_create", domain="shell", isolation="private")  # while it is made the command starts and ends
        ended = control.send("session_destroy", session=session)
        answers = control.until(ended)
        events = [r["event"] for r in launcher.records(session)]
        assert asked in answers, events
        assert ("exec_exit" in events) == ("exec_start" in events), events


def test_a_launcher_that_ends_makes_no_session(fresh):
    fresh.start("--agent", "/usr/bin/true")
    control = fresh.control()
    control.create()
    auditor = below(fresh.pid, "caisson-auditor")
    os.kill(auditor, signal.SIGSTOP)  # for whose last word a session's end is put off
    try:
        fresh.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(EOFError, OSError):  # it waits for two seconds: on a busy machine it may be over before it is asked
            eventually(lambda: "running" not in [s["state"] for s in control.call("session_list")[0]["sessions"]], what="it ends")
            with pytest.raises(Refused) as refused:
                control.create()
            assert refused.value.error["code"] == "unavailable"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(auditor, signal.SIGCONT)
    fresh.process.wait(60)


@pytest.mark.parametrize("name", ["T2", "T0"])
def test_hundreds_of_sessions_end_in_the_time_that_docker_stop_gives(weakened, fresh, name):
    control = weakened(name)
    sessions = [control.create() for _ in range(500)]
    for session in sessions:
        for fd in control.start(session, "sleep", "1000", stdin=False)[1]:
            os.close(fd)
    fresh.process.send_signal(signal.SIGTERM)
    fresh.process.wait(240)
    unended = [session for session in sessions if fresh.records(session)[-1]["event"] != "session_end"]
    assert not unended


def test_who_does_not_read_stderr_does_not_stop_the_launcher(fresh):
    os.mkfifo(fresh.log)
    reader = os.open(fresh.log, os.O_RDONLY | os.O_NONBLOCK)
    fresh.start("--agent", "/usr/bin/true")
    writer = os.open(fresh.log, os.O_WRONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    fresh.process.send_signal(signal.SIGHUP)  # it says what came of it
    time.sleep(0.5)
    control = fresh.control()
    assert control.output(control.create(), "echo", "alive") == "alive\n"
    os.close(writer)
    os.close(reader)


def test_without_a_free_descriptor_the_control_socket_waits(fresh):
    fresh.start("--agent", "/usr/bin/true")
    fresh.control().create()
    used = 1 + max(int(fd) for fd in os.listdir(f"/proc/{fresh.pid}/fd"))
    limits = resource.prlimit(fresh.pid, resource.RLIMIT_NOFILE)
    held = []
    try:
        resource.prlimit(fresh.pid, resource.RLIMIT_NOFILE, (used, limits[1]))
        for _ in range(16):
            with contextlib.suppress(OSError):
                held.append(fresh.control(hello=False))
        before, begin = spent(fresh.pid), time.monotonic()
        time.sleep(1)
        assert spent(fresh.pid) - before < 0.5 * (time.monotonic() - begin)
    finally:
        resource.prlimit(fresh.pid, resource.RLIMIT_NOFILE, limits)
    assert fresh.control().call("session_list")[0]["ok"]


def spent(pid):
    """Seconds of processor time."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
