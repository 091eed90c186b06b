"""The image: who may read and write what, what is in it, what is not."""
import json

import pytest

from conftest import sh


@pytest.fixture(scope="module")
def inside(engine, image, served):
    """Runs a shell line in the image's file system as container root."""
    return lambda line: served.exec("sh", "-c", line).stdout.strip()


@pytest.mark.parametrize("path, expected", [
    ("/usr/lib/caisson", "755 root:root"),
    ("/usr/lib/caisson/caisson-launcher", "755 root:root"),
    ("/usr/lib/caisson/caisson-init", "755 root:root"),
    ("/usr/lib/caisson/caisson-auditor", "755 root:root"),
    ("/usr/lib/caisson/caisson-homes", "755 root:root"),
    ("/usr/lib/caisson/caisson-logs", "755 root:root"),
    ("/usr/lib/caisson/caisson-system", "755 root:root"),
    ("/usr/lib/caisson/caisson-protect", "755 root:root"),
    ("/usr/lib/caisson/caisson-policies", "755 root:root"),
    ("/usr/lib/caisson/caisson-probe", "755 root:root"),
    ("/usr/lib/caisson/caisson-seal", "755 root:root"),
    ("/usr/lib/caisson/caisson-agent", "755 root:root"),
    ("/usr/bin/caisson", "755 root:root"),
    ("/etc/caisson/policies", "755 root:root"),
    ("/etc/caisson/policies/base.json", "644 root:root"),
    ("/var/log/caisson/audit", "700 root:root"),
    ("/run/caisson", "700 root:root"),
])
def test_owner_and_mode(inside, path, expected):
    assert inside(f"stat -c '%a %U:%G' {path}") == expected


def test_users(inside):
    assert inside("getent passwd gem") == "gem:x:1000:1000::/home/gem:/bin/bash"
    assert inside("getent passwd caisson-agent").startswith("caisson-agent:x:990:990:")


def test_tools_of_the_sessions(inside):
    assert inside("for t in bash ls python3 node git curl rg ps less; do command -v $t >/dev/null || echo $t; done") == ""


def test_packages_that_data_code_expects(inside):
    assert inside("python3 -c 'import ipykernel, jupyter_client, matplotlib, numpy, openpyxl, pandas, PIL, pip, requests, scipy' 2>&1") == ""


@pytest.mark.parametrize("kind, make", [
    ("pdf", "import matplotlib.pyplot as p; p.rcParams['pdf.fonttype'] = 42; p.figtext(0, 0, 'shown-text'); p.savefig('doc.pdf')"),
    ("xlsx", "import openpyxl; b = openpyxl.Workbook(); b.active.append(['shown-text']); b.save('doc.xlsx')"),
])
def test_documents_that_its_own_libraries_make_are_shown_as_text(served, kind, make):
    assert served.bash(f'cd ~; MPLBACKEND=agg python3 -c "{make}"')["exit_code"] == 0
    answer = served.http.post("/v1/file/str_replace_editor", json={"command": "view", "path": f"/home/gem/doc.{kind}"}).json()
    assert answer["success"] and "shown-text" in answer["data"]["output"], answer
    served.bash(f"rm ~/doc.{kind}")


def test_node_is_what_clients_expect(inside):
    assert int(inside("node --version").removeprefix("v").split(".")[0]) >= 22


def test_nothing_of_our_own_build_is_left(inside):
    """Compilers are there for the sessions; what built Caisson is not."""
    assert inside("for t in cmake ninja; do command -v $t; done; ls -d /build /src /etc/passwd- /run/build-ca; "
                  "find /var/lib/apt/lists /mnt -mindepth 1; true") == ""


def test_launcher_links_neither_boost_nor_ssl(inside):
    libraries = inside("ldd /usr/lib/caisson/caisson-launcher")
    assert "libc.so" in libraries or "statically linked" in libraries
    assert "libssl" not in libraries and "boost" not in libraries


def test_init_is_static(inside):
    said = inside("ldd /usr/lib/caisson/caisson-init 2>&1 || true")
    assert "statically linked" in said or "not a dynamic executable" in said


def test_settings(engine, image):
    config = json.loads(sh(engine, "image", "inspect", image).stdout)[0]["Config"]
    assert config["Entrypoint"] == ["/usr/lib/caisson/caisson-launcher"]
    assert "8080/tcp" in config["ExposedPorts"]
    assert config.get("User", "") in ("", "0", "root")
    assert config["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
