"""Bounds of the audit log: segments, room, age, signatures, restarts; and its export."""

import contextlib
import hashlib
import json
import os
import pathlib
import socket
import subprocess
import time

import pytest
from harness import BUILD, Refused, c_compiler, cli, edit, eventually

LOGS = BUILD / "launcher" / "caisson-logs"


def bounded(launcher, **audit):
    """max_bytes etc. are made smaller in base.json, where it needs no reason."""
    edit(launcher.policies / "base.json", audit=audit)
    return launcher.start("--agent", "/usr/bin/true", CAISSON_READY_SESSIONS="0")


def verified(launcher, *arguments):
    done = cli("--audit", launcher.audit, "--json", "audit", "verify", *arguments)
    return done.returncode, {os.path.basename(log["file"]): log for log in json.loads(done.stdout)["logs"]}


def write_much(control, session, megabytes):
    for _ in range(megabytes * 16):
        with pytest.raises(Refused):
            control.run(session, "/no/such", *["x" * 8000] * 7)


def test_a_long_log_is_bounded_and_what_went_is_on_record(fresh):
    control = bounded(fresh, max_bytes=1 << 20).control()
    session = control.create()
    write_much(control, session, 3)
    control.destroy(session)
    files = sorted(fresh.audit.glob(f"{session}*"))
    assert 2 < len(files) < 10 and sum(f.stat().st_size for f in files) <= 1 << 20
    status, logs = verified(fresh)
    assert status == 0 and logs[f"{session}.ndjson"]["removed"] > 0 and logs[f"{session}.ndjson"]["verdict"] == "intact"
    files[1].unlink()
    assert verified(fresh)[0] == 20


def backdated(log, days):
    """The same log as if it had been written some days ago, under the name that it would have had then; and its last hash."""
    then, prev, lines = time.time() - days * 86400, "0" * 64, []
    name = f"s-{int(then):08x}{log.stem[10:]}"
    for line in log.read_text().splitlines():
        record = json.loads(line)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(then))
        text = line.replace(record["time"], stamp).replace(f'"prev":"{record["prev"]}"', f'"prev":"{prev}"')
        text = text[: text.rindex(',"hash":')] + "}"
        prev = hashlib.sha256(text.encode()).hexdigest()
        lines.append(text[:-1] + f',"hash":"{prev}"}}\n')
    (log.parent / f"{name}.ndjson").write_text("".join(lines))
    log.unlink()
    return name, prev


def test_an_old_log_is_deleted_and_the_launcher_says_so(fresh):
    control = bounded(fresh, keep_days=2).control()
    made, new = control.create(), control.create()
    control.destroy(made)
    control.destroy(new)
    fresh.stop()
    old, head = backdated(fresh.audit / f"{made}.ndjson", 3)
    fresh.start("--agent", "/usr/bin/true")
    deleted = eventually(lambda: [r for r in fresh.records() if r["event"] == "log_deleted"])
    assert [(r["file"], r["why"], r["head"]) for r in deleted] == [(f"{old}.ndjson", "age", head)]
    # The record comes first.
    eventually(lambda: not (fresh.audit / f"{old}.ndjson").exists(), what="the old log is gone")
    assert (fresh.audit / f"{new}.ndjson").exists()
    (fresh.audit / f"{new}.ndjson").unlink()
    assert verified(fresh)[0] == 20


def programs(launcher):
    """Of the launcher's children, those that sweep."""
    children = pathlib.Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    found = []
    for pid in children:
        with contextlib.suppress(OSError):  # it ended meanwhile
            found += [pid] if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "caisson-logs" else []
    return found


def asked(directory):
    """caisson-logs as the launcher starts it, and the socket at which it asks."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(60)
    fd = os.open(directory, os.O_RDONLY)
    started = subprocess.Popen(["bash", "-c", f'exec "$0" "$@" 3<&{fd}', LOGS, "30", str(1 << 30), "boot"], pass_fds=[fd], stdin=its)
    its.close(), os.close(fd)
    return started, ours


@pytest.mark.parametrize(("answer", "status", "there"), [(b"y", 0, False), (b"n", 0, True), (None, 1, True)])
def test_nothing_goes_that_the_launcher_has_not_agreed_to(tmp_path, answer, status, there):
    then = time.time() - 40 * 86400
    log = tmp_path / f"s-{int(then):08x}00000001.ndjson"
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(then))
    log.write_text(f'{{"seq":1,"time":"{stamp}","mono_us":1,"event":"session_request","prev":"{"0" * 64}","hash":"{"1" * 64}"}}\n')
    (tmp_path / "clock").write_text(str(time.time_ns()))
    started, ours = asked(tmp_path)
    what, fields = (message := ours.recv(65536))[:1], json.loads(message[1:])
    assert what == b"d" and log.exists()
    assert (fields["file"], fields["count"], fields["head"], fields["why"]) == (log.name, 1, "1" * 64, "age")
    if answer:
        ours.send(answer)
    else:
        ours.close()
    assert started.wait(60) == status and log.exists() is there


STAND_IN = """
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(void) {
  char text[256], answer = '-';
  %s
  int fd = openat(3, "answer", O_WRONLY | O_CREAT, 0600);
  (void)!write(fd, &answer, 1);
  for (;;) pause();
}
"""
LIES = {
    "hangs": "",
    "dies": "abort();",
    "nonsense": 'send(0, "d{", 2, 0); if (recv(0, &answer, 1, 0) != 1) return 1;',
    "a log that runs": """for (const char* name = 0; !name;) {
      DIR* dir = opendir("/proc/self/fd/3");
      for (struct dirent* e; (e = readdir(dir));) if (!strncmp(e->d_name, "s-", 2)) name = strdup(e->d_name);
      if (name) snprintf(text, sizeof text, "d{\\"file\\":\\"%s\\"}", name); else usleep(1000);
      closedir(dir);
    }
    send(0, text, strlen(text), 0); recv(0, &answer, 1, 0);""",
}


@pytest.mark.parametrize("how", LIES)
def test_a_sweep_that_hangs_dies_or_lies_costs_nothing_but_a_later_one(fresh, how):
    compiler, folder = c_compiler(), fresh.own_programs(fresh.base / "programs")
    (fresh.base / "in.c").write_text(STAND_IN.replace("%s", LIES[how], 1))
    subprocess.run([compiler, "-w", "-o", folder / "caisson-logs", fresh.base / "in.c"], check=True)
    control = bounded(fresh).control()
    session = control.create()
    if how in ("dies", "nonsense"):
        eventually(lambda: "caisson-logs failed" in fresh.log.read_text(), what="its end is said")
    else:
        assert eventually(lambda: (fresh.audit / "answer").exists() and (fresh.audit / "answer").read_text()) in "-n"
        assert len(programs(fresh)) == 1
    control.run(session, "true")
    control.destroy(session)
    assert (fresh.audit / f"{session}.ndjson").exists()
    assert [r for r in fresh.records() if r["event"] == "log_deleted"] == [] and verified(fresh)[0] == 0


def test_flaw_06_times_attributes_and_modes_of_logs_delete_and_keep_nothing(fresh):
    """What a session with the launcher's uid can do to the logs of others, done here by root."""
    control = bounded(fresh, keep_days=2).control()
    young, made = control.create(), control.create()
    control.destroy(young)
    control.destroy(made)
    fresh.stop()
    old = fresh.audit / f"{backdated(fresh.audit / f'{made}.ndjson', 3)[0]}.ndjson"
    young = fresh.audit / f"{young}.ndjson"
    os.utime(young, (1, 1))
    os.utime(old)
    with contextlib.suppress(OSError):  # not every file system has them
        os.setxattr(young, "user.caisson.keep_days", b"0")
        os.setxattr(old, "user.caisson.keep_days", b"36500")
    young.chmod(0)
    fresh.start("--agent", "/usr/bin/true")
    deleted = eventually(lambda: [r["file"] for r in fresh.records() if r["event"] == "log_deleted"])
    eventually(lambda: not programs(fresh), what="the sweep ends")
    assert deleted == [old.name]
    assert young.exists() and not old.exists() and young.stat().st_mode & 0o777 == 0o600


def test_the_oldest_logs_go_when_there_is_no_room(fresh):
    edit(fresh.policies / "base.json", audit={"max_bytes": 1 << 20})
    fresh.start("--agent", "/usr/bin/true", "--audit-max-bytes", 1 << 20, CAISSON_READY_SESSIONS="0")
    control, made = fresh.control(), []
    for _ in range(6):
        made.append(control.create())
        write_much(control, made[-1], 1)
        control.destroy(made[-1])
    gone = eventually(lambda: [r["file"] for r in fresh.records() if r["event"] == "log_deleted" and r["why"] == "room"])
    assert gone[0] == f"{made[0]}.ndjson" and verified(fresh)[0] == 0


def test_flaw_16_a_noisy_workspace_pushes_no_others_logs_out(fresh):
    edit(fresh.policies / "base.json", audit={"max_bytes": 1 << 20})
    options = ("--agent", "/usr/bin/true", "--audit-max-bytes", 1 << 20)
    control = fresh.start(*options, CAISSON_READY_SESSIONS="0").control()
    if control.hello["tier"] != "T3":
        pytest.skip(f"this host gives tier {control.hello['tier']}: workspaces are refused there")
    control.call("workspace_create", name="quiet")
    quiet = control.create(workspace="quiet")
    control.destroy(quiet)
    fresh.stop()  # the next launcher has to find out whose it is
    control, made = fresh.start(*options, CAISSON_READY_SESSIONS="0").control(), []
    for _ in range(4):
        made.append(control.create())
        write_much(control, made[-1], 1)
        control.destroy(made[-1])
    gone = eventually(lambda: [r["file"] for r in fresh.records() if r["event"] == "log_deleted" and r["why"] == "room"])
    assert gone[0] == f"{made[0]}.ndjson" and (fresh.audit / f"{quiet}.ndjson").exists()
    assert f"{quiet}.ndjson" not in gone and verified(fresh)[0] == 0


def test_the_root_of_an_ended_session_is_signed(fresh, tmp_path):
    control = bounded(fresh).control()
    session = control.create()
    control.destroy(session)
    key = tmp_path / "key.json"
    key.write_text(json.dumps(control.call("attest")[0]["key"]))
    status, logs = verified(fresh, "--key", key)
    assert status == 0 and logs[f"{session}.ndjson"]["signature"] == "good"
    jwk = json.loads(key.read_text())
    key.write_text(json.dumps({**jwk, "x": jwk["x"][:5] + ("A" if jwk["x"][5] != "A" else "B") + jwk["x"][6:]}))
    status, logs = verified(fresh, "--key", key)
    assert status == 20 and "BAD" in logs[f"{session}.ndjson"]["signature"] or status != 0


def test_the_launchers_own_logs_are_one_chain_over_restarts(fresh):
    for _ in range(3):
        bounded(fresh)
        fresh.stop()
    earlier = sorted(fresh.audit.glob("launcher-*.ndjson"))
    assert len(earlier) == 2 and verified(fresh)[0] == 0
    earlier[1].unlink()
    assert verified(fresh)[0] == 20


def test_a_client_gets_a_descriptor_for_reading_and_never_of_the_launchers_log(launcher, control):
    session = control.create()
    reply, (fd,) = control.call("audit_open", session=session)
    assert reply["running"] is True and json.loads(os.read(fd, 65536).splitlines()[0])["event"] == "session_request"
    with pytest.raises(OSError):
        os.write(fd, b"x")
    os.close(fd)
    for name in ("launcher", "../audit/launcher", "s-0000000000000000", ""):
        with pytest.raises(Refused) as refused:
            control.call("audit_open", session=name)
        assert refused.value.error["code"] == "not_found"
    listed = control.call("audit_list", limit=500)[0]["sessions"]
    assert {"session": session, "running": True} in listed
    assert [s["session"] for s in listed] == sorted((s["session"] for s in listed), reverse=True)
    control.create()
    newest, before = control.call("audit_list", limit=2)[0]["sessions"]
    assert newest["session"] > before["session"]
    assert control.call("audit_list", limit=1, before=newest["session"])[0]["sessions"] == [before]
    oldest = control.call("audit_list", limit=500)[0]["sessions"][-1]["session"]
    assert control.call("audit_list", before=oldest)[0]["sessions"] == []
    for name in ("launcher", "s-0000000000000000", oldest.upper(), oldest + "0"):
        with pytest.raises(Refused) as refused:
            control.call("audit_list", before=name)
        assert refused.value.error["code"] == "invalid_argument"
    with pytest.raises(Refused) as refused:
        control.call("audit_open", session=session, segment=7)
    assert refused.value.error["code"] == "not_found"


def test_stats_and_export(launcher, control):
    session = control.create()
    control.run(session, "sh", "-c", "exit 3")
    control.destroy(session)
    stats = json.loads(cli("--audit", launcher.audit, "--json", "audit", "stats", session).stdout)
    assert stats["total"]["exit_codes"] == {"3": 1} and stats["logs"][session]["execs"] == 1
    lines = cli("--audit", launcher.audit, "audit", "export", "--format", "ocsf", "--session", session).stdout.splitlines()
    events = [json.loads(line) for line in lines]
    assert [e["metadata"]["sequence"] for e in events] == list(range(1, 7)) and events[4]["exit_code"] == 3
    assert {e["class_uid"] for e in events} == {1007, 6003}


def test_tail_follows_over_segments(fresh):
    control = bounded(fresh, max_bytes=1 << 20).control()
    session = control.create()
    write_much(control, session, 1)
    control.destroy(session)
    shown = cli("--audit", fresh.audit, "--json", "audit", "tail", "-n", "100000", session).stdout.splitlines()
    numbers = [json.loads(line)["seq"] for line in shown]
    assert numbers == sorted(numbers) and len(sorted(fresh.audit.glob(f"{session}*"))) > 2
    assert json.loads(shown[-1])["event"] == "session_end"
