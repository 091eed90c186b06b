"""Protected names: what others run by itself (hooks, editors' and shells' settings) is read-only to sessions, at any depth of what
they are granted for writing, whatever they do; what they newly make by such a name is on record."""

import concurrent.futures
import json
import os
import subprocess

import pytest
import places
from harness import Refused, c_compiler, cli, edit, inside
from test_covers import RENAMES, domain, held, own, writable

NAMES = [".git/config", ".git/hooks", ".vscode", ".mcp.json", ".bashrc"]
REPO = "/srv/data/main/repo"


def make(top, files):
    for path, content in files.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(content)
    own(top, *(p for p in top.rglob("*")))


def protect(launcher, names=NAMES, name="data", **members):
    edit(launcher.policies / f"{name}.json", protect=list(names), **members)


@pytest.fixture
def repository(fresh):
    """/srv/data is writable; in it a repository, an editor's settings, and files of other names."""
    files = {
        "main/repo/.git/config": "[core]\n",
        "main/repo/.git/hooks/pre-commit": "exit 0\n",
        "main/repo/.git/HEAD": "ref\n",
        "main/repo/src/.vscode/tasks.json": "{}\n",
        "main/repo/.mcp.json": "{}\n",
        "main/repo/config": "mine\n",
        "main/other/file": "mine\n",
    }
    make(fresh.base / "data", files)
    domain(fresh, [writable(fresh)])
    protect(fresh)
    return fresh


def paths(control, session):
    told = control.call("session_report", session=session)[0]["report"]["protected"]
    assert told["count"] == len(told["paths"])
    return told["paths"]


def test_the_config_of_a_repository_is_read_only_and_said_to_be(repository):
    control = repository.start().control()
    session = control.create("data")
    assert inside(control, session, f"out = tried(open, '{REPO}/.git/config', 'w')") == "EROFS"
    assert inside(control, session, f"open('{REPO}/config', 'w').write('ours'); out = open('{REPO}/config').read()") == "ours"
    assert paths(control, session) == [f"{REPO}/{p}" for p in (".git/config", ".git/hooks", ".mcp.json", "src/.vscode")]
    statement = control.call("attest", session=session)[0]["statement"]
    assert statement["confinement"]["facts"]["protected"] == "4 read-only"
    assert (repository.base / "data/main/repo/.git/config").read_text() == "[core]\n"


# What each does to a protected file or directory in a directory that its user owns. Unconfined each succeeds.
ATTACKS = {
    "write": "open(f, 'w').write('x')",
    "append": "open(f, 'a').write('x')",
    "truncate": "os.truncate(f, 0)",
    "rename": "os.rename(f, f + '-moved')",
    "rename over": "open(f + '-new', 'w').write('x'), os.rename(f + '-new', f)",
    "exchange": "open(f + '-new', 'w').write('x'), exchange(f + '-new', f)",
    "remove": "os.unlink(f)",
    "remove and make": "os.unlink(f), open(f, 'w').write('x')",
    "directory over": "os.unlink(f), os.mkdir(f)",
    "link": "os.link(f, f + '-linked')",
    "link elsewhere": "os.link(f, top + '/linked')",
    "mode": "os.chmod(f, 0o777)",
    "times": "os.utime(f, (1, 1))",
    "attribute": "os.setxattr(f, 'user.x', b'x')",
    "by a link to it": "os.symlink(f, top + '/to-it'), open(top + '/to-it', 'w').write('x')",
    "by descriptors": "os.open(os.path.basename(f), os.O_WRONLY, dir_fd=os.open(os.path.dirname(f), os.O_PATH))",
    "map": "mmap.mmap(os.open(f, os.O_RDWR), 1)",
    "anonymous file": "anonymous(f)",
    "into hooks": "open(g + '/.git/hooks/post-merge', 'w').write('x')",
    "a hook": "open(g + '/.git/hooks/pre-commit', 'w').write('x')",
    "move hooks": "os.rename(g + '/.git/hooks', g + '/.git/old')",
    "move .git": "os.rename(g + '/.git', g + '/git')",
    "exchange .git": "os.mkdir(g + '/other'), exchange(g + '/.git', g + '/other')",
    "move the repository": "os.rename(g, g + '-moved')",
    "move what is above": "os.rename(os.path.dirname(g), top + '/moved')",
    "move to the top": "os.rename(g, top + '/moved')",
}
ATTACK = (
    RENAMES.replace("import ctypes", "import ctypes, mmap")
    + """
def anonymous(f):
    fd = os.open(os.path.dirname(f), os.O_TMPFILE | os.O_RDWR)
    os.write(fd, b'x')
    os.rename(f, f + '-aside')
    if libc.linkat(-100, b'/proc/self/fd/%d' % fd, -100, f.encode(), 0x400):
        raise OSError(ctypes.get_errno(), '')
"""
)


def attack(name, top):
    return f"{ATTACK}\ntop = '{top}'; g = top + '/main/repo'; f = g + '/.git/config'\nout = tried(lambda: ({ATTACKS[name]}) and None)"


def test_each_attack_succeeds_where_nothing_is_protected(repository):
    protect(repository, [])
    control = repository.start().control()
    for name in ATTACKS:
        subprocess.run(["rm", "-rf", repository.base / "data" / "moved"], check=True)
        for path in (repository.base / "data").iterdir():
            subprocess.run(["rm", "-rf", path], check=True)
        make(repository.base / "data", {"main/repo/.git/config": "[core]\n", "main/repo/.git/hooks/pre-commit": "exit 0\n"})
        assert inside(control, control.create("data"), attack(name, "/srv/data")) == "ok", name


def contents(top):
    return {str(p.relative_to(top)): p.read_text() for p in top.rglob("*") if p.is_file() and not p.is_symlink()}


def test_each_attack_is_refused_and_changes_nothing(repository):
    control = repository.start().control()
    data = repository.base / "data"
    before = {k: v for k, v in contents(data).items() if "/.git/" in k}
    session = control.create("data")
    for name in ATTACKS:
        said = inside(control, session, attack(name, "/srv/data"))
        assert said in ("EROFS", "EBUSY", "EXDEV"), (name, said)
    now = contents(data)
    assert {k: now.get(k) for k in before} == before
    later = control.create("data")
    assert inside(control, later, f"out = tried(open, '{REPO}/.git/config', 'w')") == "EROFS"
    control.call("attest", session=session)


def test_what_is_beside_a_protected_name_is_used_as_ever(repository):
    control = repository.start().control()
    session = control.create("data")
    code = f"cd {REPO} && echo x >.git/index.lock && mv .git/index.lock .git/index && mkdir src/new && mv src/new src/newer && rm config"
    control.output(session, "sh", "-ec", code)
    assert (repository.base / "data/main/repo/.git/index").exists() and not (repository.base / "data/main/repo/config").exists()


def test_a_second_name_of_a_protected_file_is_protected_wherever_it_lies(repository):
    data = repository.base / "data"
    for name in ("main/repo/.git/config", "main/repo/.git/hooks/pre-commit"):
        (data / "main/other" / os.path.basename(name)).hardlink_to(data / name)
    control = repository.start().control()
    session = control.create("data")
    code = "out = [tried(os.truncate, '/srv/data/main/other/' + n, 0) for n in ('config', 'pre-commit', 'file')]"
    assert inside(control, session, code) == ["EROFS", "EROFS", "ok"]
    assert held(control, session, "/srv/data/main/other", "/srv/data/main/other/config") == ["EBUSY"] * 2


def test_a_second_name_in_the_home_is_protected_though_the_home_is_not(repository):
    (repository.home / "keep").mkdir()
    (repository.home / ".bashrc").write_text("mine\n")
    (repository.home / "keep/linked").hardlink_to(repository.base / "data/main/repo/.git/config")
    own(*repository.home.rglob("*"))
    control = repository.start().control()
    code = "out = [tried(os.truncate, '/home/gem/' + n, 0) for n in ('keep/linked', '.bashrc')]"
    assert inside(control, control.create("data"), code) == ["EROFS", "ok"]


def test_what_a_link_with_a_protected_name_leads_to_is_protected_with_the_way(repository):
    data = repository.base / "data"
    make(data, {"tools/hooks/run": "exit 0\n", "settings/mcp": "{}\n"})
    (data / "way").symlink_to("tools")
    (data / "main/other/.vscode").symlink_to("/srv/data/settings")
    (data / "main/.mcp.json").symlink_to("../way/hooks/run")
    control = repository.start().control()
    session = control.create("data")
    for path in ("settings/mcp", "tools/hooks/run"):
        assert inside(control, session, f"out = tried(os.truncate, '/srv/data/{path}', 0)") == "EROFS"
    for path in ("way", "main/.mcp.json", "main/other/.vscode", "tools", "tools/hooks"):
        assert inside(control, session, f"out = [tried(os.rename, '/srv/data/{path}', '/srv/data/{path}-moved'), tried(os.unlink, '/srv/data/{path}')][0]") == "EBUSY"
    assert inside(control, session, "out = tried(open, '/srv/data/way/hooks/run', 'a')") == "EROFS"
    assert (data / "tools/hooks/run").read_text() == "exit 0\n"


def test_a_link_at_the_beginning_of_a_protected_name_is_followed_to_what_the_name_shows(repository):
    data = repository.base / "data"
    make(data, {"store/hooks/post-merge": "exit 0\n", "store/HEAD": "ref\n"})
    (data / "main/other/.git").symlink_to("../../store")
    control = repository.start().control()
    session = control.create("data")
    code = "out = [tried(os.mknod, '/srv/data/store/hooks/new')] + [tried(os.truncate, '/srv/data/store/' + n, 0) for n in ('hooks/post-merge', 'HEAD')]"
    assert inside(control, session, code) == ["EROFS", "EROFS", "ok"]
    assert held(control, session, "/srv/data/main/other/.git", "/srv/data/store", "/srv/data/store/hooks") == ["EBUSY"] * 3
    assert "/srv/data/main/other/.git/hooks" in paths(control, session)


@pytest.mark.parametrize("access", ["read", "read-write"])
def test_a_grant_at_a_protected_name_leaves_no_second_name_to_write_to(repository, access):
    data, at = repository.base / "data", "main/repo/.git"
    names = {"config": "config", "hooks": "hooks/pre-commit"}
    for name, file in names.items():
        (data / "main/other" / name).hardlink_to(data / at / file)
    nested = [{"path": f"/srv/data/{at}/{name}", "source": str(data / at / name), "access": access} for name in names]
    domain(repository, [writable(repository), *nested])
    protect(repository)
    control = repository.start().control()
    session = control.create("data")
    code = "out = [tried(os.truncate, '/srv/data/main/other/' + n, 0) for n in ('config', 'hooks', 'file')]"
    assert inside(control, session, code) == ["EROFS", "EROFS", "ok"]
    assert inside(control, session, f"out = tried(os.truncate, '{REPO}/.git/config', 0)") == "EROFS"


def refused(launcher, **fields):
    with pytest.raises(Refused) as no:
        launcher.control().create("data", **fields)
    return no.value.error["what"]


@pytest.mark.parametrize("target", ["../..", "/", "/srv", "/srv/data", "../other/."])
def test_a_link_to_a_directory_above_it_is_refused_with_a_sentence(repository, target):
    (repository.base / "data/main/other/.vscode").symlink_to(target)
    assert "'/srv/data/main/other/.vscode' is a symbolic link to a directory above it" in refused(repository.start())


BOUNDS = {
    "deep": (lambda d: (d / "/".join(["d"] * 70)).mkdir(parents=True), "is more than 64 directories deep"),
    "many": (lambda d: make(d / "many", {f"{i}/.mcp.json": "" for i in range(520)}), "it names more than 512 files and directories"),
    "unread": (lambda d: (d / "closed").mkdir(mode=0o711), "'/srv/data/closed' cannot be read"),
}


@pytest.mark.parametrize("bound", BOUNDS)
def test_what_cannot_be_looked_through_starts_no_session_and_the_sentence_says_so(repository, bound):
    make_it, sentence = BOUNDS[bound]
    make_it(repository.base / "data")
    launcher = repository.start()
    assert sentence in refused(launcher)
    # Nobody else is held up by it.
    launcher.control().create("bash")


def test_what_its_owner_has_closed_to_itself_is_looked_into(repository):
    data = repository.base / "data"
    (data / "main/repo/.git").chmod(0)
    control = repository.start().control()
    session = control.create("data")
    code = f"out = [tried(os.chmod, '{REPO}/.git', 0o755), tried(open, '{REPO}/.git/config', 'w')]"
    assert inside(control, session, code) == ["ok", "EROFS"]


def test_a_directory_that_nobody_of_the_session_may_enter_is_passed_over(repository):
    (repository.base / "data/lost+found").mkdir(mode=0o700)
    control = repository.start().control()
    assert len(paths(control, control.create("data"))) == 4


def test_names_hold_by_the_place_that_a_grant_is_taken_from(repository):
    domain(repository, [{"path": "/place", "source": str(repository.base / "data/main/repo/.git"), "access": "read-write"}])
    protect(repository)
    control = repository.start().control()
    session = control.create("data")
    assert inside(control, session, "out = [tried(os.truncate, '/place/' + n, 0) for n in ('config', 'HEAD')]") == ["EROFS", "ok"]


@pytest.mark.parametrize("on", [False, True])
def test_the_home_is_protected_where_the_policy_says_so(repository, on):
    make(repository.home, {".bashrc": "mine\n", "repo/.git/config": "[core]\n"})
    protect(repository, protect_home=on)
    control = repository.start().control()
    session = control.create("data")
    code = "out = [tried(os.truncate, '/home/gem/' + n, 0) for n in ('.bashrc', 'repo/.git/config')]"
    assert inside(control, session, code) == (["EROFS"] * 2 if on else ["ok"] * 2)


def test_the_default_home_is_its_users(fresh):
    make(fresh.home, {".bashrc": "mine\n"})
    control = fresh.start().control()
    assert inside(control, control.create("bash"), "out = tried(os.truncate, '/home/gem/.bashrc', 0)") == "ok"


def test_a_request_adds_names_and_takes_none_away(repository):
    control = repository.start().control()
    session = control.create("data", narrow={"protect": ["HEAD", ".git/config"], "protect_home": True})
    code = f"out = [tried(os.truncate, '{REPO}/.git/' + n, 0) for n in ('HEAD', 'config', 'hooks/pre-commit')]"
    assert inside(control, session, code) == ["EROFS"] * 3
    for narrow in ({"protect": ["/etc"]}, {"protect": ["a/../b"]}, {"protect": [""]}, {"protect": ["a\0b"]}, {"protect": [7]}, {"protect": "a"}):
        assert "/protect" in refused(repository, narrow=narrow)
    assert "can only ask for true" in refused(repository, narrow={"protect_home": False})
    assert "more than 64 names" in refused(repository, narrow={"protect": [f"n{i}" for i in range(60)]})


def end(launcher, control, session):
    control.call("session_destroy", session=session)
    return launcher.records(session)[-1]["auto_run"]


def test_what_is_newly_made_by_a_protected_name_is_on_record(repository):
    control = repository.start().control()
    session = control.create("data")
    control.output(session, "sh", "-ec", "cd /srv/data && mkdir -p new/.git/hooks && touch new/.git/config new/.git/hooks/x free .bashrc")
    told = end(repository, control, session)
    assert told == {"count": 3, "paths": ["/srv/data/.bashrc", "/srv/data/new/.git/config", "/srv/data/new/.git/hooks"]}
    # From then on it is there.
    later = control.create("data")
    assert inside(control, later, "out = tried(open, '/srv/data/new/.git/config', 'w')") == "EROFS"
    assert end(repository, control, later) == {"count": 0, "paths": []}


def test_many_new_ones_are_counted_and_some_are_named(repository):
    control = repository.start().control()
    session = control.create("data")
    control.output(session, "sh", "-ec", "cd /srv/data; for i in $(seq 200); do mkdir d$i; touch d$i/.mcp.json; done")
    told = end(repository, control, session)
    assert told["count"] == 200 and len(told["paths"]) == 50


def test_what_cannot_be_looked_through_at_the_end_is_said(repository):
    control = repository.start().control()
    session = control.create("data")
    control.output(session, "sh", "-ec", "cd /srv/data && mkdir -p $(printf 'd/%.0s' $(seq 70))")
    assert "more than 64 directories deep" in end(repository, control, session)["unknown"]


def test_another_sessions_replacement_ends_the_session_whose_protection_it_took(repository):
    """One of a domain that protects nothing, at the same time: the kernel lets it, and takes the mount away."""
    domain(repository, [writable(repository)], "free")
    control = repository.start().control()
    session, free = control.create("data"), control.create("free")
    control.output(free, "sh", "-ec", f"cd {REPO}/.git && echo new >config.lock && mv config.lock config")
    assert control.event("session_end", session=session)["reason"] == "uncovered"
    assert "protected" in repository.records(session)[-1]["what"] or "mount" in repository.records(session)[-1]["what"]


def test_what_another_session_removes_ends_nobody_and_counts_again_when_it_is_back(repository):
    domain(repository, [writable(repository)], "free")
    control = repository.start().control()
    session, free = control.create("data"), control.create("free")
    control.output(free, "rm", "-r", f"{REPO}/.mcp.json", f"{REPO}/src")
    control.call("attest", session=session)
    control.output(free, "sh", "-ec", f"echo new >{REPO}/.mcp.json")
    assert control.event("session_end", session=session)["reason"] == "uncovered"


def test_two_sessions_protect_the_same_at_once(repository):
    control = repository.start().control()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        sessions = list(pool.map(lambda _: repository.control().create("data") and None, range(8)))
    assert len(sessions) == 8
    session = control.create("data")
    assert inside(control, session, f"out = tried(open, '{REPO}/.git/config', 'w')") == "EROFS"


def test_a_tree_that_is_moved_about_meanwhile_is_protected_or_starts_no_session(repository):
    """By a session that has the grant and protects nothing: each session of `data` either has every name read-only, or is not there."""
    domain(repository, [writable(repository)], "free")
    control = repository.start().control()
    free = control.create("free")
    mover = "import os\nwhile True:\n  os.rename('/srv/data/main', '/srv/data/moved'); os.rename('/srv/data/moved', '/srv/data/main')"
    control.call("session_exec", session=free, argv=["/usr/bin/python3", "-c", mover])
    code = """
found = []
for at, _, files in os.walk('/srv/data'):
    for f in files:
        if os.path.join(at, f).endswith(('/.git/config', '/.mcp.json')) and tried(os.truncate, os.path.join(at, f), 99) == 'ok':
            found.append(os.path.join(at, f))
out = found
"""
    for _ in range(10):
        try:
            found = inside(control, control.create("data"), code)
        except (Refused, AssertionError, json.JSONDecodeError):  # not started, or ended as uncovered
            continue
        assert found == []
    control.call("session_destroy", session=free)
    assert [p.stat().st_size for p in (repository.base / "data").rglob(".git/config")] == [7]


def test_a_session_is_told_of_what_was_there_when_it_began_not_before(repository):
    """None is built ahead: what comes meanwhile is protected in the next one."""
    control = repository.start().control()
    control.create("data")
    make(repository.base / "data/late", {".git/config": "[core]\n"})
    assert inside(control, control.create("data"), "out = tried(open, '/srv/data/late/.git/config', 'w')") == "EROFS"


def test_a_helper_that_cannot_run_starts_no_session(repository):
    (repository.own_programs(repository.base / "programs") / "caisson-protect").write_text("#!/bin/false\n")
    repository.start("--agent", "/usr/bin/true").control().create("bash")
    assert "protect_names" in refused(repository)


def test_caisson_run_protects_what_it_is_granted(repository):
    edit(repository.policies / "run.json", protect=NAMES)
    data = repository.base / "data"
    data.chmod(0o777)
    for path in data.rglob("*"):
        path.chmod(0o777)
    code = f"cd {data}/main/repo; echo ours >config && echo x >.git/config"
    done = cli("--policies", repository.policies, "run", "--grant", f"{data}:rw", "--", "sh", "-c", code)
    assert b"Read-only file system" in done.stderr, done
    assert (data / "main/repo/config").read_text() == "ours\n" and (data / "main/repo/.git/config").read_text() == "[core]\n"


LIAR = """
#include <stdio.h>
#include <unistd.h>
int main(void) {
  lseek(0, 0, SEEK_END);
  static const char said[] = SAID;
  return write(0, said, sizeof said - 1) == sizeof said - 1 ? 0 : 1;
}
"""
LIES = {
    "nothing": ('""', "did not come to its end"),
    "not read-only": (rf'"k{REPO}/.git/config\0.\0"', "not covered"),
    "not mounted": (rf'"r{REPO}/.git/config\0.\0"', "not covered"),
    "not held": (rf'"m{REPO}\0.\0"', "not covered"),
    "no end": (rf'"r{REPO}/.git/config\0"', "did not come to its end"),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_is_said_to_be_protected_is_read_back(repository, lie):
    said, sentence = LIES[lie]
    programs = repository.own_programs(repository.base / "programs")
    (programs / "liar.c").write_text(LIAR)
    command = [c_compiler(), "-static", f"-DSAID={said}", "-o", programs / "caisson-protect", programs / "liar.c"]
    subprocess.run(command, check=True, timeout=60)
    assert sentence in refused(repository.start("--agent", "/usr/bin/true"))


@pytest.mark.parametrize("tier", ["T0", "T2"])
def test_where_nothing_can_be_mounted_no_session_starts_and_the_sentence_says_why(repository, tier):
    protect(repository, name="bash")
    options = () if tier == "T2" else ("--home", "/home/gem")
    repository.start("--agent", "/usr/bin/true", *options, wrapper=places.wrapper(tier, repository.home))
    control = repository.control()
    assert control.hello["tier"] == tier
    if tier == "T2":
        session = control.create("data")
        assert inside(control, session, f"out = tried(open, '{REPO}/.git/config', 'w')") == "EROFS"
        return
    for name in ("bash", "data"):
        assert f"policy '{name}' has 'protect', which needs a mount namespace, tier T2 or T3" in control.hello["refused_domains"][name]
