"""What a program inside a session sees and is: credentials, descriptors, environment, files, processes, network."""

import json
import os
import socket
import subprocess

import pytest
from harness import API_KEY, LAUNCHER, ROOT, Refused, inside, open_files, outside, processes

# Where the agent's programs for sessions lie beside the launcher, every session has them, and nothing else of ours.
TOOLS = ["caisson"] if (LAUNCHER.parent / "tools").is_dir() else []
BASE = json.loads((ROOT / "policies" / "base.json").read_text())


def status(control, session):
    """/proc/self/status as a program sees it that changes nothing of itself before."""
    return dict(
        line.split(":\t", 1) for line in control.output(session, "cat", "/proc/self/status").splitlines() if ":\t" in line
    )


@pytest.mark.parametrize("field", ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"])
def test_capability_set_is_empty(control, session, field):
    assert int(status(control, session)[field], 16) == 0


def test_no_new_privileges_and_a_seccomp_filter_are_on(control, session):
    facts = status(control, session)
    assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2")


def test_securebits_are_locked(control, session):
    assert inside(control, session, "out = libc.prctl(27, 0, 0, 0, 0)") & 0b10101011 == 0b10101011


def test_ids_are_those_of_the_policy_and_no_group_is_left(control, session):
    facts = status(control, session)
    assert facts["Uid"].split() == facts["Gid"].split() == ["1000"] * 4 and facts["Groups"].strip() == ""


OPEN_FDS = """
import fcntl, resource
out = []
for fd in range(resource.getrlimit(resource.RLIMIT_NOFILE)[0]):
    if tried(fcntl.fcntl, fd, fcntl.F_GETFD) != "EBADF": out.append(fd)
"""


@pytest.mark.parametrize("with_stdin", [True, False])
def test_descriptors_are_exactly_0_to_2(control, session, with_stdin):
    assert inside(control, session, OPEN_FDS, stdin=b"" if with_stdin else None) == [0, 1, 2]


def test_a_session_does_not_see_the_descriptor_that_its_launcher_inherited(launcher, control, session):
    assert "/etc/passwd" in open_files(launcher.pid), "the decoy must be there, or this proves nothing"
    below = inside(control, session, "out = [os.readlink('/proc/self/fd/%d' % fd) for fd in (0, 1, 2)]")
    assert not [path for path in below if path.startswith("/etc")]


def test_the_working_directory_is_the_home_and_reachable(control, session):
    assert inside(control, session, "out = [os.getcwd(), os.readlink('/proc/self/cwd')]") == ["/home/gem"] * 2


def test_the_environment_is_what_the_policy_sets_and_nothing_else(control, session):
    pairs = control.output(session, "env", "-0").rstrip("\0").split("\0")
    assert dict(p.split("=", 1) for p in pairs) == BASE["env"]["set"]


def test_a_request_adds_and_unsets_variables(control, session):
    out = control.output(session, "env", "-0", env={"ADDED": "a\nb", "TERM": None, "LANG": "C"})
    assert set(out.rstrip("\0").split("\0")) == {
        f"{k}={v}" for k, v in {**BASE["env"]["set"], "ADDED": "a\nb", "LANG": "C"}.items() if k != "TERM"
    }


@pytest.mark.parametrize(
    "name",
    ["LD_PRELOAD", "LD_AUDIT", "GLIBC_TUNABLES", "GCONV_PATH", "BASH_ENV", "BASH_FUNC_ls%%", "CAISSON_X", "SANDBOX_API_KEY"],
)
def test_a_dangerous_variable_is_refused_by_name(control, session, name):
    with pytest.raises(Refused) as refused:
        control.run(session, "true", env={name: "x"})
    assert refused.value.error["code"] == "permission_denied" and name in refused.value.error["what"]


def test_signals_are_neither_blocked_nor_ignored_nor_caught(launcher, control, session):
    with open(f"/proc/{launcher.pid}/status") as f:
        own = dict(line.split(":\t", 1) for line in f)
    assert int(own["SigIgn"], 16) and int(own["SigBlk"], 16), "the launcher inherited both, or this proves nothing"
    facts = status(control, session)
    assert {name: int(facts[name], 16) for name in ("SigBlk", "SigIgn", "SigCgt")} == {"SigBlk": 0, "SigIgn": 0, "SigCgt": 0}


def test_the_umask_is_the_policys(control, session):
    assert control.output(session, "sh", "-c", "umask").strip() == "0022"


@pytest.mark.parametrize("limit, field", [("RLIMIT_NOFILE", "open_files"), ("RLIMIT_FSIZE", "file_size_bytes")])
def test_resource_limit_is_the_policys_soft_and_hard(control, session, limit, field):
    assert inside(control, session, f"import resource; out = resource.getrlimit(resource.{limit})") == [BASE["limits"][field]] * 2


def test_the_processor_limit_is_the_policys_and_a_second_to_say_so(control, session):
    seconds = BASE["limits"]["cpu_seconds"]
    assert inside(control, session, "import resource; out = resource.getrlimit(resource.RLIMIT_CPU)") == [seconds, seconds + 1]


def test_a_hard_limit_cannot_be_raised(control, session):
    code = "import resource; soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
    code += "try: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard + 1)); out = 'ok'\nexcept (ValueError, OSError) as e: out = 'refused'"
    assert inside(control, session, code) == "refused"


def test_core_files_are_off(control, session):
    assert inside(control, session, "import resource; out = resource.getrlimit(resource.RLIMIT_CORE)") == [0, 0]


def test_the_host_name_is_the_policys(control, session):
    assert control.output(session, "uname", "-n").strip() == BASE["hostname"] != os.uname().nodename


@pytest.mark.parametrize("kind", ["user", "mnt", "pid", "ipc", "uts", "net"])
def test_namespace_is_not_the_launchers(launcher, control, session, kind):
    assert inside(control, session, f"out = os.readlink('/proc/self/ns/{kind}')") != os.readlink(
        f"/proc/{launcher.pid}/ns/{kind}"
    )


# Processes.


def test_the_first_process_is_caisson_init(control, session):
    assert control.output(session, "cat", "/proc/1/comm").strip() == "caisson-init"


def test_no_signal_ends_the_first_process(control, session):
    inside(control, session, "out = [tried(os.kill, 1, s) for s in range(1, 65) if s not in (32, 33)]")
    assert control.output(session, "cat", "/proc/1/comm").strip() == "caisson-init"


@pytest.mark.parametrize("entry", ["environ", "mem", "maps", "exe", "cwd", "root", "fd", "fdinfo", "ns/net", "io"])
def test_entry_of_the_first_process_cannot_be_read(control, session, entry):
    def look(pid):
        code = f"path = '/proc/{pid}/{entry}'\nout = tried(os.readlink if os.path.islink(path) else os.listdir if os.path.isdir(path) else lambda p: open(p).close(), path)"
        return inside(control, session, code)

    assert look("1") in ("EACCES", "EPERM")
    assert look("self") not in ("EACCES", "EPERM", "ENOENT"), "a process's own can be read, or this proves nothing"


def test_only_the_sessions_own_processes_are_listed(control, session):
    control.start(session, "sleep", "60")
    code = "out = sorted(open('/proc/%s/comm' % p).read().strip() for p in os.listdir('/proc') if p.isdigit())"
    assert inside(control, session, code) == ["caisson-init", "python3", "sleep"]


def test_a_pid_of_the_launcher_or_of_another_session_is_not_there(launcher, control, session):
    other = control.create()
    control.start(other, "sleep", "61")
    pids = [p for p, (_, comm, _) in processes().items() if comm in ("caisson-launche", "caisson-agent", "sleep")]
    code = f"me = os.getpid(); out = [p for p in {pids} if p not in (me, 1) and tried(os.kill, p, 0) == 'ok']"
    assert launcher.pid in pids and inside(control, session, code) == []


def test_kill_everything_reaches_the_own_session_only(control, session):
    other = control.create()
    name, _ = control.start(other, "sleep", "62")
    control.run(session, "sh", "-c", "kill -9 -1")
    assert control.call("session_stat", session=other)[0]["execs"] == 1
    control.call("exec_signal", session=other, exec=name, signal="SIGTERM")
    assert control.exit(other, name)["signal"] == "SIGTERM"


def test_credentials_of_the_agent_are_in_no_environment_and_no_command_line(launcher, control, session):
    code = f"""
found, me = [], str(os.getpid())
for pid in [p for p in os.listdir('/proc') if p.isdigit() and p != me]:
    for entry in ('environ', 'cmdline'):
        try: text = open('/proc/%s/%s' % (pid, entry), 'rb').read()
        except OSError: continue
        if b'{API_KEY}' in text or b'leaked' in text: found.append(pid)
out = found
"""
    with open(f"/proc/{launcher.pid}/environ", "rb") as own:
        assert API_KEY.encode() in own.read(), "it must be there outside, or this proves nothing"
    control.start(session, "sleep", "63")
    assert inside(control, session, code) == []


# Files.


@pytest.mark.parametrize(
    "path",
    [
        "/etc/shadow",
        "/etc/machine-id",
        "/etc/ssh",
        "/root",
        "/root/.ssh",
        "/home/gem/../../root",
        "/usr/lib/caisson",
        "/usr/bin/caisson",
        "/var/log",
        "/var/lib",
        "/run/caisson",
        "/run/systemd",
        "/sys",
        "/boot",
        "/srv",
        "/mnt",
    ],
)
def test_path_is_not_there(control, session, path):
    # /usr/lib/caisson exists where Caisson is installed: covered by something that cannot be opened.
    assert inside(control, session, f"out = tried(os.open, {path!r}, os.O_RDONLY)") in ("ENOENT", "EACCES")


@pytest.mark.parametrize(
    "path", ["/proc/1/root/etc", "/proc/self/root/root", "/proc/self/cwd/../../root", "/dev/fd/0/../../root"]
)
def test_no_magic_link_leads_out(control, session, path):
    assert inside(control, session, f"out = tried(os.open, {path!r}, os.O_RDONLY)") in ("ENOENT", "EACCES", "ENOTDIR")


def test_the_launchers_own_directories_are_not_there(launcher, control, session):
    paths = [str(p) for p in (launcher.audit, launcher.run, launcher.policies, launcher.base, ROOT)]
    assert inside(control, session, f"out = [tried(os.stat, p) for p in {paths}]") == ["ENOENT"] * len(paths)


def test_etc_passwd_is_the_minimal_file(control, session):
    assert control.output(session, "cat", "/etc/passwd").splitlines() == BASE["files"]["/etc/passwd"]


@pytest.mark.parametrize(
    "path", ["/x", "/usr/x", "/usr/bin/x", "/usr/local/x", "/etc/x", "/dev/x", "/var/x", "/run/x", "/proc/x", "/home/x"]
)
def test_no_file_can_be_made_at(control, session, path):
    assert inside(control, session, f"out = [tried(os.open, {path!r}, os.O_WRONLY | os.O_CREAT), tried(os.mkdir, {path!r})]") in (
        [a, b] for a in ("EROFS", "EACCES", "ENOENT") for b in ("EROFS", "EACCES", "ENOENT")
    )


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/etc/hosts",
        "/usr/bin/env",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/hostname",
        "/proc/sysrq-trigger",
        "/proc/1/oom_score_adj",
    ],
)
def test_file_cannot_be_written(control, session, path):
    assert inside(control, session, f"out = tried(os.open, {path!r}, os.O_WRONLY)") in ("EROFS", "EACCES", "EPERM", "ENOENT")


@pytest.mark.parametrize(
    "call",
    [
        "os.rename('/etc/passwd', '/etc/x')",
        "os.unlink('/etc/passwd')",
        "os.chmod('/usr/bin/env', 0o777)",
        "os.truncate('/etc/hosts', 0)",
        "os.link('/usr/bin/env', '/usr/bin/env2')",
        "os.symlink('x', '/usr/x')",
        "os.rmdir('/usr/bin')",
        "os.utime('/usr/bin/env')",
    ],
)
def test_what_is_read_only_cannot_be_changed_by(control, session, call):
    assert inside(control, session, f"out = tried(lambda: {call})") in ("EROFS", "EACCES", "EPERM", "EBUSY")


@pytest.mark.parametrize("directory", ["/tmp", "/home/gem"])
def test_directory_is_writable_and_shared_by_the_sessions_of_a_workspace(control, session, directory):
    control.output(session, "sh", "-c", f"echo shared > {directory}/from-one")
    other = control.create("shell")
    assert control.output(other, "cat", f"{directory}/from-one") == "shared\n"
    control.output(other, "rm", f"{directory}/from-one")


def test_dev_shm_is_writable_and_not_shared(control, session):
    control.output(session, "sh", "-c", "echo mine > /dev/shm/mine")
    assert inside(control, control.create(), "out = os.listdir('/dev/shm')") == []


def test_dev_lists_what_the_policy_names(control, session):
    always = {"fd", "stdin", "stdout", "stderr", "ptmx", "pts", "shm"}
    assert set(inside(control, session, "out = os.listdir('/dev')")) == set(BASE["devices"]) | always


@pytest.mark.parametrize(
    "device, number", [("null", "1:3"), ("zero", "1:5"), ("full", "1:7"), ("random", "1:8"), ("urandom", "1:9"), ("tty", "5:0")]
)
def test_device_is_the_real_one(control, session, device, number):
    assert inside(control, session, f"s = os.stat('/dev/{device}').st_rdev; out = '%d:%d' % (os.major(s), os.minor(s))") == number


def mounts(control, session):
    for line in control.output(session, "cat", "/proc/self/mountinfo").splitlines():
        fields = line.split()
        yield fields[4], fields[5].split(","), fields[fields.index("-") + 1]


def test_every_mount_is_nosuid(control, session):
    assert [target for target, options, _ in mounts(control, session) if "nosuid" not in options] == []


def test_every_mount_but_devices_is_nodev(control, session):
    assert [t for t, options, _ in mounts(control, session) if "nodev" not in options and not t.startswith("/dev/")] == []


def test_every_mount_but_the_writable_ones_is_read_only(control, session):
    writable = {t for t, options, kind in mounts(control, session) if "ro" not in options and kind != "proc"}
    assert writable <= {"/tmp", "/home/gem", "/dev/shm", "/dev/pts", *(f"/dev/{d}" for d in BASE["devices"])}


def test_a_set_user_id_program_gains_nothing(control, session):
    suid = next(
        (p for p in ("/usr/bin/su", "/usr/bin/mount", "/usr/bin/passwd") if os.path.exists(p) and os.stat(p).st_mode & 0o4000),
        None,
    )
    if suid is None:
        pytest.skip("no set-user-id program on this host to try")
    code = f"import subprocess; p = subprocess.Popen([{suid!r}, '--help'], stdout=-1, stderr=-1); p.wait(); out = libc.prctl(39, 0, 0, 0, 0)"
    assert inside(control, session, code) == 1


def test_parents_of_the_root_are_the_root(control, session):
    assert inside(
        control, session, "out = os.stat('/../../..').st_ino == os.stat('/').st_ino and sorted(os.listdir('/'))"
    ) == sorted(["bin", "dev", "etc", "home", "lib", "lib64", "proc", "run", "sbin", "tmp", "usr", "var", *TOOLS])


def test_tools_can_be_run_and_not_written(control, session):
    if not TOOLS:
        pytest.skip("no tools beside this launcher")
    assert inside(control, session, "out = tried(os.open, '/caisson/x', os.O_CREAT | os.O_WRONLY)") in ("EROFS", "EACCES")
    assert inside(control, session, "out = os.access('/caisson/caisson-file-worker', os.X_OK)") is True
    grants = {g["path"]: g for g in control.call("session_report", session=session)[0]["report"]["grants"]}
    assert (grants["/caisson"]["access"], grants["/caisson"]["execute"]) == ("read", True)


@pytest.mark.parametrize("path", ["/proc/keys", "/proc/kallsyms", "/proc/interrupts", "/proc/key-users"])
def test_kernel_table_is_masked(control, session, path):
    assert os.path.exists(path), "it must be there outside, or this proves nothing"
    assert inside(control, session, f"out = tried(os.open, {path!r}, 0)") in ("EACCES", "ENOENT")


# Network.


def test_loopback_works_between_the_sessions_of_a_workspace(control, session):
    server = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); c = s.accept()[0]; c.sendall(b'hello'); c.close()"
    _, fds = control.start(session, "/usr/bin/python3", "-c", server)
    port = int(os.read(fds[1], 100))
    assert inside(control, control.create(), f"out = socket.create_connection(('127.0.0.1', {port})).recv(9).decode()") == "hello"


def test_a_port_of_the_host_cannot_be_reached(control, session):
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"out = tried(lambda: socket.create_connection(('127.0.0.1', {server.getsockname()[1]})) and None)"
        assert (outside(code), inside(control, session, code)) == ("ok", "ECONNREFUSED")


def test_the_agents_port_cannot_be_reached(launcher, control, session):
    code = f"out = tried(lambda: socket.create_connection(('127.0.0.1', {launcher.port})) and None)"
    assert inside(control, session, code) == "ECONNREFUSED"


def test_an_abstract_socket_of_the_host_cannot_be_reached(control, session):
    with socket.socket(socket.AF_UNIX) as server:
        name = f"\0caisson-test-{os.getpid()}"
        server.bind(name)
        server.listen()
        code = f"s = socket.socket(socket.AF_UNIX); out = tried(s.connect, {name!r})"
        assert (outside(code), inside(control, session, code)) == ("ok", "ECONNREFUSED")


@pytest.mark.parametrize("address", ["1.1.1.1", "169.254.169.254", "10.0.0.1", "255.255.255.255"])
def test_there_is_no_route_to(control, session, address):
    code = f"s = socket.socket(); s.settimeout(5); out = tried(s.connect, ('{address}', 80))"
    assert inside(control, session, code) in ("ENETUNREACH", "EACCES")


def test_the_only_interface_is_loopback(control, session):
    assert inside(control, session, "out = [n for _, n in socket.if_nameindex()]") == ["lo"]


def test_a_narrowed_session_has_no_internet_sockets(control):
    narrowed = control.create(narrow={"network": "none"})
    assert (
        inside(control, narrowed, "out = [tried(socket.socket, f) for f in (socket.AF_INET, socket.AF_INET6)]") == ["EPERM"] * 2
    )


def test_the_control_socket_cannot_be_reached_by_a_user(launcher, control):
    code = f"import socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect({str(launcher.socket)!r})"
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "PermissionError" in done.stderr
