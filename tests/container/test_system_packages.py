"""`system_packages` in the image: what README and policies/README promise of apt-get install, through the API."""

import json
import shutil

import pytest
from conftest import ROOT

BUILD = """set -e
mkdir -p /tmp/p/DEBIAN /tmp/p/usr/bin && cd /tmp
printf 'Package: caisson-example\\nVersion: 1.0\\nArchitecture: all\\nMaintainer: Nobody <nobody@example.test>\\nDescription: x\\n' > p/DEBIAN/control
printf '#!/bin/sh\\necho installed\\n' > p/usr/bin/caisson-example
chmod 755 p/usr/bin/caisson-example
dpkg-deb --build p caisson-example.deb
"""


@pytest.fixture(scope="module")
def installing(start, tmp_path_factory):
    """A container whose bash and code sessions may install packages; mounted as an operator does it."""
    policies = shutil.copytree(ROOT / "policies", tmp_path_factory.mktemp("mounted") / "policies")
    for domain in ("bash", "code"):
        policy = json.loads((policies / f"{domain}.json").read_text())
        policy["system_packages"] = True
        policy["weaken"] = [*policy.get("weaken", []), {"field": "/system_packages", "why": "agents install what they need"}]
        (policies / f"{domain}.json").write_text(json.dumps(policy))
    return start("--", "-v", f"{policies}:/etc/caisson/policies:U")


def test_apt_get_installs_a_package_that_all_domains_with_the_field_have(installing):
    assert installing.bash("id -u; grep CapBnd /proc/self/status")["stdout"].split() == ["0", "CapBnd:", "0" * 16]
    done = installing.bash(BUILD + "apt-get install -y ./caisson-example.deb 2>&1")
    assert done["exit_code"] == 0 and "Setting up caisson-example (1.0)" in done["stdout"], done
    assert installing.bash("caisson-example")["stdout"] == "installed\n"
    code = {"language": "python", "code": "import subprocess\nprint(subprocess.check_output('caisson-example', text=True))"}
    answer = installing.http.post("/v1/code/execute", json=code).json()
    assert "installed" in answer["data"]["stdout"], answer


def test_sudo_apt_get_installs_there(installing):
    done = installing.bash(BUILD + "sudo -E apt-get install -y --reinstall ./caisson-example.deb 2>&1")
    assert done["exit_code"] == 0 and "Setting up caisson-example (1.0)" in done["stdout"], done


def test_domains_without_it_and_the_container_keep_their_system(installing):
    shell = installing.http.post("/v1/shell/exec", json={"command": "ls /usr/bin/caisson-example; id -u"}).json()["data"]["output"]
    assert "No such file" in shell and shell.strip().endswith("1000"), shell
    assert installing.exec("ls", "/usr/bin/caisson-example", check=False).returncode != 0


def test_a_package_of_the_image_is_removed_in_the_copy_alone(installing):
    done = installing.bash("DEBIAN_FRONTEND=noninteractive apt-get remove -y less 2>&1; less --version")
    assert done["exit_code"] == 127, done
    assert installing.exec("less", "--version").returncode == 0
