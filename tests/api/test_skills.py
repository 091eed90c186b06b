"""/v1/skills: what is registered, from where, what its commands did, and archives that were made to do harm."""
import io
import os
import stat
import zipfile

import pytest
import sdk
from conftest import Api
from successor import kill_agent

REGISTER, LIST = "/v1/skills/register", "/v1/skills/metadatas"
MD = "---\nname: {name}\ndescription: Says {name}\n---\n# {name}\n\nDo it.\n"


def archive(*entries) -> bytes:
    """entries: (name or ZipInfo, content)."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in entries:
            file.writestr(name, content)
    return out.getvalue()


def md(name: str, front="") -> str:
    return MD.format(name=name).replace("\n---\n#", f"\n{front}---\n#")


def post(api, file=None, filename="skill.zip", headers=None, **fields):
    form = {name: (None, value) for name, value in fields.items()}
    if file is not None:
        form["file"] = (filename, file if isinstance(file, bytes) else file.encode())
    return api.http.post(REGISTER, files=form, headers=headers)


def register(api, *arguments, **options) -> list[dict]:
    answer = post(api, *arguments, **options)
    assert answer.status_code == 200 and answer.json()["success"], answer.text
    data = answer.json()["data"]
    assert data["count"] == len(data["registered"])
    return data["registered"]


def refused(api, *arguments, **options) -> str:
    answer = post(api, *arguments, **options)
    assert answer.status_code == 200 and answer.json()["success"] is False, answer.text
    return answer.json()["message"]


def names(api, query="") -> list[str]:
    answer = api.http.get(LIST + query).json()
    assert answer["success"], answer
    return [one["name"] for one in answer["data"]["skills"]]


@pytest.fixture(autouse=True)
def none_before(api):
    assert api.http.delete("/v1/skills").json()["success"]


def test_one_file(api):
    [skill] = register(api, md("report"), "SKILL.md")
    assert skill == {"name": "report", "path": "/home/gem/skills/report", "metadata": {"name": "report", "description": "Says report"},
                     "dependency_commands": []}
    assert api.data(LIST, method="GET") == {"skills": [skill]}
    assert api.data("/v1/skills/report/content", method="GET") == {"name": "report", "path": skill["path"], "content": "# report\n\nDo it.\n"}
    assert api.bash("cat ~/skills/report/SKILL.md")["stdout"] == md("report")
    assert api.data("/v1/skills/report", method="DELETE") == skill
    assert names(api) == [] and api.bash("ls -A -I .results ~/skills")["stdout"] == ""


def test_an_archive_with_several_and_their_files(api):
    tool = zipfile.ZipInfo("pack/b/run.sh")
    tool.create_system, tool.external_attr = 3, (stat.S_IFREG | 0o755) << 16
    data = archive(("pack/a/SKILL.md", md("first")), ("pack/b/SKILL.md", md("second")), (tool, "echo ran"), ("pack/b/docs/more.md", "more"),
                   ("README.md", "not of a skill"), ("__MACOSX/pack/._a", "x"))
    assert [one["name"] for one in register(api, data)] == ["first", "second"]
    assert api.bash("cd ~/skills/second && ls && ./run.sh && cat docs/more.md")["stdout"] == "SKILL.md\ndocs\nrun.sh\nran\nmore"
    assert names(api) == ["first", "second"] and names(api, "?names=second,none") == ["second"]
    assert api.data("/v1/skills", method="DELETE") == {"deleted": ["first", "second"]}


def test_names_come_from_the_form_the_front_matter_or_the_file(api):
    assert register(api, md("inside"), "SKILL.md", name="given")[0]["name"] == "given"
    assert register(api, "# no front matter", "plain.md")[0] | {"path": ""} == {"name": "plain", "path": "", "metadata": {}, "dependency_commands": []}
    assert register(api, archive(("SKILL.md", "# x")), "packed.zip")[0]["name"] == "packed"
    assert register(api, archive(("folder/SKILL.md", "# x")), "packed.zip")[0]["name"] == "folder"


def test_a_path_in_the_workspace(api):
    api.bash("mkdir -p ~/src/one ~/src/two && cd ~/src && printf -- '---\\nname: one\\n---\\nA' >one/SKILL.md && echo B >two/SKILL.md")
    assert [one["name"] for one in register(api, path="src")] == ["one", "two"]
    assert register(api, path="~/src/two", name="renamed")[0]["path"] == "/home/gem/skills/renamed"
    assert register(api, path="/home/gem/src/one/SKILL.md")[0]["name"] == "one"
    assert register(api, b"", "", path="src/two")[0]["name"] == "two", "an empty file is none: the SDK cannot leave it out"
    api.bash("mkdir ~/skills/placed && echo C >~/skills/placed/SKILL.md")
    assert register(api, path="skills/placed")[0]["path"] == "/home/gem/skills/placed"
    assert names(api) == ["one", "placed", "renamed", "two"]
    assert "/etc/shadow" in refused(api, path="/etc/shadow")
    assert "has a SKILL.md" in refused(api, path="/usr/share")
    api.bash("cd ~/src/one && ln -s /etc/passwd link")
    assert "is a link" in refused(api, path="src/one")


def test_commands_run_confined_and_their_results_stay(api):
    front = "dependency_commands:\n  - [sh, -c, 'pwd; id -u >ran; echo warned >&2']\n  - sh -c 'echo no; exit 3'\n  - no-such-program\n"
    answer = post(api, archive(("SKILL.md", md("needy", front)), ("requirements.txt", "no-such-package-of-ours==1\n")))
    [skill] = answer.json()["data"]["registered"]
    first, second, third, pip = skill["dependency_commands"]
    assert first == {"command": ["sh", "-c", "pwd; id -u >ran; echo warned >&2"], "success": True, "stdout": "/home/gem/skills/needy\n",
                     "stderr": "warned\n"}
    assert (second["success"], second["stdout"]) == (False, "no\n")
    assert third["success"] is False and "no-such-program is not installed" in third["stderr"]
    assert pip["command"] == ["pip", "install", "-r", "requirements.txt"] and pip["success"] is False
    assert "a command for what they need failed" in answer.json()["hint"]
    assert api.data(LIST, method="GET")["skills"] == [skill]
    assert api.bash("cat ~/skills/needy/ran; id -u")["stdout"].split()[0] == api.bash("id -u")["stdout"].strip(), "as the workspace's user"
    assert register(api, md("needy"), "SKILL.md")[0]["dependency_commands"] == [], "a new one has nothing of the old one"
    assert api.bash("ls ~/skills/needy")["stdout"] == "SKILL.md\n"


def link(name: str):
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return info


def encrypted() -> bytes:
    data = bytearray(archive(("SKILL.md", "x")))
    for signature, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(signature) + at] |= 1
    return bytes(data)


def twice() -> bytes:
    with pytest.warns(UserWarning):
        return archive(("SKILL.md", "a"), ("SKILL.md", "b"))


HOSTILE = {
    "zip slip": (lambda: archive(("SKILL.md", "x"), ("../../../tmp/out", "x")), "leads out of its folder"),
    "slip inside a name": (lambda: archive(("SKILL.md", "x"), ("a/../../b", "x")), "leads out of its folder"),
    "absolute name": (lambda: archive(("SKILL.md", "x"), ("/etc/cron.d/x", "x")), "is absolute"),
    "drive": (lambda: archive(("SKILL.md", "x"), ("C:/x", "x")), "is absolute"),
    "backslash": (lambda: archive(("SKILL.md", "x"), ("..\\..\\x", "x")), "has a backslash"),
    "control character": (lambda: archive(("SKILL.md", "x"), ("a\nb", "x")), "control character"),
    "symbolic link": (lambda: archive(("SKILL.md", "x"), (link("passwd"), "/etc/passwd")), "is a link"),
    "link to a folder, and a file in it": (lambda: archive(("SKILL.md", "x"), (link("d"), "/tmp"), ("d/x", "x")), "is a link"),
    "SKILL.md is a link": (lambda: archive((link("SKILL.md"), "/etc/passwd")), "is a link"),
    "a hundred thousand entries": (lambda: archive(("SKILL.md", "x"), *((str(n), b"") for n in range(100_000))), "more than 10000 entries"),
    "same entry twice": (twice, "twice"),
    "file and folder": (lambda: archive(("SKILL.md", "x"), ("a", "x"), ("a/b", "x")), "both as a file and as a folder"),
    "bomb": (lambda: archive(("SKILL.md", "x"), ("zeros", b"\0" * (65 << 20))), "when unpacked"),
    "lying bomb": (lambda: archive(("SKILL.md", "x"), ("zeros", b"\0" * (9 << 20))).replace((9 << 20).to_bytes(4, "little"), b"\1\0\0\0"),
                   "cannot be unpacked"),
    "deep": (lambda: archive(("SKILL.md", "x"), ("d/" * 40 + "x", "x")), "folders deep"),
    "encrypted": (encrypted, "encrypted"),
    "no SKILL.md": (lambda: archive(("README.md", "x")), "has no SKILL.md"),
    "two of one name": (lambda: archive(("a/SKILL.md", md("same")), ("b/SKILL.md", md("same"))), "two skills have the name"),
    "damaged": (lambda: archive(("SKILL.md", "x"))[:-30], "no zip archive"),
    "bytes that are no text": (lambda: archive(("SKILL.md", b"\xff\xfe\0")), "not UTF-8"),
    "large SKILL.md": (lambda: archive(("SKILL.md", "x" * (2 << 20))), "larger than 1048576"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_archive_leaves_nothing(api, case):
    make, words = HOSTILE[case]
    register(api, md("before"), "SKILL.md")
    assert words in refused(api, make())
    assert names(api) == ["before"] and api.bash("ls -A -I .results ~/skills; ls /tmp/out 2>/dev/null")["stdout"] == "before\n"


@pytest.mark.parametrize("front, words", [
    ("name: [", "line 3"), ("a: b: c", "no YAML"), ("- a\n- b", "no mapping"), ("name: a\nname: b", "there twice"),
    ("a: &x [1]\nb: *x", "aliases"), ("a: !!python/object/apply:os.system ['touch /tmp/owned']", "no YAML"),
    ("a: " + "[" * 5000, "nested"), ("a: 2026-99-99", "no YAML"), ("a: " + "x" * 70_000, "longer than 65536"), ("a: " + "9" * 5000, "no YAML"),
    ("? [a]\n: b", "a key is a list"), ("name: ../up", "cannot have the name"), ("name: .hidden", "cannot have the name"),
    ("name: a/b", "cannot have the name"), ("name: 7", "cannot have the name"), ("name: n\ndependency_commands: rm -rf", "a list of at most"),
    ("name: n\ndependency_commands: [\"echo 'open\"]", "quotes do not close"), ("name: n\ndependency_commands: [[1]]", "a list of words")])
def test_bad_front_matter_says_what_is_wrong(api, front, words):
    said = refused(api, f"---\n{front}\n---\nbody", "skill.md")
    assert words in said, said
    assert "has no name" in refused(api, "# x", "SKILL.md")
    assert "no end" in refused(api, "---\nname: a\n", "SKILL.md")
    assert names(api) == [] and api.bash("ls /tmp/owned 2>/dev/null")["stdout"] == ""


def test_values_of_front_matter_are_json(api):
    [skill] = register(api, "---\nname: v\ndate: 2026-01-02\nbig: 99999999999999999999\nnan: .nan\n1: {a: [null, true]}\nlone: \"\\ud800\"\n---\n", "v.md")
    assert skill["metadata"] == {"name": "v", "date": "2026-01-02", "big": "99999999999999999999", "nan": "nan", "1": {"a": [None, True]},
                                 "lone": "?"}


def test_what_a_request_lacks(api):
    assert "Nothing to register" in refused(api, name="x")
    assert "not both" in refused(api, md("a"), "SKILL.md", path="src")
    assert "one name for all" in refused(api, archive(("a/SKILL.md", "x"), ("b/SKILL.md", "x")), name="n")
    assert "Nothing to register" in api.http.post(REGISTER).json()["message"]
    assert "larger than" in refused(api, os.urandom((16 << 20) + 1000))
    assert 'no skill \\"none\\"' in api.http.get("/v1/skills/none/content").text
    for name in ("..", "%2e%2e", ".staging-x", "a%2Fb"):
        answer = api.http.delete(f"/v1/skills/{name}")
        assert answer.status_code in (400, 404, 405) or answer.json()["success"] is False or name == ".."


def test_a_session_cannot_make_the_listing_read_elsewhere(api):
    register(api, md("good"), "SKILL.md")
    api.bash("cd ~/skills && ln -s /etc etc && mkdir linked pipe broken && ln -s /etc/passwd linked/SKILL.md && mkfifo pipe/SKILL.md && "
             "printf -- '---\\n[' >broken/SKILL.md && mkdir .results; ln -s /etc/passwd .results/good.json")
    answer = api.http.get(LIST).json()
    assert [one["name"] for one in answer["data"]["skills"]] == ["good"] and "broken: " in answer["hint"]
    for name in ("etc", "linked", "pipe"):
        assert api.http.get(f"/v1/skills/{name}/content").json()["success"] is False
    api.bash("rm -rf ~/skills/*  ~/skills/.results")


def test_skills_of_one_workspace_are_not_anothers(api, named):
    """They live in its home, and end with it."""
    other = named()
    register(api, md("default-only"), "SKILL.md")
    assert names(other) == []
    register(other, md("theirs"), "SKILL.md")
    assert names(other) == ["theirs"] and names(api) == ["default-only"]
    assert other.http.get("/v1/skills/default-only/content").json()["success"] is False


def test_they_survive_agent_and_launcher_and_may_lie_elsewhere(launch, contract):
    launcher = launch(AIO_SKILLS_PATH="my/own skills")
    api = Api(launcher.url, launcher.key, contract)
    front = "dependency_commands: ['echo installed']\n"
    [skill] = register(api, md("lasting", front), "SKILL.md")
    assert skill["path"] == "/home/gem/my/own skills/lasting" and skill["dependency_commands"][0]["stdout"] == "installed\n"
    kill_agent(launcher)
    assert api.data(LIST, method="GET")["skills"] == [skill]
    launcher.restart()
    again = Api(launcher.url, launcher.key, contract)
    assert again.data(LIST, method="GET")["skills"] == [skill]
    assert "Do it." in again.data("/v1/skills/lasting/content", method="GET")["content"]


def test_scopes(api):
    def answers(scopes):
        token = api.data("/v1/tokens", {"label": f"skills {scopes}", "scopes": scopes, "seconds": 60})["token"]
        headers = {"X-AIO-API-Key": token}
        return api.http.get(LIST, headers=headers).status_code, post(api, md("s"), "SKILL.md", headers=headers).status_code
    assert answers(["skills"]) == (200, 200) and answers(["skills:read"]) == (200, 403) and answers(["file", "bash"]) == (403, 403)


def test_the_sdk(api, contract):
    pytest.importorskip("agent_sandbox", reason="the SDK is not installed (scripts/test does it)")
    skills = sdk.Recorded(sdk.sandbox_of(api).skills, "skills", contract)
    done = skills.register_skills(file=("pack.zip", archive(("a/SKILL.md", md("alpha")), ("b/SKILL.md", md("beta"))))).data
    assert done.count == 2 and done.registered[0].metadata["description"] == "Says alpha"
    api.bash("mkdir -p ~/more/gamma && echo G >~/more/gamma/SKILL.md")
    assert skills.register_skills(file=b"", path="more/gamma").data.registered[0].name == "gamma"
    assert [one.name for one in skills.list_metadata().data.skills] == ["alpha", "beta", "gamma"]
    assert [one.name for one in skills.list_metadata(names="beta").data.skills] == ["beta"]
    assert skills.get_content("alpha").data.content == "# alpha\n\nDo it.\n"
    assert skills.delete_skill("alpha").data.name == "alpha"
    assert skills.clear_skills().success and skills.list_metadata().data.skills == []
    assert skills.uncalled() == {"with_raw_response"} or not skills.uncalled()
