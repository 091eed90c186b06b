"""The image: who may read and write what, what is in it, what is not."""
import base64
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
    ("/usr/lib/caisson/caisson-builder", "755 root:root"),
    ("/usr/lib/caisson/caisson-homes", "755 root:root"),
    ("/usr/lib/caisson/caisson-logs", "755 root:root"),
    ("/usr/lib/caisson/caisson-system", "755 root:root"),
    ("/usr/lib/caisson/caisson-protect", "755 root:root"),
    ("/usr/lib/caisson/caisson-policies", "755 root:root"),
    ("/usr/lib/caisson/caisson-probe", "755 root:root"),
    ("/usr/lib/caisson/caisson-seal", "755 root:root"),
    ("/usr/lib/caisson/caisson-agent", "755 root:root"),
    ("/usr/lib/caisson/caisson-courier", "755 root:root"),
    ("/usr/bin/caisson", "755 root:root"),
    ("/usr/local/bin/aio", "755 root:root"),
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
    tools = "bash ls python3 python node git curl rg ps less jq make unzip zip tree file vi vim wget ping ssh ssh-keygen cmake c++ sudo"
    assert inside(f"for t in {tools}; do command -v $t >/dev/null || echo $t; done") == ""


def test_packages_that_data_code_expects(inside):
    assert inside("python3 -c 'import ipykernel, jupyter_client, matplotlib, numpy, openpyxl, pandas, PIL, pip, requests, scipy' 2>&1") == ""
    assert inside("python3 -c 'import bs4, chardet, fastapi, ipywidgets, lxml, plotly, pydantic, seaborn, pytest, sklearn, tqdm, uvicorn, yaml' 2>&1") == ""


def test_python_is_python3_and_has_pip(served):
    done = served.bash("python -c 'import sys; print(sys.version_info.major)' && python -m pip --version")
    assert done["exit_code"] == 0 and done["stdout"].startswith("3\npip "), done


def test_documents_become_markdown(served):
    answer = served.http.post("/v1/util/convert_to_markdown", json={"uri": "data:text/html,<h1>Title</h1>"}).json()
    assert answer["data"] == "# Title", answer
    assert served.bash("python3 -c 'import markitdown'")["exit_code"] != 0, "sessions' Python does not import its libraries"


def test_the_loopback_is_pinged(served):
    done = served.bash("ping -c 1 localhost")
    assert done["exit_code"] == 0 and "1 received" in done["stdout"], done


def test_plots_show_chinese_japanese_and_korean(served):
    """matplotlib warns of each glyph that none of its fonts has; a warning is an error here."""
    code = "import matplotlib.pyplot as p; p.title('abc 中文 かな 한국어'); p.savefig('/tmp/cjk.png')"
    done = served.bash(f'MPLBACKEND=agg python3 -W error::UserWarning -c "{code}"')
    assert done["exit_code"] == 0, done


def test_no_program_reads_all_fonts_at_its_start(served):
    """fontconfig writes a list of its own of each folder whose list is missing or too old."""
    done = served.bash("export XDG_CACHE_HOME=$(mktemp -d) && fc-list | wc -l && find $XDG_CACHE_HOME -type f")
    assert done["exit_code"] == 0 and len(done["stdout"].split()) == 1 and int(done["stdout"]) > 10, done


def test_programs_for_openssl_are_built_with_cmake(served):
    lists = "project(p C)\\nfind_package(OpenSSL REQUIRED)\\nadd_executable(p p.c)\\ntarget_link_libraries(p OpenSSL::Crypto)\\n"
    program = "#include <openssl/crypto.h>\\n#include <stdio.h>\\nint main(void) { puts(OpenSSL_version(OPENSSL_VERSION)); }\\n"
    done = served.bash(f"cd $(mktemp -d) && printf '{lists}' >CMakeLists.txt && printf '{program}' >p.c && cmake . >&2 && make >&2 && ./p")
    assert done["exit_code"] == 0 and done["stdout"].startswith("OpenSSL 3"), done


def test_sudo_passes_commands_through_and_explains_what_it_cannot_give(served):
    assert served.bash("sudo -E -n id -un")["stdout"] == served.bash("id -un")["stdout"]
    done = served.bash("sudo apt-get install -y cowsay")
    assert done["exit_code"] == 1 and '"system_packages": true' in done["stderr"], done


def test_aio_is_there_for_sessions_and_alone(served, tmp_path):
    """The file of the image is the one to be copied to where its users are."""
    done = served.bash("aio mcp call --help && aio sandbox info --api-url http://127.0.0.1:1")
    assert done["exit_code"] == 3 and "key=value" in done["stdout"] and "Connection refused" in done["stderr"], done
    (tmp_path / "aio").write_bytes(base64.b64decode(served.exec("base64", "/usr/local/bin/aio").stdout))
    done = sh("python3", tmp_path / "aio", "sandbox", "info", env={"AIO_API_URL": str(served.http.base_url), "AIO_API_KEY": served.started["api_key"]})
    assert json.loads(done.stdout)["home_dir"] == "/home/gem"


@pytest.mark.parametrize("pip", ["pip", "pip3", "python -m pip"])
def test_pip_says_at_once_that_there_is_no_network(served, pip):
    done = served.bash(f"{pip} install caisson-no-such-package")
    assert done["exit_code"] == 1 and done["stderr"].count("this session has no network") == 1 and "Retrying" not in done["stderr"], done


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
    assert inside("command -v ninja; ls -d /build /src /etc/passwd- /run/build-ca; "
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
