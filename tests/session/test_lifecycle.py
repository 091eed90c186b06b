"""Sessions and commands from their start to their end, at the launcher's control socket."""

import fcntl
import os
import select
import struct
import termios

import pytest
from harness import Refused, descendants, edit, eventually, inside, marked, processes, workers

MARK = f"{os.getpid()}.0"  # an argument of sleep that only this run uses


def read_until(fd, wanted, text=b""):
    while wanted not in text:
        more = os.read(fd, 4096)
        assert more, f"it ended with {text!r}"
        text += more
    return text


def test_hello_says_what_there_is(control):
    hello = control.hello
    assert (
        hello["protocol"] == 1
        and {"bash", "shell", "run"} <= set(hello["domains"])
        and hello["home"] == hello["workspace"] == "/home/gem"
    )


@pytest.mark.parametrize("code", [0, 1, 7, 127, 255])
def test_the_exit_code_comes_back(control, session, code):
    ended, _, _ = control.run(session, "sh", "-c", f"exit {code}")
    assert (ended["exit_code"], ended["reason"], "signal" in ended) == (code, "exit", False)


def test_the_signal_that_ended_a_command_comes_back(control, session):
    ended, _, _ = control.run(session, "sh", "-c", "kill -SEGV $$")
    assert (ended["signal"], ended["reason"], "exit_code" in ended) == ("SIGSEGV", "signal", False)


def test_resource_usage_comes_back(control, session):
    ended, _, _ = control.run(session, "/usr/bin/python3", "-c", "sum(range(2000000))")
    assert ended["rusage"]["user_us"] > 1000 and ended["rusage"]["max_rss_bytes"] > 1 << 20


def test_standard_output_and_error_are_apart(control, session):
    assert control.run(session, "sh", "-c", "echo out; echo err >&2")[1:] == ("out\n", "err\n")


def test_standard_input_arrives_whole_and_ends(control, session):
    assert control.output(session, "cat", stdin=b"line\n" * 10000) == "line\n" * 10000


def test_without_standard_input_it_is_dev_null(control, session):
    assert control.output(session, "readlink", "/proc/self/fd/0").strip() == "/dev/null"


def test_many_commands_run_one_after_the_other(control, session):
    assert [control.output(session, "echo", str(i)) for i in range(100)] == [f"{i}\n" for i in range(100)]


def test_commands_run_at_once_and_keep_their_streams(control, session):
    started = [control.start(session, "cat") for _ in range(20)]
    for i, (_, fds) in enumerate(started):
        os.write(fds[0], f"to {i}".encode())
        os.close(fds[0])
    for i, (name, fds) in enumerate(started):
        assert read_until(fds[1], f"to {i}".encode()) == f"to {i}".encode()
        control.exit(session, name)


def test_more_commands_at_once_than_the_policy_says_are_refused(control):
    session = control.create(narrow={"limits": {"execs": 2}})
    control.start(session, "sleep", "60"), control.start(session, "sleep", "60")
    with pytest.raises(Refused) as refused:
        control.start(session, "true")
    assert refused.value.error["code"] == "limit"


def test_a_command_leads_a_session_and_group_of_its_own(control, session):
    assert inside(control, session, "out = os.getpid() == os.getpgrp() == os.getsid(0)") is True


def test_a_file_of_one_command_is_there_for_the_next(control, session):
    control.output(session, "sh", "-c", "echo kept > ~/kept")
    assert control.output(session, "cat", "kept") == "kept\n"


# Terminals.


def terminal(control, session, *argv, cols=80, rows=24, **arguments):
    name, (master,) = control.start(session, *argv, pty={"cols": cols, "rows": rows}, **arguments)
    return name, master


def test_a_terminal_has_the_size_that_was_asked_for(control, session):
    _, master = terminal(control, session, "stty", "size", cols=132, rows=43)
    assert read_until(master, b"\n").strip() == b"43 132"


def test_all_three_streams_are_the_controlling_terminal(control, session):
    code = "import os; t = os.open('/dev/tty', os.O_RDWR); print(all(map(os.isatty, (0, 1, 2))), os.ttyname(0), os.tcgetpgrp(t) == os.getpid(), '.')"
    _, master = terminal(control, session, "/usr/bin/python3", "-c", code)
    assert read_until(master, b".").startswith(b"True /dev/pts/0 True")


def test_a_terminal_begins_in_line_mode_with_echo(control, session):
    _, master = terminal(control, session, "stty", "-a")
    text = read_until(master, b"echoke")
    assert {b"icanon", b"echo", b"isig", b"iexten"} <= set(text.split())


def test_a_new_size_reaches_the_program(control, session):
    code = (
        "import signal, os; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH]); print('ready', flush=True)\n"
        "signal.sigwait([signal.SIGWINCH]); print(os.get_terminal_size().columns, '.')"
    )
    _, master = terminal(control, session, "/usr/bin/python3", "-c", code)
    read_until(master, b"ready")
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 150, 0, 0))
    assert b"150 ." in read_until(master, b".")


def test_control_c_interrupts_the_foreground(control, session):
    name, master = terminal(control, session, "sh", "-c", "echo ready; exec sleep 60")
    read_until(master, b"ready")
    os.write(master, b"\x03")
    assert control.exit(session, name)["signal"] == "SIGINT"


def test_closing_the_terminal_hangs_up(control, session):
    name, master = terminal(control, session, "sh", "-c", "echo ready; exec sleep 60")
    read_until(master, b"ready")
    os.close(master)
    assert control.exit(session, name)["signal"] == "SIGHUP"


def test_a_signal_to_a_terminals_command_reaches_its_background_jobs(control, session):
    name, master = terminal(control, session, "bash", "-c", f"set -m; sleep {MARK}1 & echo ready; wait")
    read_until(master, b"ready")
    control.call("exec_signal", session=session, exec=name, signal="SIGKILL")
    assert control.exit(session, name)["signal"] == "SIGKILL"
    eventually(lambda: not marked(f"{MARK}1"))


# Signals, timeouts, errors.


def test_a_signal_reaches_the_whole_group(control, session):
    name, fds = control.start(session, "sh", "-c", f"sleep {MARK}2 & echo ready; wait")
    read_until(fds[1], b"ready")
    control.call("exec_signal", session=session, exec=name, signal="SIGTERM")
    assert control.exit(session, name)["signal"] == "SIGTERM"
    eventually(lambda: not marked(f"{MARK}2"))


@pytest.mark.parametrize(
    "wrong", [{"signal": "SIGNONE"}, {"signal": "9"}, {"exec": "e-99"}, {"signal": 9}, {"session": "s-0000000000000000"}]
)
def test_a_wrong_signal_is_refused(control, session, wrong):
    name, _ = control.start(session, "sleep", "60")
    with pytest.raises(Refused):
        control.call("exec_signal", **{"session": session, "exec": name, "signal": "SIGTERM", **wrong})


def test_a_hard_timeout_kills_the_group_and_says_so(control, session):
    name, _ = control.start(session, "sh", "-c", f"trap '' TERM; sleep {MARK}3 & wait", hard_timeout_ms=200)
    ended = control.exit(session, name)
    assert (ended["reason"], ended["signal"]) == ("hard_timeout", "SIGKILL")
    eventually(lambda: not marked(f"{MARK}3"))


def test_a_command_that_ends_before_its_hard_timeout_ends_as_itself(control, session):
    assert control.run(session, "sh", "-c", "exit 3", hard_timeout_ms=60000)[0]["exit_code"] == 3


@pytest.mark.parametrize(
    "argv, cwd, step, errno",
    [
        (["/no/such/program"], None, "exec", "ENOENT"),
        (["no-such-program"], None, "exec", "ENOENT"),
        (["/etc/passwd"], None, "exec", "EACCES"),
        (["/usr"], None, "exec", "EACCES"),
        (["true"], "/no/such", "chdir", "ENOENT"),
        (["true"], "/etc/passwd", "chdir", "ENOTDIR"),
        (["true"], "/root", "chdir", "ENOENT"),
    ],
)
def test_what_cannot_start_names_step_and_errno(control, session, argv, cwd, step, errno):
    with pytest.raises(Refused) as refused:
        control.run(session, *argv, **({"cwd": cwd} if cwd else {}))
    assert (refused.value.error["step"], refused.value.error["errno"]) == (step, errno)
    assert control.output(session, "echo", "on") == "on\n"


# The end of sessions.


def test_a_daemon_dies_with_its_session_before_destroy_returns(control):
    session = control.create()
    control.output(session, "sh", "-c", f"(setsid sh -c 'setsid sleep {MARK}4 & exit' &) >/dev/null 2>&1 </dev/null")
    eventually(lambda: marked(f"{MARK}4", "sleep"), what="the daemon runs")
    control.destroy(session)
    assert not marked(f"{MARK}4")


def test_running_commands_are_reported_when_their_session_is_destroyed(control):
    session = control.create()
    name, _ = control.start(session, "sleep", "60")
    control.destroy(session)
    ended = control.exit(session, name)
    assert (ended["reason"], ended["signal"]) == ("session_end", "SIGKILL")
    assert control.event("session_end", session=session)["reason"] == "destroyed"


def test_two_thousand_processes_die_within_the_destroy(fresh):
    edit(
        fresh.policies / "bash.json",
        limits={"processes": 4096, "memory_bytes": 1 << 40},
        weaken=[
            {"field": "/limits/processes", "why": "a test of many"},
            {"field": "/limits/memory_bytes", "why": "a test of many"},
        ],
    )
    control = fresh.start().control()
    session = control.create()
    code = "import os, signal\nfor _ in range(2000):\n if os.fork() == 0: os.setsid(); signal.pause()\nprint('ready', flush=True); signal.pause()"
    _, fds = control.start(session, "/usr/bin/python3", "-S", "-c", code)
    read_until(fds[1], b"ready")
    before = len(descendants(fresh.pid))
    control.destroy(session)
    assert before > 2000 and len(descendants(fresh.pid)) < 50


def test_orphans_are_reaped(control, session):
    control.output(session, "sh", "-c", "for i in $(seq 50); do (true &) ; done")
    code = "out = [p for p in os.listdir('/proc') if p.isdigit() and open('/proc/%s/stat' % p).read().rsplit(')', 1)[1].split()[0] == 'Z']"
    eventually(lambda: inside(control, session, code) == [])


def test_a_destroyed_session_is_gone_for_every_operation(control):
    session = control.create()
    control.destroy(session)
    for op, more in (("session_stat", {}), ("session_report", {}), ("session_destroy", {}), ("session_exec", {"argv": ["true"]})):
        with pytest.raises(Refused) as refused:
            control.call(op, session=session, **more)
        assert refused.value.error["code"] == "not_found"


def test_sessions_end_with_their_client(launcher, control):
    client = launcher.control()
    session = client.create()
    client.start(session, "sleep", f"{MARK}5")
    eventually(lambda: marked(f"{MARK}5", "sleep"))
    client.close()
    eventually(lambda: session not in [s["session"] for s in control.call("session_list")[0]["sessions"]])
    assert not marked(f"{MARK}5") and launcher.records(session)[-1]["reason"] == "client_gone"


def test_a_client_that_is_gone_while_its_session_is_built_leaves_nothing(fresh):
    watcher = fresh.start("--agent", "/usr/bin/true", CAISSON_READY_SESSIONS="0").control()
    for i in range(60):
        client = fresh.control()
        client.send("session_create", domain="bash", **({"narrow": {"home": "private"}} if i % 2 else {}))
        select.select([client.socket], [], [], i % 10 * 0.0005)
        client.close()
    eventually(lambda: not workers(fresh.pid) and not watcher.call("session_list")[0]["sessions"])


def test_a_session_ends_when_its_first_process_does(control):
    session = control.create()
    control.start(session, "sleep", f"{MARK}6")
    sleeper = eventually(lambda: marked(f"{MARK}6", "sleep"))[0]
    os.kill(processes()[sleeper][0], 9)
    assert control.event("session_end", session=session)["reason"] == "init_died"
    assert not marked(f"{MARK}6")


def test_a_session_ends_when_its_time_is_over(control):
    session = control.create(narrow={"limits": {"session_seconds": 1}})
    assert control.event("session_end", session=session)["reason"] == "session_seconds"


def test_stat_counts(control):
    session = control.create(label="mine")
    control.output(session, "true")
    control.start(session, "sleep", "60")
    eventually(lambda: control.call("session_stat", session=session)[0]["processes"] == 2)
    stat = control.call("session_stat", session=session)[0]
    assert [stat[k] for k in ("session", "domain", "label", "state", "execs", "total_execs", "tier")] == [
        session,
        "bash",
        "mine",
        "running",
        1,
        2,
        "T3",
    ]
    assert stat["processes"] == 2 and stat["memory_bytes"] > 10_000


def test_an_operator_sees_the_sessions_of_every_client(launcher, control, session):
    other = launcher.control()
    assert session in [s["session"] for s in other.call("session_list")[0]["sessions"]]
    assert other.call("session_stat", session=session)[0]["session"] == session
    other.close()


def test_more_sessions_than_allowed_are_refused(fresh):
    # Without an agent, which has sessions of its own.
    control = fresh.start("--agent", "/usr/bin/true", CAISSON_MAX_SESSIONS="3", CAISSON_READY_SESSIONS="0").control()
    sessions = [control.create() for _ in range(3)]
    with pytest.raises(Refused) as refused:
        control.create()
    control.destroy(sessions[0])
    assert refused.value.error["code"] == "limit" and eventually(lambda: created(control))


def created(control):
    try:
        return control.create()
    except Refused:
        return None


def test_sigterm_ends_every_session_and_the_launcher(fresh):
    control = fresh.start().control()
    control.start(control.create(), "sh", "-c", f"trap '' TERM; sleep {MARK}7")
    eventually(lambda: marked(f"{MARK}7", "sleep"))
    fresh.process.terminate()
    assert fresh.process.wait(60) == 0 and not marked(f"{MARK}7")


def test_flaw_02_a_uid_of_t0_is_not_the_next_sessions(weakened):
    """What the one before has left, a process that was not met or a file, would be its own."""
    control = weakened("T0")
    seen = set()
    for _ in range(12):
        session = control.create()
        uid = int(control.output(session, "id", "-u"))
        assert uid not in seen and 21000 <= uid < 30000
        seen.add(uid)
        control.destroy(session)
