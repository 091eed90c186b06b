"""The cases of path grants, one table with two columns: what a program in the shell gets, and what the file API gets for the same path.
No row may differ. The numbers are those of the list of cases in the design of path grants."""
import json
import os
import shutil

import pytest
from conftest import Api
from launcher_process import WORKSPACE_UID, Launcher

# In a session of the domain bash: prints ok, or the name of the errno.
SHELL = """
import errno, os, sys
operation, path = sys.argv[1], sys.argv[2]
try:
    if operation == 'read': open(path).read(1)
    elif operation == 'write': os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644))
    elif operation == 'change': os.close(os.open(path, os.O_RDWR))
    elif operation == 'list': os.listdir(path)
    print('ok')
except OSError as why:
    print(errno.errorcode[why.errno])
"""

# case, operation, path, what both must give (None: the same, whichever)
CASES = [
    ("1 4097 bytes", "read", "/home/gem/" + "x" * 4090, "ENAMETOOLONG"),
    ("1 4097 bytes", "write", "/home/gem/" + "x/" * 2048, None),
    ("3 under no grant", "read", "/etc/caisson/policies/base.json", "ENOENT"),
    ("3 under no grant", "list", "/root", "ENOENT"),
    ("3 under no grant", "list", "/var/log", "ENOENT"),
    ("3 under no grant", "write", "/outside", None),
    ("3 under no grant", "read", "/srv/secret/key", "ENOENT"),
    ("4 read-only", "read", "/srv/ro/file", "ok"),
    ("4 read-only", "list", "/srv/ro", "ok"),
    ("4 read-only", "write", "/srv/ro/file", None),
    ("4 read-only", "write", "/srv/ro/new", None),
    ("4 read-only", "write", "/usr/bin/env", None),
    ("5 alias into read-only", "read", "~/to-ro/file", "ok"),
    ("5 alias into read-only", "write", "~/to-ro/file", None),
    ("5 alias into read-only", "write", "~/file-of-ro", None),
    ("6 link to granted", "list", "~/to-rw", "ok"),
    ("6 link to granted", "write", "~/to-rw/through-a-link", "ok"),
    ("6 link to ungranted", "list", "~/to-root", "ENOENT"),
    ("6 link to ungranted", "read", "~/to-root/x", "ENOENT"),
    ("6 link to ungranted", "write", "~/to-secret", None),
    ("6 link to ungranted", "list", "~/to-secret", "ENOENT"),
    ("7 read-only in read-write", "read", "/srv/rw/frozen/file", "ok"),
    ("7 read-only in read-write", "write", "/srv/rw/frozen/file", None),
    ("7 read-write in read-only", "write", "/srv/ro/open/new", "ok"),
    ("7 beside it", "write", "/srv/rw/new", "ok"),
    ("9 dot dot", "read", "~/pkg/../inside", "ok"),
    ("9 dot dot", "write", "~/pkg/../inside", "ok"),
    ("9 dot dot", "read", "~/../../etc/shadow", "ENOENT"),
    ("9 dot dot", "write", "~/../escape.txt", None),
    ("9 dot dot", "write", "~/pkg/../../x", None),
    ("10 cycle", "read", "~/cycle-a", "ELOOP"),
    ("10 cycle", "write", "~/cycle-a", "ELOOP"),
    ("10 cycle", "list", "~/cycle-a/x", "ELOOP"),
    ("10 chain of 64", "read", "~/chain-64", "ELOOP"),
    ("11 system files", "read", "/etc/shadow", "ENOENT"),
    ("11 system files", "read", "/etc/passwd", "ok"),
    ("11 system files", "write", "/etc/passwd", None),
    ("11 system files", "write", "/usr/local/x", None),
    ("15 under a symlinked parent", "write", "~/to-root/member", "ENOENT"),
    ("17 grant on a file", "read", "/srv/one-file", "ok"),
    ("17 grant on a file", "write", "/srv/one-file", None),
    ("17 grant on what is not there", "read", "/srv/absent", "ENOENT"),
]


class Granted(Launcher):
    """A launcher whose policies grant directories beyond the shipped ones, read-only and read-write within each other."""

    def start(self):
        host = self.dir / "granted"
        if not host.exists():
            for name in ("ro/open", "rw/frozen", "secret"):
                (host / name).mkdir(parents=True)
            for name in ("ro/file", "rw/frozen/file", "secret/key", "one-file"):
                (host / name).write_text("content\n")
            for path in [host, *host.rglob("*")]:
                os.chown(path, WORKSPACE_UID, WORKSPACE_UID)
            policy = json.loads((self.dir / "policies/base.json").read_text())
            policy["grants"] += [{"path": f"/srv/{name}", "source": str(host / name), "access": access, "required": name != "absent",
                                  "description": "of a test"}
                                 for name, access in (("ro", "read"), ("ro/open", "read-write"), ("rw", "read-write"),
                                                      ("rw/frozen", "read"), ("one-file", "read"), ("absent", "read"))]
            (self.dir / "policies/base.json").write_text(json.dumps(policy))
        super().start()


@pytest.fixture(scope="module")
def granted(request, contract):
    if "CAISSON_URL" in os.environ:
        pytest.skip("the server under test is not a process of this host (CAISSON_URL)")
    request.getfixturevalue("launch")  # skips, or fails, where no launcher can be started
    launcher = Granted()
    api = Api(launcher.url, launcher.key, contract)
    api.launcher = launcher
    api.bash("""cd ~ && mkdir pkg && echo x > inside && ln -s /srv/ro to-ro && ln -s /srv/rw to-rw && ln -s /root to-root
        ln -s /srv/ro/file file-of-ro; ln -s /srv/secret/new to-secret; ln -s cycle-b cycle-a; ln -s cycle-a cycle-b
        echo end > chain-0; for i in $(seq 64); do ln -s chain-$((i - 1)) chain-$i; done""")
    yield api
    launcher.close()


def by_the_shell(api, operation, path):
    done = api.bash("python3 -c \"$PROGRAM\" \"$OPERATION\" \"$TARGET\"", env={"PROGRAM": SHELL, "OPERATION": operation, "TARGET": path})
    return done["stdout"].strip()


def edit(api, command, path, **more):
    return api.post("/v1/file/str_replace_editor", {"command": command, "path": path, **more})


def by_the_api(api, operation, path):
    """What every operation of that kind gives; one word, as all of them must agree."""
    def file(name, body):
        return api.post(f"/v1/file/{name}", body)

    if operation == "read":
        answers = [file("read", {"file": path}), file("search", {"file": path, "regex": "content"}), edit(api, "view", path),
                   file("grep", {"path": path, "pattern": "content"}), api.http.get("/v1/file/download", params={"path": path})]
    elif operation == "write":
        answers = [file("write", {"file": path, "content": "", "append": True}),
                   api.http.post("/v1/file/upload", data={"path": path}, files={"file": ("upload", b"content\n")})]
    elif operation == "change":
        answers = [file("replace", {"file": path, "old_str": "content", "new_str": "content"}),
                   edit(api, "insert", path, insert_line=0, new_str="content")]
    else:
        answers = [file("list", {"path": path}), file("glob", {"path": path, "pattern": "*"}), file("find", {"path": path, "glob": "*"}),
                   file("grep", {"path": path, "pattern": "content"}), file("watch", {"path": path}), edit(api, "view", path)]
    outcomes = []
    for answer in answers:
        if not answer.headers["content-type"].startswith("application/json") or answer.json()["success"]:
            outcomes.append("ok")
        else:
            told = answer.json()["data"]["path"]
            assert told == path or (len(path) > 4096 and path.startswith(told))  # an upload does not keep all of such a path
            outcomes.append(answer.json()["data"]["errno_name"])
    return "/".join(sorted(set(outcomes)))


def test_shell_and_file_api_give_the_same_for_every_case(granted):
    rows = []
    # What must not be made must not be changed either, and what has been made can be.
    changes = [(case, "change", path, wanted) for case, operation, path, wanted in CASES if operation == "write"]
    for case, operation, path, wanted in CASES + changes:
        path = path.replace("~", "/home/gem")
        rows.append((case, operation, path[:48], wanted, by_the_shell(granted, operation, path), by_the_api(granted, operation, path)))
    print()
    for case, operation, path, _, shell, api in rows:
        print(f"{case:32} {operation:6} {path:48} {shell:14} {api}")
    assert [row for row in rows if row[4] != row[5] or row[3] not in (None, row[4])] == []
    denied = [row for row in rows if row[3] is None]
    assert [row for row in denied if row[4] == "ok"] == []


def test_case_8_a_link_stays_a_link_and_its_target_gets_the_bytes(granted):
    granted.bash("cd ~ && echo old > target && ln -sf target alias")
    granted.data("/v1/file/write", {"file": "/home/gem/alias", "content": "new"})
    assert granted.bash("cd ~ && readlink alias && cat target && rm alias && cat target")["stdout"] == "target\nnewnew"


def test_case_15_members_of_archives_do_not_leave_the_grants(granted):
    """A member under a symlinked parent, an absolute one, and one that climbs: by tar as by an upload of the same name."""
    made = """
import io, os, tarfile
os.chdir('/home/gem')
with tarfile.open('a.tar', 'w') as tar:
    for name in ('to-root/member', '/outside-member', '../../outside-member'):
        member = tarfile.TarInfo(name); member.size = 1
        tar.addfile(member, io.BytesIO(b'x'))
"""
    done = granted.bash('python3 -c "$PROGRAM" && cd ~ && tar -x --absolute-names -f a.tar; echo "status $?"', env={"PROGRAM": made})
    assert "status 2" in done["stdout"]
    for path in ("/home/gem/to-root/member", "/outside-member", "/home/gem/../../outside-member"):
        answer = granted.http.post("/v1/file/upload", data={"path": path}, files={"file": ("upload", b"x")}).json()
        assert answer["success"] is False and answer["data"]["errno_name"]
    assert granted.bash("ls /outside-member /root/member 2>&1; true")["stdout"].count("No such file") == 2


def test_case_18_sessions_that_run_keep_what_was_granted(granted):
    """The directory behind a grant is replaced: sessions that run see the old one, others the old or the new one."""
    session = granted.data("/v1/bash/sessions/create")["session_id"]
    shell = lambda **more: granted.bash("cat /srv/rw/frozen/file", **more)["stdout"]  # noqa: E731
    read = lambda: granted.data("/v1/file/read", {"file": "/srv/rw/frozen/file"})["content"]  # noqa: E731
    assert (shell(session_id=session), read()) == ("content\n", "content\n")
    host = granted.launcher.dir / "granted"
    (host / "rw").rename(host / "rw-before")
    try:
        (host / "rw" / "frozen").mkdir(parents=True)
        (host / "rw" / "frozen" / "file").write_text("replaced\n")
        assert (shell(session_id=session), read()) == ("content\n", "content\n")
        assert shell() in ("content\n", "replaced\n")
    finally:
        shutil.rmtree(host / "rw")
        (host / "rw-before").rename(host / "rw")
        granted.post(f"/v1/bash/sessions/{session}/close")


def test_case_9_and_11_nothing_was_left_outside(granted):
    assert granted.bash("ls -A /home /srv/secret 2>&1; ls /outside /home/escape.txt 2>&1; true")["stdout"].count("gem\n") == 1


def test_case_11_passwd_is_the_sessions_own(granted):
    text = granted.data("/v1/file/read", {"file": "/etc/passwd"})["content"]
    assert text == granted.bash("cat /etc/passwd")["stdout"] and len(text.splitlines()) == 3


def test_case_13_and_14_no_key_is_to_be_found(granted):
    for path in ("/proc/self/environ", "/proc/1/environ", "/proc/self/cmdline"):
        answer = granted.post("/v1/file/grep", {"path": path, "pattern": granted.key, "fixed_strings": True}).json()
        assert not answer["success"] or answer["data"]["match_count"] == 0
        read = granted.post("/v1/file/read", {"file": path}).json()
        assert granted.key not in json.dumps(read)
