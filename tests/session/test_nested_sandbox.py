"""The set `nested-sandbox`: programs of the domain `browser` make the namespaces of Chromium's sandbox, and no others; and what the
capabilities in these reach. Each attack has its control in the same namespaces outside of any session."""

import json
import os
import pathlib

import places
import pytest
from harness import Refused, cli, edit, eventually, inside, outside

X86 = os.uname().machine == "x86_64"
NR = {"clone": 56, "unshare": 272, "chroot": 161, "mount": 165, "setns": 308, "setsockopt": 54, "pivot_root": 155} if X86 else {
    "clone": 220, "unshare": 97, "chroot": 51, "mount": 40, "setns": 268, "setsockopt": 208, "pivot_root": 41}  # fmt: skip
USER, PID, NET, NS, IPC, UTS, CGROUP = 0x10000000, 0x20000000, 0x40000000, 0x20000, 0x8000000, 0x4000000, 0x2000000
ZYGOTE = USER | PID | NET

# nested(attempt): what it gives in namespaces like those of Chromium's zygote, or the errno of the clone.
NESTED = f"""
def cloned(flags):
    return call({NR["clone"]}, flags | 17, 0, 0, 0, 0)
def nested(attempt, flags={ZYGOTE}):
    r, w = os.pipe()
    pid = cloned(flags)
    if pid == 0:
        os.write(w, json.dumps(tried(attempt)).encode())
        os._exit(0)
    os.close(w)
    if isinstance(pid, str): return pid
    said = os.read(r, 10000)
    os.waitpid(pid, 0)
    os.close(r)
    return json.loads(said)
"""


@pytest.fixture(scope="module")
def browser(launcher):
    control = launcher.control()
    return control, control.create("browser")


def result(flags):
    return f"{NESTED}\nr = cloned({flags})\nif r == 0: os._exit(0)\nout = r if isinstance(r, str) else 'made'"


@pytest.mark.parametrize("flags", [USER, ZYGOTE, PID], ids=["a try", "the zygote", "a renderer"])
def test_what_chromium_makes_passes_the_filter(browser, flags):
    # PID alone needs the capability that only the zygote has.
    assert inside(*browser, result(flags)) == ("EPERM" if flags == PID else "made")
    code = f"{NESTED}\ndef renderer():\n  r = cloned({PID})\n  if r == 0: os._exit(0)\n  return r if isinstance(r, str) else 'made'\nout = nested(renderer)"
    assert inside(*browser, code) == "made"


OTHERS = [USER | NS, USER | NET, USER | PID, USER | NS | PID | NET, NS, NET, IPC, UTS, CGROUP, PID | NET, ZYGOTE | IPC, ZYGOTE | UTS, ZYGOTE | CGROUP]


@pytest.mark.parametrize("flags", OTHERS, ids=hex)
def test_no_other_namespaces_are_made(browser, flags):
    # A user namespace is made by the session's own user, the others by who has capabilities in one.
    made = f"{NESTED}\ndef other():\n  r = cloned({flags})\n  if r == 0: os._exit(0)\n  return r if isinstance(r, str) else 'made'\n"
    code = made + ("out = other()" if flags & USER else "out = nested(other)")
    assert inside(*browser, code) == "EPERM"
    assert outside(code) == "made"


@pytest.mark.parametrize("flags", [NS, NET, PID, IPC, UTS, CGROUP, USER | NS, USER | NET, 0x80], ids=hex)
def test_unshare_makes_a_user_namespace_alone(browser, flags):
    attempt = f"call({NR['unshare']}, {flags})"
    code = f"{NESTED}\nout = {attempt if flags & USER else f'nested(lambda: {attempt})'}"
    assert inside(*browser, code) == "EPERM"
    assert outside(code) in (0, "ok")
    assert inside(*browser, f"out = call({NR['unshare']}, {USER})") == 0


# What capabilities in own user and network namespaces reach, unless it is closed.
ATTACKS = {
    "a mount": (f"call({NR['mount']}, b'none', b'/tmp', b'tmpfs', 0, None)", "EPERM"),
    "routes": ("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).fileno()", "EPERM"),
    "nf_tables": ("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12).fileno()", "EPERM"),
    "a raw socket": ("socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).fileno()", "EPERM"),
    "packets": ("socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0).fileno()", "EPERM"),
    "a bridge": ("__import__('fcntl').ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x89a0, b'br0' + bytes(13)) and 'ok'", "EPERM"),
    "the loopback's flags": ("__import__('fcntl').ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8914, struct.pack('16sH14x', b'lo', 1)) and 'ok'", "EPERM"),
    "an address": ("__import__('fcntl').ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8916, struct.pack('16sHH4s8x', b'lo', 2, 0, bytes([10, 0, 0, 1]))) and 'ok'",
                   "EPERM"),
    "a name of an interface": ("__import__('fcntl').ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8923, b'lo'.ljust(16, bytes(1)) + b'l2'.ljust(16, bytes(1))) and 'ok'",
                               "EPERM"),
    "a sysctl of its network": ("open('/proc/sys/net/ipv4/ip_forward', 'w').write('1')", "EROFS"),
    "a sysctl of its user namespace": ("open('/proc/sys/user/max_net_namespaces', 'w').write('100000')", "EROFS"),
    "a host name": ("socket.sethostname('x') or 'ok'", "EPERM"),
}  # fmt: skip
CONTROLS = {"a mount": NS, "a host name": UTS}


@pytest.mark.parametrize("name", ATTACKS)
def test_capabilities_in_nested_namespaces_reach_nothing(browser, name):
    code, refusal = ATTACKS[name]
    own = f"{NESTED}\nout = nested(lambda: {code})"
    assert inside(*browser, own) == refusal
    # The same capabilities over a mount tree and a host name need these of their own, too.
    control = outside(own + f"\nout = nested(lambda: {code}, {USER | CONTROLS.get(name, ZYGOTE)})")
    assert control not in ("EPERM", "EROFS", "EACCES"), control


# By the option's number: each table is of a module that this machine may lack, and without it the kernel answers ENOPROTOOPT.
NETFILTER = [(0, n) for n in (64, 65, 96, 97, 128, 129, 0x480, 0x48f)] + [(41, 64), (41, 65)]


@pytest.mark.parametrize("level, option", NETFILTER)
def test_tables_of_netfilter_are_refused_by_number_in_every_domain(launcher, browser, level, option):
    code = (f"{NESTED}\nfamily = socket.AF_INET6 if {level} else socket.AF_INET\n"
            f"out = nested(lambda: tried(socket.socket(family, socket.SOCK_DGRAM).setsockopt, {level}, {option}, bytes(100)))")
    assert inside(*browser, code) == "EPERM"
    control = launcher.control()
    assert inside(control, control.create(), code.replace("nested(lambda:", "(lambda f: f())(lambda:")) == "EPERM"
    assert outside(code.replace(str(ZYGOTE), str(NET))) != "EPERM"


def test_ten_thousand_namespaces_stop_at_the_workspaces_limit(launcher):
    """Each is pinned by a descriptor. The kernel counts them below the workspace's user namespace, however deep."""
    control = launcher.control()
    control.call("workspace_create", name="nested")
    session = control.create("browser", workspace="nested")
    code = f"""{NESTED}
def most():
    kept = []
    for i in range(10000):
        r, w = os.pipe(); q, v = os.pipe()
        pid = cloned({ZYGOTE})
        if pid == 0:
            os.close(v); os.write(w, b'x'); os.read(q, 1); os._exit(0)
        if isinstance(pid, str): return [len(kept), pid]
        os.read(r, 1)
        kept.append((os.open('/proc/%d/ns/net' % pid, 0), v))
        os.close(r); os.close(w); os.close(q)
    return [len(kept), None]
out = most()"""
    made, refusal = inside(control, session, code)
    assert refusal == "ENOSPC" and 200 < made <= 256
    control.call("workspace_destroy", workspace="nested")


def test_other_domains_make_none(launcher):
    control = launcher.control()
    assert inside(control, control.create(), result(USER)) == "EPERM"


def test_the_report_says_what_is_open(launcher, browser):
    control, session = browser
    report = control.call("attest", session=session)[0]["statement"]["confinement"]
    assert "nested-user-ns" in {r["id"] for r in report["residual"]}
    assert "nested-namespaces-unbounded" not in {r["id"] for r in report["residual"]}
    assert {"by": "canary", "what": "nested", "result": "EPERM"} in next(m for m in report["mechanisms"] if m["name"] == "seccomp")["verified"]


def test_memory_of_ended_namespaces_comes_back(launcher):
    def slab():
        return {line.split()[0]: int(line.split()[1]) for line in pathlib.Path("/proc/slabinfo").read_text().splitlines()[2:]}.get("net_namespace", 0)

    if not slab():
        pytest.skip("this kernel does not say how many network namespaces there are")
    before = slab()
    control = launcher.control()
    session = control.create("browser")
    inside(control, session, f"{NESTED}\nout = [nested(lambda: 'ok') for _ in range(300)][-1]")
    control.call("session_destroy", session=session)
    eventually(lambda: slab() <= before + 50, what="the namespaces are gone")


def test_the_zygote_changes_its_root(browser):
    assert inside(*browser, f"{NESTED}\nout = nested(lambda: call({NR['chroot']}, b'/tmp'))") == "ok"
    assert inside(*browser, f"out = call({NR['chroot']}, b'/tmp')") == "EPERM"


def test_its_maps_are_written_and_nothing_else_of_proc(browser):
    assert inside(*browser, f"{NESTED}\nout = nested(lambda: os.write(os.open('/proc/self/setgroups', os.O_WRONLY), b'deny') and 'ok', {USER})") == "ok"
    for path in ("/proc/1/oom_score_adj", "/proc/1/mem", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"):
        assert inside(*browser, f"{NESTED}\nout = nested(lambda: open({path!r}, 'w').fileno())") in ("EACCES", "EROFS", "EPERM", "ENOENT"), path
    assert inside(*browser, "out = tried(open, '/proc/sys/net/ipv4/ip_forward', 'w')") in ("EACCES", "EROFS")


def test_in_t2_nothing_bounds_them_and_the_report_says_so(weakened):
    control = weakened("T2")
    session = control.create("browser")
    assert inside(control, session, f"{NESTED}\nout = nested(lambda: 'ok')") == "ok"
    report = control.call("session_report", session=session)[0]["report"]
    assert {"nested-user-ns", "nested-namespaces-unbounded"} <= {r["id"] for r in report["residual"]}
    assert inside(control, session, f"{NESTED}\nout = nested(lambda: open('/proc/sys/net/ipv4/ip_forward', 'w').fileno())") in ("ENOENT", "EROFS")


def test_in_t0_a_browser_is_refused_with_what_raises_the_tier(weakened):
    with pytest.raises(Refused, match="needs tier T2, this container gives T0"):
        weakened("T0").create("browser")


def test_a_policy_of_an_operator_with_the_set_is_refused_in_t0_as_well(fresh):
    required = json.loads((fresh.policies / "base.json").read_text())["require"]
    edit(fresh.policies / "browser.json", min_tier="T1", require=required, home="workspace", tmp="workspace", exec_writable=True)
    fresh.start("--agent", "/usr/bin/true", wrapper=places.wrapper("T0", fresh.home))
    with pytest.raises(Refused, match="'nested-sandbox', which needs user and mount namespaces, tier T2 or T3"):
        fresh.control().create("browser")


def test_the_set_does_not_go_with_netlink(fresh):
    policy = json.loads((fresh.policies / "browser.json").read_text())
    edit(fresh.policies / "browser.json", syscalls={"allow": [*policy["syscalls"]["allow"], "netlink-route"]})
    done = cli("policy", "check", str(fresh.policies))
    assert done.returncode != 0 and '"netlink-route" beside "nested-sandbox"' in (done.stdout + done.stderr).decode()


def test_another_set_that_permits_namespaces_ends_at_the_canary(fresh):
    """Whatever it is called: what is not this set has none of what goes with it."""
    theirs = json.loads((fresh.policies / "seccomp/nested-sandbox.json").read_text())
    (fresh.policies / "seccomp/theirs.json").write_text(json.dumps({**theirs, "name": "theirs"}))
    policy = json.loads((fresh.policies / "browser.json").read_text())
    allow = [s if s != "nested-sandbox" else "theirs" for s in policy["syscalls"]["allow"]]
    edit(fresh.policies / "browser.json", syscalls={"allow": allow})
    fresh.start("--agent", "/usr/bin/true")
    with pytest.raises(Refused, match="canary unshare_user"):
        fresh.control().create("browser")
