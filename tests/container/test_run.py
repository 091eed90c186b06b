"""scripts/run itself, and the life of a container that it started."""
import json
import os
import shutil

import httpx

from conftest import ROOT, RUN, remove, sh


def test_a_key_is_generated_and_needed(served):
    assert len(served.started["api_key"]) >= 20
    bare = httpx.post(served.started["url"] + "/v1/bash/exec", json={"command": "true"}, timeout=120)
    assert bare.status_code == 401, bare.text
    wrong = httpx.post(served.started["url"] + "/v1/bash/exec", json={"command": "true"}, timeout=120,
                       headers={"X-AIO-API-Key": served.started["api_key"][:-1] + "#"})
    assert wrong.status_code == 401, wrong.text


def test_a_given_key_is_used_and_not_printed(start):
    mine = start(SANDBOX_API_KEY="correct-horse-battery-staple")
    assert mine.bash("echo hi")["stdout"] == "hi\n"
    assert "correct-horse-battery-staple" not in mine.logs()


def test_auth_can_be_switched_off_loudly(start):
    mine = start(CAISSON_AUTH="none")
    assert mine.started["api_key"] is None
    assert mine.bash("echo hi")["stdout"] == "hi\n"
    assert "CAISSON_AUTH" in mine.logs()


def test_listens_on_this_machine_only(served, engine):
    assert sh(engine, "port", served.name).stdout.strip().startswith("8080/tcp -> 127.0.0.1:")


def test_a_second_run_keeps_what_runs(served, engine):
    before = sh(engine, "inspect", "-f", "{{.Id}}", served.name).stdout
    again = sh(RUN, "--engine", engine, "--json", "--name", served.name, "--port", served.port)
    assert "up to date" in again.stderr and "already runs" in again.stderr
    assert json.loads(again.stdout) == served.started
    assert sh(engine, "inspect", "-f", "{{.Id}}", served.name).stdout == before


def test_killed_agent_comes_back(served):
    def agents():
        return served.exec("pgrep", "-x", "caisson-agent", check=False).stdout.split()
    before = agents()
    assert len(before) == 1
    served.exec("kill", "-9", before[0])
    served.eventually(lambda: agents() not in ([], before))
    served.eventually(lambda: served.exec("curl", "-fsS", "http://127.0.0.1:8080/readyz", check=False).returncode == 0)
    assert served.bash("echo back")["stdout"] == "back\n"


def test_killed_launcher_leaves_nothing(start, engine):
    mine = start()
    mine.bash("sleep 1000 & true")
    pid = sh(engine, "inspect", "-f", "{{.State.Pid}}", mine.name).stdout.strip()
    os.kill(int(pid), 9)
    mine.eventually(lambda: sh(engine, "inspect", "-f", "{{.State.Status}}", mine.name).stdout.strip() == "exited")


def test_stop_removes_the_container(start, engine):
    mine = start()
    sh(RUN, "--engine", engine, "--stop", "--name", mine.name)
    assert sh(engine, "container", "inspect", mine.name, check=False).returncode != 0


def test_a_busy_port_is_said(served, engine):
    done = sh(RUN, "--engine", engine, "--name", f"caisson-test-{os.getpid()}-busy", "--port", served.port, check=False)
    assert done.returncode != 0 and "in use" in done.stderr, done.stderr


def test_unknown_options_are_refused():
    done = sh(RUN, "--privileged", check=False)
    assert done.returncode == 64 and "usage" in done.stderr


def test_home_in_a_volume_outlives_the_container(start, engine):
    volume = f"caisson-test-{os.getpid()}-home"
    try:
        first = start("--home", volume)
        first.bash("echo kept >note")
        sh(RUN, "--engine", engine, "--stop", "--name", first.name)
        assert start("--home", volume).bash("cat note")["stdout"] == "kept\n"
    finally:
        for name in sh(engine, "ps", "-aq", "--filter", f"volume={volume}").stdout.split():
            remove(engine, name)
        sh(engine, "volume", "rm", volume, check=False)


def test_policies_of_this_host_are_served_and_replaced_while_it_runs(start, engine, tmp_path):
    mine = shutil.copytree(ROOT / "policies", tmp_path / "mine")

    def change(umask):
        (mine / "bash.json").write_text(json.dumps({**json.loads((ROOT / "policies/bash.json").read_text()), "umask": umask}))
        (mine / "bash.json").chmod(0o664)  # as a group's own files are, who may be anybody
        if os.geteuid() == 0:
            os.chown(mine / "bash.json", 4711, 4711)

    def again(check=True):
        return sh(RUN, "--engine", engine, "--json", "--name", served.name, "--port", served.port, "--policies", mine, check=check).stderr

    change("077")
    (mine / "mcp.json").unlink()
    served = start("--policies", mine, SANDBOX_API_KEY="the-same-after-a-restart")
    assert served.bash("umask")["stdout"] == "0077\n"
    assert "mcp" not in served.http.get("/v1/policies").json()["data"]["domains"], "what was taken away is away"

    change("027")
    assert "policies reloaded" in again()
    assert served.bash("umask")["stdout"] == "0027\n"

    change("9")
    said = again(check=False)
    assert "bash.json:1 /umask: " in said and "nothing was started or changed" in said

    # What only a launcher can find: a grant of what is not there.
    shell = json.loads((ROOT / "policies/shell.json").read_text())
    shell.setdefault("grants", []).append({"path": "/srv/nothing", "description": "Nothing"})
    shell.setdefault("weaken", []).append({"field": "/grants/srv/nothing", "why": "for this test"})
    change("022")
    (mine / "shell.json").write_text(json.dumps(shell))
    said = again(check=False)
    assert "/srv/nothing" in said and "the old policies stay" in said
    assert served.bash("umask")["stdout"] == "0027\n"
    sh(engine, "restart", "-t", "5", served.name)
    served.eventually(lambda: served.exec("curl", "-fsS", "http://127.0.0.1:8080/readyz", check=False).returncode == 0)
    assert served.bash("umask")["stdout"] == "0027\n", "nor does the next start read what was refused"


def test_policies_for_a_container_with_the_images_own_need_a_restart(served, engine):
    done = sh(RUN, "--engine", engine, "--name", served.name, "--port", served.port, "--policies", ROOT / "policies", check=False)
    assert done.returncode != 0 and "--restart" in done.stderr


def test_a_directory_without_policies_is_refused_before_anything_is_built(tmp_path):
    done = sh(RUN, "--policies", tmp_path, check=False)
    assert done.returncode != 0 and "no base.json" in done.stderr


def test_the_key_of_a_native_launcher_is_roots_alone(tmp_path):
    """Without a container: a stand-in for the launcher, which looks at the log it was given while it is the only one there."""
    (tmp_path / "bin").mkdir()
    launcher = tmp_path / "bin" / "caisson-launcher"
    launcher.write_text("#!/bin/sh\nstat -L -c %a /proc/$$/fd/1\necho $SANDBOX_API_KEY/$FOREIGN/$HOME\numask\n")
    launcher.chmod(0o755)
    log = tmp_path / "launcher.log"
    log.write_text("of a launcher of before\n")
    log.chmod(0o644)
    script = f"""
      set -euo pipefail
      umask 022
      say() {{ :; }}
      . {ROOT}/scripts/lib/serve.sh
      . {ROOT}/scripts/lib/native.sh
      NATIVE_DIR={tmp_path} NATIVE_RUN={tmp_path} BIND=127.0.0.1 PORT=1
      native_install() {{ :; }}
      env() {{ printf '%s\\n' "$@" >{tmp_path}/arguments; command env "$@"; }}
      native_start
      wait $!
    """
    with log.open() as opened_before:
        sh("bash", "-c", script, env={"SANDBOX_API_KEY": "correct-horse", "FOREIGN": "yes"})
        assert opened_before.read() == "of a launcher of before\n"
    assert log.read_text().split() == ["600", "correct-horse///root", "0022"]
    assert "correct-horse" not in (tmp_path / "arguments").read_text(), "nor on a command line"
