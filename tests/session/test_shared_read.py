"""A home and a /tmp of the workspace to be read, with one directory that stays writable; and a directory in the workspace's memory that
only those sessions share whose policies name it."""

import json
import os

import pytest
from harness import Refused, cli, edit, eventually, inside


@pytest.fixture(scope="module")
def both(launcher):
    """A browser and a shell of one workspace, and its control."""
    control = launcher.control()
    control.call("workspace_create", name="pages")
    yield control, control.create("browser", workspace="pages"), control.create("bash", workspace="pages")
    control.call("workspace_destroy", workspace="pages")


def test_what_other_sessions_wrote_is_read(both):
    control, browser, shell = both
    control.output(shell, "/bin/sh", "-c", "echo page > ~/page.html; echo page > /tmp/page.html; mkdir -p ~/site; echo deep > ~/site/index.html")
    assert control.output(browser, "/bin/cat", "/home/gem/page.html", "/tmp/page.html", "/home/gem/site/index.html") == "page\npage\ndeep\n"


@pytest.mark.parametrize("path", ["/home/gem/.bashrc", "/home/gem/new", "/home/gem/site/index.html", "/tmp/new", "/tmp/page.html"])
def test_nothing_of_it_is_written(both, path):
    control, browser, shell = both
    control.output(shell, "/bin/sh", "-c", "mkdir -p ~/site; touch ~/site/index.html /tmp/page.html")
    assert inside(control, browser, f"out = tried(open, {path!r}, 'a')") == "EROFS"
    assert inside(control, shell, f"out = tried(lambda: open({path!r}, 'a').close())") == "ok"


@pytest.mark.parametrize("change", ["os.rename('/home/gem/site', '/home/gem/Downloads/site')", "os.mkdir('/home/gem/x')", "os.symlink('/etc', '/home/gem/x')",
                                    "os.chmod('/home/gem/page.html', 0o777)", "os.utime('/home/gem/page.html')", "os.remove('/tmp/page.html')",
                                    "os.link('/home/gem/page.html', '/home/gem/Downloads/page.html')", "os.setxattr('/home/gem/page.html', 'user.x', b'x')"])  # fmt: skip
def test_nor_changed_otherwise(both, change):
    control, browser, shell = both
    control.output(shell, "/bin/sh", "-c", "mkdir -p ~/site; touch ~/page.html /tmp/page.html")
    assert inside(control, browser, f"out = tried(lambda: {change})") in ("EROFS", "EXDEV")


def test_downloads_are_the_workspaces(both):
    control, browser, shell = both
    assert inside(control, browser, "out = open('/home/gem/Downloads/file', 'w').write('content')") == 7
    assert control.output(shell, "/bin/sh", "-c", "cat ~/Downloads/file; stat -c %u ~/Downloads; echo more >> ~/Downloads/file; cat ~/Downloads/file") == (
        "content1000\ncontentmore\n")
    assert inside(control, browser, "out = [tried(os.execv, '/home/gem/Downloads/file', ['x'])]") == ["EACCES"]


def test_the_directory_itself_cannot_be_moved_from_inside(both):
    control, browser, _ = both
    assert inside(control, browser, "out = [tried(os.rename, '/home/gem/Downloads', '/home/gem/x'), tried(os.rmdir, '/home/gem/Downloads')]") == ["EROFS", "EROFS"]


def test_a_browser_outlives_its_downloads(both):
    """What is left is less."""
    control, _, shell = both
    browser = control.create("browser", workspace="pages")
    control.output(shell, "/bin/sh", "-c", "rm -r ~/Downloads")
    eventually(lambda: inside(control, browser, "out = tried(open, '/home/gem/Downloads/x', 'w')") in ("EROFS", "ENOENT"), what="it is gone")
    again = control.create("browser", workspace="pages")
    assert inside(control, again, "out = tried(lambda: open('/home/gem/Downloads/x', 'w').close())") == "ok"


@pytest.mark.parametrize("instead", ["ln -s /tmp ~/Downloads", "echo x > ~/Downloads", "ln -s /nowhere ~/Downloads"])
def test_something_else_in_its_place_starts_no_session_and_says_so(launcher, instead):
    control = launcher.control()
    control.call("workspace_create", name="replaced")
    shell = control.create("bash", workspace="replaced")
    control.output(shell, "/bin/sh", "-c", f"rm -rf ~/Downloads; {instead}")
    with pytest.raises(Refused, match="home:Downloads"):
        control.create("browser", workspace="replaced")
    control.output(shell, "/bin/sh", "-c", "rm -f ~/Downloads")
    control.create("browser", workspace="replaced")
    control.call("workspace_destroy", workspace="replaced")


SERVE = "s = socket.socket(socket.AF_UNIX); s.bind('/tmp/.X11-unix/X99'); s.listen(); print('ready', flush=True); signal.pause()"
CONNECT = "out = tried(socket.socket(socket.AF_UNIX).connect, '/tmp/.X11-unix/X99')"


def test_two_domains_share_a_directory_and_no_other_has_it(launcher):
    control = launcher.control()
    for name in ("one", "two"):
        control.call("workspace_create", name=name)
    desktop = control.create("desktop", workspace="one")
    _, fds = control.start(desktop, "/usr/bin/python3", "-I", "-c", f"import signal, socket\n{SERVE}")
    assert os.read(fds[1], 10) == b"ready\n"
    assert inside(control, control.create("browser", workspace="one"), CONNECT) == "ok"
    # A shell sees the directory that the browser's mount lies on, and it is empty.
    for domain, workspace in (("bash", "one"), ("file", "one"), ("browser", "two"), ("desktop", "two")):
        assert inside(control, control.create(domain, workspace=workspace), CONNECT) == "ENOENT", (domain, workspace)
    found = inside(control, control.create("bash", workspace="one"), "out = [os.path.join(d, n) for d, _, names in os.walk('/tmp') for n in names]")
    assert not [path for path in found if "X99" in path]
    for name in ("one", "two"):
        control.call("workspace_destroy", workspace=name)


def test_the_default_workspace_has_it_too(launcher):
    control = launcher.control()
    browser = control.create("browser")
    assert inside(control, browser, "out = open('/home/gem/Downloads/file', 'w').write('x')") == 1
    assert control.output(control.create("bash"), "/bin/cat", "/home/gem/Downloads/file") == "x"


@pytest.mark.parametrize("field", ["home", "tmp"])
def test_a_request_gets_none_of_its_own_instead(launcher, field):
    with pytest.raises(Refused, match="one of the session's own is written to"):
        launcher.control().create("browser", narrow={field: "private"})


def test_where_the_home_is_elsewhere_so_is_what_is_taken_from_it(fresh):
    edit(fresh.policies / "base.json", home_path="/srv/desk")
    control = fresh.start("--agent", "/usr/bin/true").control()
    session = control.create("browser")
    assert inside(control, session, "out = [tried(lambda: open(f'/srv/desk/{p}x', 'w').close()) for p in ('Downloads/', '')]") == ["ok", "EROFS"]


@pytest.mark.parametrize("grant, fault", [
    ({"path": "/home/gem/Downloads", "source": "home:Downloads", "access": "read-write"}, 'needs "required": false'),
    ({"path": "/home/gem/Downloads", "source": "home:Downloads", "required": False}, 'needs "access": "read-write"'),
    ({"path": "/home/gem/x", "source": "home:../x", "access": "read-write", "required": False}, "'.' or '..'"),
    ({"path": "/tmp/x", "source": "workspace:tmp/../display", "access": "read-write", "required": False}, "no such directory"),
    ({"path": "/srv/x", "source": "workspace:display", "access": "read-write", "required": False}, "lies outside /tmp"),
    ({"path": "/tmp/x", "source": "workspace:", "access": "read-write", "required": False}, "no such directory"),
])  # fmt: skip
def test_a_grant_that_means_nothing_is_refused_where_it_stands(fresh, grant, fault):
    policy = json.loads((fresh.policies / "browser.json").read_text())
    edit(fresh.policies / "browser.json", grants=[grant],
         weaken=[w for w in policy["weaken"] if not w["field"].startswith("/grants")] + [{"field": "/grants" + grant["path"], "why": "a test of faults"}])
    done = cli("policy", "check", str(fresh.policies))
    assert done.returncode != 0 and fault in (done.stdout + done.stderr).decode()
