"""/v1/sandbox/packages: what the interpreters of the sessions have, listed by themselves inside a session."""
import json
import threading

import pytest
from conftest import eventually

DISTRIBUTION = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"


def names(api, language: str) -> dict[str, str]:
    return {p["name"]: p["version"] for p in api.data(f"/v1/sandbox/packages/{language}", method="GET")}


@pytest.fixture(scope="module")
def user_site(api) -> str:
    return api.bash("python3 -c 'import site; print(site.getusersitepackages())'")["stdout"].strip()


@pytest.fixture
def put(api):
    """put(path, text): a file of the workspace, removed at the end."""
    made = []

    def write(path: str, text: str):
        done = api.bash('mkdir -p "$(dirname "$P")" && printf %s "$T" > "$P"', env={"P": path, "T": text})
        assert done["exit_code"] == 0, done
        made.append(path)

    yield write
    for path in made:
        api.bash('rm -rf "$P"', env={"P": path})


def test_python_packages_are_those_that_the_session_s_interpreter_imports(api):
    asked = api.bash("python3 -c \"import importlib.metadata as m; print(*sorted({d.metadata['Name'] for d in m.distributions()}))\"")
    assert set(names(api, "python")) == set(asked["stdout"].split())


def test_a_package_in_the_user_s_home_is_listed_with_its_version(api, put, user_site):
    put(f"{user_site}/caisson_listed-1.2.dist-info/METADATA", DISTRIBUTION.format(name="caisson-listed", version="1.2"))
    assert eventually(lambda: names(api, "python").get("caisson-listed")) == "1.2"


def test_a_module_in_the_working_directory_does_not_stand_for_the_interpreter_s_own(api, put, user_site):
    put("json.py", "raise SystemExit('wrong json')")
    put(f"{user_site}/caisson_later-1.dist-info/METADATA", DISTRIBUTION.format(name="caisson-later", version="1"))
    assert eventually(lambda: names(api, "python").get("caisson-later")) == "1"  # a list that is newer than the file


def test_a_broken_package_is_left_out_and_the_others_are_listed(api, put, user_site):
    put(f"{user_site}/caisson_broken-1.dist-info/METADATA", "no metadata at all")
    put(f"{user_site}/caisson_whole-2.dist-info/METADATA", DISTRIBUTION.format(name="caisson-whole", version="2"))
    assert eventually(lambda: names(api, "python").get("caisson-whole")) == "2"
    assert "caisson-broken" not in names(api, "python")


def test_a_user_s_own_code_cannot_make_the_answer_something_else(api, put, user_site):
    put(f"{user_site}/usercustomize.py", "print('[[\"forged\", 1]]')")
    answer = eventually(lambda: (a := api.http.get("/v1/sandbox/packages/python").json())["success"] is False and a)
    assert answer["data"] is None and "did not print a list of packages" in answer["message"]


def test_nodejs_packages_are_those_of_the_installation_and_of_the_working_directory(api, put):
    put("node_modules/caisson-listed/package.json", json.dumps({"name": "caisson-listed", "version": "3.4.5"}))
    put("node_modules/@caisson/scoped/package.json", json.dumps({"name": "@caisson/scoped", "version": "0.1.0"}))
    put("node_modules/broken/package.json", "{")
    listed = eventually(lambda: (got := names(api, "nodejs")).get("caisson-listed") and got)
    assert (listed["caisson-listed"], listed["@caisson/scoped"]) == ("3.4.5", "0.1.0") and "broken" not in listed


def test_many_who_ask_at_once_share_one_list(api, native):
    """One launcher session for all of them, not one each."""
    logs = native.dir / "audit"

    def sessions() -> int:
        return sum('"label":"python packages"' in log.read_text() for log in logs.glob("s-*.ndjson"))
    eventually(lambda: api.http.get("/v1/sandbox/packages/python").json()["success"])  # what an earlier test left is over
    before, answers = sessions(), []
    threads = [threading.Thread(target=lambda: answers.append(names(api, "python"))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(answers) == 12 and all(a == answers[0] for a in answers)
    assert sessions() - before <= 2


def test_an_interpreter_that_is_not_there_is_said(launch, contract):
    from conftest import Api
    launcher = launch(key=None, CAISSON_AUTH="none")
    policy = launcher.dir / "policies" / "bash.json"
    changed = json.loads(policy.read_text())
    changed["hide"] = ["/usr/lib/caisson", "/usr/bin/caisson", "/usr/bin/node"]
    policy.write_text(json.dumps(changed))
    launcher.restart()
    answer = Api(launcher.url, "", contract).http.get("/v1/sandbox/packages/nodejs").json()
    assert answer["success"] is False and "node" in answer["message"]
