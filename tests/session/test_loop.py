"""PID 1 serves others while it makes a domain ready: it waits for no program and no child of its own. What is held here is held by a
program of ours that does not go on before it is told."""

import pathlib
import subprocess
import threading

import pytest
from harness import NUMBERS, Refused, c_compiler, edit, ended, eventually, processes

HOLD = """
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
  if (%(held)s) {
    close(open("%(folder)s/asked", O_WRONLY | O_CREAT | O_APPEND, 0600));
    while (access("%(folder)s/go", F_OK) != 0) usleep(10000);
  }
  execv("%(folder)s/real", argv);
  return 1;
}
"""


@pytest.fixture
def hold(fresh, tmp_path):
    """hold(program, condition): from now on the launcher's program of that name waits, where the condition in C holds, until go()."""
    compiler, programs = c_compiler(), fresh.own_programs(tmp_path / "programs")

    def put(program, held="1"):
        (programs / program).rename(tmp_path / "real")
        source = HOLD % {"held": held, "folder": tmp_path}
        subprocess.run([compiler, "-w", "-x", "c", "-o", programs / program, "-"], input=source.encode(), check=True, timeout=60)

    def asked():
        eventually((tmp_path / "asked").exists, what="it is asked")

    yield put, asked, (tmp_path / "go").touch
    (tmp_path / "go").touch()


FILTER = 'argc > 1 && strcmp(argv[1], "--filter") == 0'


def served(control):
    """Another client's session, from its start to its end."""
    session = control.create()
    assert control.output(session, "echo", "on") == "on\n"
    control.destroy(session)


def test_while_a_filter_is_compiled_others_are_served(fresh, hold):
    put, asked, go = hold
    control = fresh.start("--agent", "/usr/bin/true").control()
    other = fresh.control()
    served(other)
    put("caisson-policies", FILTER)
    waits = control.send("session_create", domain="bash", narrow={"network": "none"})
    asked()
    served(other)
    go()
    answer, _ = control.wait(waits)
    assert answer["ok"] and control.output(answer["session"], "echo", "on") == "on\n"


def test_while_the_policies_are_read_others_are_served_by_the_old_ones(fresh, hold):
    put, asked, go = hold
    control = fresh.start("--agent", "/usr/bin/true").control()
    other = fresh.control()
    put("caisson-policies", "argc > 2")
    edit(fresh.policies / "bash.json", umask="077")
    waits = control.send("policy_reload")
    asked()
    served(other)
    refused = other.call("policy_reload")[0]
    assert not refused["accepted"] and "for somebody else" in refused["problems"][0]
    assert other.output(other.create(), "sh", "-c", "umask") == "0022\n"
    go()
    answer, _ = control.wait(waits)
    assert answer["ok"] and answer["accepted"]
    assert other.output(other.create(), "sh", "-c", "umask") == "0077\n"


def test_a_domain_that_many_ask_for_at_once_is_made_ready_once(fresh, hold):
    put, asked, go = hold
    edit(fresh.policies / "code.json", syscalls={"deny": ["getpriority"]})  # a filter of its own
    control = fresh.start("--agent", "/usr/bin/true").control()
    put("caisson-policies", FILTER)
    made = [control.send("session_create", domain="code") for _ in range(8)]
    asked()
    go()
    answers = control.until(*made)
    sessions = [answers[number]["session"] for number in made]
    assert len(set(sessions)) == len(made)
    assert control.call("policy")[0]["domains"]["code"]["ready"]


def test_a_session_of_another_workspace_waits_for_nobody(fresh, hold):
    put, asked, go = hold
    control = fresh.start("--agent", "/usr/bin/true").control()
    control.call("workspace_create", name="slow")
    control.call("workspace_create", name="quick")
    put("caisson-policies", FILTER)
    waits = control.send("session_create", domain="bash", workspace="slow", narrow={"network": "none"})
    asked()
    session = control.create(workspace="quick")
    assert control.output(session, "echo", "on") == "on\n"
    go()
    assert control.wait(waits)[0]["ok"]


def test_a_workspace_that_is_destroyed_meanwhile_gets_no_session_and_ends(fresh, hold):
    put, asked, go = hold
    control = fresh.start("--agent", "/usr/bin/true").control()
    control.call("workspace_create", name="short")
    put("caisson-policies", FILTER)
    waits = control.send("session_create", domain="bash", workspace="short", narrow={"network": "none"})
    asked()
    gone = control.send("workspace_destroy", workspace="short")
    served(fresh.control())
    go()
    answers = control.until(waits, gone)
    assert answers[waits]["error"]["code"] == "not_found" and answers[gone]["ok"]
    eventually(lambda: control.call("session_list")[0]["sessions"] == [], what="no session is left")
    assert [w["name"] for w in control.call("workspace_list")[0]["workspaces"]] == ["default"]
    with pytest.raises(Refused):
        control.create(workspace="short")


def test_a_client_that_is_gone_meanwhile_leaves_no_session(fresh, hold):
    put, asked, go = hold
    control = fresh.start("--agent", "/usr/bin/true").control()
    put("caisson-policies", FILTER)
    fresh.control().send("session_create", domain="bash", narrow={"network": "none"})
    asked()
    fresh.controls[-1].close()
    go()
    eventually(lambda: control.call("session_create", domain="bash", narrow={"network": "none"})[0]["ok"], what="its filter is there")
    eventually(lambda: len(control.call("session_list")[0]["sessions"]) == 1, what="its own session alone is left")


def test_a_launcher_that_ends_meanwhile_leaves_nothing(fresh, hold):
    put, asked, go = hold
    control = fresh.start("--agent", "/usr/bin/true").control()
    put("caisson-policies", FILTER)
    control.send("session_create", domain="bash", narrow={"network": "none"})
    asked()
    children = {p for p, (parent, _, _) in processes().items() if parent == fresh.pid}
    fresh.process.terminate()
    assert fresh.process.wait(60) == 0
    ended(children)


def test_pid_1_is_never_seen_waiting_but_for_events(fresh):
    """Sampled while it makes workspaces, each with a template, a canary and a private session: before, most of the time was poll()'s."""
    control = fresh.start("--agent", "/usr/bin/true").control()
    file, seen, over = pathlib.Path(f"/proc/{fresh.pid}/syscall"), {}, threading.Event()

    def look():
        while not over.is_set():
            number = file.read_text().split()[0]
            seen[number] = seen.get(number, 0) + 1

    looker = threading.Thread(target=look)
    looker.start()
    for n in range(12):
        control.call("workspace_create", name=f"seen-{n}")
        for isolation in ("shared", "private"):
            control.create(workspace=f"seen-{n}", isolation=isolation)
        control.call("workspace_destroy", workspace=f"seen-{n}")
    over.set()
    looker.join()
    waits = {call: seen.get(str(NUMBERS[call]), 0) for call in ("poll", "ppoll", "wait4", "waitid", "epoll_wait", "epoll_pwait") if call in NUMBERS}
    events = waits.pop("epoll_wait", 0) + waits.pop("epoll_pwait", 0)
    assert events > 0 and not any(waits.values()), (waits, events)
