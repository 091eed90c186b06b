"""`system_packages`: dpkg and apt-get install, replace and remove in a copy of the system that the workspace's sessions share. The test
builds the packages itself, for there is no network. The container, other workspaces and other domains keep theirs."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess

import pytest
from harness import Launcher, Refused, cli, edit, inside, listing

MIB = 1 << 20
WEAKEN = [{"field": "/system_packages", "why": "agents install what they need"}]


def allow(launcher, *domains):
    for domain in domains:
        edit(launcher.policies / f"{domain}.json", system_packages=True, weaken=WEAKEN, limits={"packages_bytes": 256 * MIB})


@pytest.fixture(scope="module")
def installing(launcher, tmp_path_factory):
    """A launcher whose bash and shell sessions may install: (launcher, control). The other one says whether this host gives T3."""
    with Launcher(tmp_path_factory.mktemp("installing")) as one:
        allow(one, "bash", "shell")
        yield one, one.start("--agent", "/usr/bin/true").control()


@pytest.fixture
def control(installing):
    return installing[1]


@pytest.fixture
def session(control):
    made = control.create()
    yield made
    control.destroy(made)


@pytest.fixture
def run(control, session):
    return lambda script: control.output(session, "bash", "-c", script)


@pytest.fixture
def home(installing):
    return installing[0].home


def package(into, name="caisson-example", version="1.0", files=None, depends="", postinst=""):
    """A .deb: files by path, with content and mode. They belong to root and to group mail, as some of Debian's do."""
    tree = into / f"{name}-{version}"
    for path, (content, mode) in (files or {f"/usr/bin/{name}": (f"#!/bin/sh\necho {name} {version}\n", 0o755)}).items():
        at = tree / path[1:]
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(content)
        os.chown(at, 0, 8)
        at.chmod(mode)
    control = tree / "DEBIAN"
    control.mkdir()
    fields = {"Package": name, "Version": version, "Architecture": "all", "Maintainer": "Nobody <nobody@example.test>", "Description": "x"}
    if depends:
        fields["Depends"] = depends
    (control / "control").write_text("".join(f"{key}: {value}\n" for key, value in fields.items()))
    conffiles = [path for path in files or {} if path.startswith("/etc/")]
    if conffiles:
        (control / "conffiles").write_text("\n".join(conffiles) + "\n")
    if postinst:
        (control / "postinst").write_text("#!/bin/sh\nset -e\n" + postinst)
        (control / "postinst").chmod(0o755)
    out = into / f"{name}_{version}_all.deb"
    subprocess.run(["dpkg-deb", "--build", tree, out], check=True, capture_output=True)
    shutil.rmtree(tree)
    out.chmod(0o644)
    return out


def repository(into, *packages):
    """What apt reads of a directory with packages."""
    stanzas = []
    for deb in packages:
        fields = subprocess.run(["dpkg-deb", "--field", deb], check=True, capture_output=True, text=True).stdout
        data = deb.read_bytes()
        stanzas.append(f"{fields}Filename: ./{deb.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n")
    (into / "Packages").write_text("\n".join(stanzas))
    (into / "sources.list").write_text(f"deb [trusted=yes] file:/home/gem/{into.name} ./\n")


APT = "apt-get -q -o Dir::Etc::sourcelist=/home/gem/repo/sources.list -o Dir::Etc::sourceparts=-"


def test_a_session_is_root_without_any_power(control, session):
    out = inside(
        control,
        session,
        """
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
out = {key: status[key] for key in status if key.startswith("Cap") or key in ("NoNewPrivs", "Seccomp", "Uid", "Gid")}
out["map"] = open("/proc/self/uid_map").read().split()
out["fds"] = sorted(map(int, os.listdir("/proc/self/fd")))[:3]
""",
    )
    assert {out[f"Cap{name}"] for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert (out["NoNewPrivs"], out["Seccomp"], out["Uid"], out["map"]) == ("1", "2", "0\t0\t0\t0", ["0", "1000", "1"])


@pytest.mark.parametrize(
    ("attack", "error"),
    [
        ("call(272, 0x10000000)", "EPERM"),  # unshare(CLONE_NEWUSER)
        ("call(165, b'tmpfs', b'/srv', b'tmpfs', 0, 0)", "EPERM"),  # mount
        ("tried(os.chroot, '/usr')", "EPERM"),
        ("tried(os.mknod, '/srv/null', 0o666 | 0o020000, os.makedev(1, 3))", "EPERM"),
        ("tried(open, '/proc/1/environ', 'rb')", "EACCES"),
        ("tried(open, '/proc/sys/kernel/core_pattern', 'w')", "EACCES"),
        ("tried(open, '/proc/self/oom_score_adj', 'w')", "EACCES"),
        ("tried(os.mkdir, '/top')", "EROFS"),
        ("tried(os.listdir, '/usr/lib/caisson')", "ENOENT"),
        ("tried(os.listdir, '/sys')", "ENOENT"),
    ],
)
def test_what_no_session_may_this_one_may_not_either(control, session, attack, error):
    assert inside(control, session, f"out = {attack}") == error


def test_nobody_has_a_password_and_users_are_added(control, session, run):
    """Not the container's /etc/shadow, whatever is in that: one that says of everybody that nobody can log in."""
    assert set(run("cut -d: -f2- /etc/shadow | sort -u").split()) == {"*:::::::"}
    assert run("cut -d: -f1 /etc/shadow") == run("cut -d: -f1 /etc/passwd")
    run("groupadd --system caisson-example && useradd --system --gid caisson-example caisson-example")
    assert "caisson-example" in run("id caisson-example")


def test_changes_of_owner_and_user_are_answered_and_not_made(control, session):
    code = """
open("/srv/mine", "w").close()
out = [tried(os.chown, "/srv/mine", 4242, 4242), os.stat("/srv/mine").st_uid, tried(os.setgroups, [1]), tried(os.setuid, 4242), os.getuid()]
"""
    assert inside(control, session, code) == ["ok", 0, "ok", "ok", 0]


def test_a_package_is_installed_for_the_workspace_alone(installing, control, session, run, home):
    """With files of a group that is not there, a set-user-ID program, a configuration file and a script."""
    tops = ("/usr/bin", "/etc", "/var/lib/dpkg", "/var/lib/dpkg/info")
    before = listing(*tops)
    files = {
        "/usr/bin/caisson-example": ("#!/bin/sh\necho installed\n", 0o4755),
        "/etc/caisson-example.conf": ("answer=42\n", 0o644),
        "/var/lib/caisson-example/new": ("", 0o640),
    }
    package(home, files=files, postinst="chown mail:mail /var/lib/caisson-example/new; echo done > /var/lib/caisson-example/state\n")
    run("dpkg -i caisson-example_1.0_all.deb")
    for domain in ("bash", "shell"):
        other = control.create(domain)
        assert control.output(other, "caisson-example") == "installed\n"
        assert control.output(other, "cat", "/etc/caisson-example.conf", "/var/lib/caisson-example/state") == "answer=42\ndone\n"
        control.destroy(other)
    assert listing(*tops) == before
    control.call("workspace_create", name="other", disk_bytes=8 * MIB)
    try:
        for arguments in ({"workspace": "other"}, {"domain": "code"}):
            other = control.create(**arguments)
            gone = [inside(control, other, f"out = tried(os.stat, {path!r})") for path in files]
            control.destroy(other)
            assert gone == ["ENOENT"] * 3, arguments
    finally:
        control.call("workspace_destroy", workspace="other")
    run("dpkg --purge caisson-example")
    assert run("ls /usr/bin/caisson-example /etc/caisson-example.conf 2>&1 || true").count("No such file") == 2


@pytest.mark.parametrize("how", ["dpkg -i ./{}", "apt-get install -y ./{}"])
def test_a_package_of_the_image_is_replaced(run, home, how):
    """dpkg links the old file to a second name first, which a file of nobody here cannot have."""
    real = pathlib.Path("/usr/bin/hostname") if pathlib.Path("/usr/bin/hostname").exists() else pathlib.Path("/bin/hostname")
    before = hashlib.sha256(real.read_bytes()).hexdigest()
    version = {"d": "98", "a": "99"}[how[0]]
    deb = package(home, "hostname", version, {"/bin/hostname": (f"#!/bin/sh\necho replaced by {version}\n", 0o755)})
    if "Architecture: all" not in subprocess.run(["dpkg-query", "-s", "hostname"], capture_output=True, text=True, check=False).stdout:
        run("sed -i '/^Package: hostname$/,/^$/s/^Architecture: .*/Architecture: all/' /var/lib/dpkg/status")
    run(how.format(deb.name))
    assert run("hostname") == f"replaced by {version}\n"
    assert hashlib.sha256(real.read_bytes()).hexdigest() == before


def test_apt_installs_with_what_it_depends_on_and_removes(run, home):
    repo = home / "repo"
    repo.mkdir()
    repository(repo, package(repo, "caisson-needs", depends="caisson-needed"), package(repo, "caisson-needed"))
    run(f"{APT} update && {APT} install -y caisson-needs")
    assert run("caisson-needs; caisson-needed") == "caisson-needs 1.0\ncaisson-needed 1.0\n"
    run(f"{APT} remove -y caisson-needed")
    assert run("type caisson-needs caisson-needed 2>&1 || true").count("not found") == 2


def test_a_program_of_the_system_is_not_written_through(control, session, run):
    target = "/usr/bin/true"
    before = pathlib.Path(target).read_bytes()
    assert inside(control, session, f"out = tried(open, {target!r}, 'r+b')") == "EACCES"
    run(f"cp {target} /usr/bin/true.new && echo '#!/bin/sh' > /usr/bin/true.new && mv /usr/bin/true.new {target}")
    assert run(f"head -c 2 {target}") == "#!"
    other = control.create("shell")
    assert control.output(other, "head", "-c", "2", target) == "#!"  # as the report's residual says
    control.destroy(other)
    assert pathlib.Path(target).read_bytes() == before
    run(f"rm {target}")
    assert run(f"ls {target} 2>&1 || true").strip().endswith("No such file or directory")
    assert pathlib.Path(target).read_bytes() == before


def test_only_what_is_granted_or_needed_is_copied(control, session):
    decoys = [pathlib.Path("/etc/caisson-test-decoy"), pathlib.Path("/var/lib/caisson-test-decoy")]
    try:
        for decoy in decoys:
            decoy.write_text("readable for everybody outside\n")
        control.call("workspace_create", name="decoys", disk_bytes=8 * MIB)
        other = control.create(workspace="decoys")
        assert [inside(control, other, f"out = tried(os.stat, {str(decoy)!r})") for decoy in decoys] == ["ENOENT"] * 2
        assert inside(control, other, "out = tried(os.stat, '/var/lib/dpkg/status') != 'ENOENT'")
    finally:
        for decoy in decoys:
            decoy.unlink(missing_ok=True)
        control.call("workspace_destroy", workspace="decoys")


def test_what_is_hidden_is_not_copied(fresh):
    allow(fresh, "bash")
    base = json.loads((fresh.policies / "base.json").read_text())
    edit(fresh.policies / "base.json", hide=[*base["hide"], "/etc/profile.d", "/usr/share/doc"])
    control = fresh.start("--agent", "/usr/bin/true").control()
    session = control.create()
    code = "out = [tried(os.listdir, p) for p in ('/etc/profile.d', '/usr/share/doc', '/usr/lib/caisson')] + [os.path.exists('/etc/profile')]"
    assert inside(control, session, code) == ["ENOENT", "ENOENT", "ENOENT", True]


def test_the_copy_has_a_size(control, session):
    code = """
def fill():
    with open("/var/fill", "wb") as file:
        for _ in range(300): file.write(bytes(1 << 20))
out = tried(fill)
os.unlink("/var/fill")
"""
    assert inside(control, session, code) == "ENOSPC"


def test_the_report_says_so(installing, control, session):
    report = control.call("session_report", session=session)[0]["report"]
    assert "system-shared" in {r["id"] for r in report["residual"]}
    assert report["weaken"]["/system_packages"] == WEAKEN[0]["why"]
    assert "root_ns" in report["timings_us"]


def test_it_needs_its_reason(fresh):
    edit(fresh.policies / "bash.json", system_packages=True)
    done = cli("policy", "check", fresh.policies)
    assert done.returncode == 21 and b"/system_packages" in done.stdout + done.stderr


def test_it_needs_all_of_usr(fresh):
    allow(fresh, "bash")
    base = json.loads((fresh.policies / "base.json").read_text())
    grants = [{**g, "path": "/usr/bin"} if g["path"] == "/usr" else g for g in base["grants"]]
    edit(fresh.policies / "base.json", grants=grants, hide=["/usr/bin/caisson"])
    fresh.spawn()
    assert fresh.process.wait(60) == 2
    assert "has system_packages, and no grant of /usr" in fresh.log.read_text()


def test_presets_of_trades_with_secrets_switch_it_off(fresh):
    allow(fresh, "bash")
    for preset in ("finance", "legal", "medical"):
        said = json.loads(cli("--policies", fresh.policies, "policy", "explain", "--json", "--preset", preset, "bash").stdout)
        assert said["system_packages"]["value"] is False, preset


def test_caisson_run_has_no_workspace_to_keep_it_in(fresh):
    allow(fresh, "run")
    done = cli("run", "--", "/usr/bin/true", env={**os.environ, "CAISSON_POLICY_DIR": str(fresh.policies)})
    assert done.returncode == 125 and b"system_packages, which need the workspace of a running launcher" in done.stderr


@pytest.mark.parametrize("asked", [{"isolation": "private"}, {"narrow": {"system_packages": False}}])
def test_who_asks_for_less_has_the_containers_own_system(control, asked):
    """A session apart from its workspace, too: the copy is the workspace's."""
    session = control.create(**asked)
    code = "out = [os.getuid(), tried(os.mkdir, '/usr/x'), tried(os.chown, '/tmp', 0, 0), tried(os.setuid, 0), tried(open, '/proc/1/environ')]"
    assert inside(control, session, code) == [1000, "EROFS", "EINVAL", "EPERM", "EACCES"]
    report = control.call("session_report", session=session)[0]["report"]
    assert "system-shared" not in {r["id"] for r in report["residual"]} and "root_ns" not in report["timings_us"]
    control.destroy(session)


def test_nobody_asks_for_more(control):
    with pytest.raises(Refused) as refused:
        control.create("code", narrow={"system_packages": True})
    assert "a request can only ask for false" in refused.value.error["what"]


def test_who_asks_for_other_grants_has_exactly_these(control):
    """The copy holds what the policy grants: a narrower list would not be kept in it."""
    session = control.create(narrow={"grants": [{"path": "/usr", "access": "read", "execute": True}]})
    assert inside(control, session, "out = [os.getuid(), tried(os.listdir, '/etc/ssl/certs')]") == [1000, "ENOENT"]
    with pytest.raises(Refused) as refused:
        control.create(narrow={"limits": {"packages_bytes": 200 * MIB}})
    assert "/limits/packages_bytes" in refused.value.error["what"]


@pytest.fixture
def decoy():
    """A directory of /etc that everybody may read."""
    place = pathlib.Path(f"/etc/caisson-test-{os.getpid()}")
    place.mkdir()
    (place / "secret").write_text("granted to bash alone\n")
    yield place
    shutil.rmtree(place)


def test_each_policy_has_the_grants_of_its_own(fresh, decoy):
    """Whoever comes first; and a grant that is taken away is gone from the next session."""
    allow(fresh, "bash", "shell")
    bash = json.loads((fresh.policies / "bash.json").read_text())
    grant = [{"path": str(decoy), "access": "read", "description": "x"}]
    edit(fresh.policies / "bash.json", grants=grant, weaken=[*bash["weaken"], {"field": f"/grants{decoy}", "why": "what is granted to one"}])
    control = fresh.start("--agent", "/usr/bin/true").control()

    def sees(domain):
        session = control.create(domain)
        found = inside(control, session, f"out = tried(lambda: open('{decoy}/secret').read())")
        copied = control.call("session_report", session=session)[0]["report"]["copied"]
        assert (str(decoy) in copied) == (found != "ENOENT")
        return found

    assert (sees("shell"), sees("bash"), sees("shell")) == ("ENOENT", "granted to bash alone\n", "ENOENT")
    edit(fresh.policies / "bash.json", grants=[], weaken=WEAKEN)
    fresh.reload()
    assert sees("bash") == "ENOENT"


def test_nothing_in_the_copy_stands_in_the_way_of_a_reload_or_of_others(fresh, decoy):
    """Neither where the policies lie, nor where the policy hides something, nor where a grant is mounted."""
    tools = fresh.base / "tools"
    tools.mkdir()
    (tools / "tool").write_text("echo good\n")
    shutil.copytree(fresh.policies, decoy / "policies")
    fresh.policies = decoy / "policies"
    allow(fresh, "bash", "shell")
    for domain in ("bash", "shell"):
        policy = json.loads((fresh.policies / f"{domain}.json").read_text())
        grant = [{"path": "/opt/tools", "source": str(tools), "access": "read", "description": "x"}]
        edit(fresh.policies / f"{domain}.json", grants=grant, weaken=[*policy["weaken"], {"field": "/grants/opt/tools", "why": "tools of ours"}])
    control = fresh.start("--agent", "/usr/bin/true").control()
    session = control.create()
    control.output(session, "bash", "-c", f"mkdir -p {decoy}/policies && touch {decoy}/policies/base.json && ln -sf /tmp /usr/bin/caisson")
    assert inside(control, session, "out = [tried(os.rename, '/opt/tools', '/opt/x'), tried(os.mkdir, '/opt/x')]")[1] == "EROFS"
    control.output(session, "bash", "-c", "rm -rf /etc/* /usr/lib/caisson; ln -s / /usr/lib/caisson; ln -s /tmp /etc/hosts")
    fresh.reload()
    for domain in ("bash", "shell"):
        other = control.create(domain)
        assert control.output(other, "sh", "/opt/tools/tool") == "good\n"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"home_path": "/var/home"}, "'/var/home'"),
        ({"grants": [{"path": "/etc/other", "source": "/usr/share", "access": "read", "description": "x"}]}, "'/etc/other'"),
        ({"grants": [{"path": "/usr/share/doc", "access": "read-write", "description": "x"}]}, "'/usr/share/doc'"),
    ],
)
def test_what_could_not_be_kept_in_the_copy_is_refused(fresh, change, why):
    allow(fresh, "bash")
    if "grants" in change:
        field = {"field": "/grants" + change["grants"][0]["path"], "why": "what is tried here"}
        change = {**change, "weaken": [*WEAKEN, field]}
    edit(fresh.policies / "bash.json", **change)
    fresh.spawn()
    assert fresh.process.wait(60) == 2
    assert "something of its own at " + why in fresh.log.read_text()


@pytest.mark.parametrize("home", ["/root", "/srv/work"])
def test_a_home_elsewhere_is_the_home(fresh, home):
    allow(fresh, "bash")
    base = json.loads((fresh.policies / "base.json").read_text())
    edit(fresh.policies / "base.json", home_path=home, env={**base["env"], "set": {**base["env"]["set"], "HOME": home}})
    control = fresh.start("--agent", "/usr/bin/true").control()
    control.output(control.create(), "touch", f"{home}/here")
    assert (fresh.home / "here").exists()


def test_a_grant_that_is_a_mount_of_its_own_is_copied(fresh, decoy):
    """As files and directories are that an engine mounts into a container."""
    allow(fresh, "bash")
    script = f'mount --bind {decoy} /etc/profile.d && mount --bind {decoy}/secret /etc/inputrc && exec "$0" "$@"'
    control = fresh.start("--agent", "/usr/bin/true", wrapper=("unshare", "--mount", "--", "sh", "-c", script)).control()
    assert control.output(control.create(), "cat", "/etc/profile.d/secret", "/etc/inputrc") == "granted to bash alone\n" * 2
