"""What a session is, in each tier, as its client sees it: through the API only."""
PROBE_STATUS = "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status"


def test_serves_in_the_tier_that_it_was_given(tier, request):
    asked = request.node.callspec.params["tier"]
    # Only a kernel that mounts /proc under masks (7.2) makes more of T2's flags.
    assert tier.started["tier"] in ({"T2", "T3"} if asked == "T2" else {asked}), tier.exec("caisson", "probe").stdout


def test_bash_answers_from_the_home(tier):
    data = tier.bash("id -u; pwd; echo $((6 * 7))")
    assert data["exit_code"] == 0
    assert data["stdout"].split()[-2:] == ["/home/gem", "42"]


def test_session_has_no_capability_and_is_filtered(tier):
    out = tier.bash(PROBE_STATUS)["stdout"]
    fields = dict(line.split(":\t") for line in out.splitlines())
    assert {fields[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert fields["NoNewPrivs"] == "1" and fields["Seccomp"] == "2"


def test_secrets_of_the_container_cannot_be_read(tier):
    for path in ("/etc/shadow", "/var/log/caisson/audit", "/run/caisson", "/proc/1/environ"):
        data = tier.bash(f"ls -ld {path} >/dev/null 2>&1 && head -c 1 {path} 2>/dev/null | wc -c; true")
        assert data["stdout"].strip() in ("", "0"), f"{path}: {data}"
        data = tier.bash(f"cat {path}")
        assert data["exit_code"] != 0 and not data["stdout"], f"{path}: {data}"


def test_other_processes_cannot_be_signalled(tier):
    data = tier.bash("for p in /proc/[0-9]*; do p=${p#/proc/}; [ $p = $$ ] || kill -0 $p 2>/dev/null && [ $p != $$ ] && "
                     "tr '\\0' ' ' </proc/$p/cmdline; done; true")
    assert "caisson-launcher" not in data["stdout"] and "caisson-agent" not in data["stdout"]


def test_no_network(tier):
    data = tier.bash("exec 3<>/dev/tcp/127.0.0.1/8080 && echo reached")
    assert "reached" not in (data["stdout"] or "")


def test_what_is_attested_is_the_tier_and_its_walls(tier):
    """Signed by this launcher for our nonce, and no stronger than what the session shows of itself."""
    session = tier.bash("true")
    answer = tier.http.get("/v1/sessions/" + session["session_id"] + "/confinement?nonce=container-tier-1").json()["data"]
    statement = answer["statement"]
    assert statement["tier"] == tier.started["tier"] == statement["confinement"]["tier"]
    states = {m["name"]: m["state"] for m in statement["confinement"]["mechanisms"]}
    for always in ("capabilities", "no_new_privs", "seccomp", "landlock", "rlimits", "fds", "env"):
        assert states[always] == "enforced", always
    assert (states["mount_ns"] == "enforced") == (tier.started["tier"] in ("T2", "T3"))
    assert (states["pid_ns"] == "enforced") == (tier.started["tier"] == "T3")
    assert states["cgroup"] == "enforced" or "watchdog-limits" in {r["id"] for r in statement["confinement"]["residual"]}
    verified = tier.exec("sh", "-c", f"printf %s '{answer['token']}' | caisson attest --verify - --key {answer['key']['x']} "
                         "--nonce container-tier-1")
    assert "verified: signed by this key, for this nonce" in verified.stdout


def test_flaw_17_one_command_runs_beside_the_launcher(tier):
    """With what the engine left it, which is no CAP_SYS_PTRACE; refused with a reason where nobody may make mounts."""
    done = tier.exec("caisson", "run", "--", "sh", "-c", "id -u; exit 7", check=False)
    refused = tier.started["tier"] in ("T0", "T1") and done.returncode == 125 and "needs a mount namespace" in done.stderr
    assert refused or (done.returncode, done.stdout) == (7, "1000\n"), done


def test_audit_verifies(tier):
    """T1 has no root that owns a log directory: there it lies in memory, and the launcher says where at its start."""
    tier.bash("true")
    where = ["--audit", "/dev/shm/caisson-1000/audit"] if tier.started["tier"] == "T1" else []
    assert tier.exec("caisson", *where, "audit", "verify").returncode == 0


def test_plain_start_serves_and_names_the_flags_that_would_raise_it(start):
    """No security flag at all: the engine's own defaults, whatever they are."""
    plain = start("--plain")
    assert plain.bash("echo plain")["stdout"] == "plain\n"
    said = plain.exec("caisson", "probe").stdout
    assert plain.started["tier"] == "T3" or "seccomp=" in said or "unmask" in said, said


def test_the_probe_says_the_tier_that_is_served_also_where_it_is_not_root(start):
    """With the engine's own profile a user may make namespaces, and the launcher has reasons not to: it says what it does."""
    user = start("--tier", "T1")
    session = user.bash("true")["session_id"]
    served = user.http.get(f"/v1/sessions/{session}/confinement?nonce=container-probe").json()["data"]["statement"]["tier"]
    assert user.started["tier"] == served == "T1"
    assert '"tier_of_run"' in user.exec("caisson", "probe", "--json").stdout


def test_full_tier_hides_the_launcher_and_its_files(start):
    full = start("--tier", "T3")
    data = full.bash("ls /proc | grep -c '^[0-9]'; cat /proc/1/comm; ls /usr/lib/caisson /etc/shadow /var/log/caisson 2>&1")
    assert data["stdout"].splitlines()[1] == "caisson-init"
    assert data["stdout"].count("No such file or directory") == 2, data
    assert "'/usr/lib/caisson': Permission denied" in data["stdout"], data  # a place inside the grant of /usr: covered
