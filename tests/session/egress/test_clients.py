"""Real clients in sessions of each tier, unchanged: what they fetch by TLS from a name that the policy permits, and what they say of one that it
does not. In T3 and T2 nothing tells them of a proxy; in T0 the session has the variables that its report names."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import harness
import places
import pytest
import shelf
from connected import REQUIRED
from harness import edit
from run import PLACE
from world import OTHER, PUBLIC, World, echo, rule

FETCH = "import {} as m; print(m.get('https://web.test/hello', verify='ca.pem').text, end='')"
NODE = "node --input-type=module -e '{}'"
AIOHTTP = """
import aiohttp, asyncio, ssl
async def main():
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile="ca.pem"))) as session:
        async with session.get("https://web.test/hello") as answer: print(await answer.text(), end="")
asyncio.run(main())"""
GO = """package main
import ("fmt"; "io"; "net/http"; "os")
func main() {
  answer, err := http.Get("https://web.test/hello")
  if err != nil { fmt.Println(err); os.Exit(1) }
  text, _ := io.ReadAll(answer.Body)
  fmt.Print(string(text))
}"""
JAVA = """import java.net.*; import java.net.http.*;
class Fetch { public static void main(String[] a) throws Exception {
  System.out.print(HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create("https://web.test/hello")).build(),
                                                   HttpResponse.BodyHandlers.ofString()).body()); } }"""
MUSL = """#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
int main(void) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
  if (getaddrinfo("web.test", "80", &hints, &found)) return 1;
  int fd = socket(found->ai_family, SOCK_STREAM, 0);
  if (connect(fd, found->ai_addr, found->ai_addrlen)) return 2;
  dprintf(fd, "GET /hello HTTP/1.0\\r\\nHost: web.test\\r\\n\\r\\n");
  char text[4096];
  for (ssize_t n; (n = read(fd, text, sizeof text)) > 0;) fwrite(text, 1, n, stdout);
}"""
# What is run, and the programs that it needs.
CLIENTS = {
    "curl": ("curl -sS --cacert ca.pem https://web.test/hello", "curl"),
    "curl, HTTP": ("curl -sS http://web.test/hello", "curl"),
    "wget": ("wget -q -O - --ca-certificate=ca.pem https://web.test/hello", "wget"),
    "git": ("rm -rf tiny && GIT_SSL_CAINFO=$PWD/ca.pem git clone -q https://web.test/tiny.git && cat tiny/file", "git"),
    "pip": ("/usr/bin/python3 -m pip download -q --disable-pip-version-check --cert ca.pem -d pip -i https://web.test/simple tiny && ls pip && echo served", "pip3"),
    "npm": ("mkdir -p n && cd n && npm install --silent --no-audit --no-fund --cafile ../ca.pem --registry https://web.test/npm/ tiny && ls node_modules && echo served", "npm"),
    "apt": ("mkdir -p a/lists/partial a/cache/archives/partial && echo 'deb [trusted=yes] https://web.test/apt ./' >a/list && touch a/status && "
            "apt-get -qq -o Acquire::https::CaInfo=$PWD/ca.pem -o Dir::Etc::SourceList=$PWD/a/list -o Dir::Etc::SourceParts=- -o Dir::State=$PWD/a "
            "-o Dir::State::status=$PWD/a/status -o Dir::Cache=$PWD/a/cache -o APT::Sandbox::User= update && "
            "cd a && apt-get -qq -o Acquire::https::CaInfo=$PWD/../ca.pem -o Dir::Etc::SourceList=$PWD/list -o Dir::Etc::SourceParts=- -o Dir::State=$PWD "
            "-o Dir::State::status=$PWD/status -o Dir::Cache=$PWD/cache -o APT::Sandbox::User= download tiny && ls *.deb && echo served", "apt-get"),
    "node fetch": ("NODE_EXTRA_CA_CERTS=ca.pem " + NODE.format('process.stdout.write(await (await fetch("https://web.test/hello")).text())'), "node"),
    "node c-ares": (NODE.format(
        'import dns from "dns/promises"; import http from "http"; const [a] = await dns.resolve4("web.test"); '
        'http.get({host: a, path: "/hello", headers: {host: "web.test"}}, r => r.pipe(process.stdout))'), "node"),
    "Python urllib": ("SSL_CERT_FILE=ca.pem /usr/bin/python3 -c \"import urllib.request as u; print(u.urlopen('https://web.test/hello').read().decode(), end='')\"", "python3"),
    "Python requests": (f'/usr/bin/python3 -c "{FETCH.format("requests")}"', "python3", "requests"),
    "Python httpx": (f'/usr/bin/python3 -c "{FETCH.format("httpx")}"', "python3", "httpx"),
    "Python aiohttp": (f"/usr/bin/python3 -c '{AIOHTTP}'", "python3", "aiohttp"),
    "Go": ("SSL_CERT_FILE=ca.pem GODEBUG=netdns=go ./fetch-go", "go"),
    "Go with cgo": ("SSL_CERT_FILE=ca.pem GODEBUG=netdns=cgo ./fetch-cgo", "go"),
    "Java": ("java -Djavax.net.ssl.trustStore=ca.p12 -Djavax.net.ssl.trustStorePassword=changeit Fetch.java", "javac"),
    "musl": ("./fetch-musl | tail -n 1", "musl-gcc"),
    "bash": ("exec 3<>/dev/tcp/web.test/80 && printf 'GET /hello HTTP/1.0\\r\\nHost: web.test\\r\\n\\r\\n' >&3 && tail -n 1 <&3", "bash"),
}  # fmt: skip
REFUSED = {
    "curl": "curl -sS --cacert ca.pem https://other.test/hello",
    "wget": "wget -O - --ca-certificate=ca.pem https://other.test/hello",
    "git": "GIT_SSL_CAINFO=$PWD/ca.pem git clone -q https://other.test/other.git",
    "Python urllib": "SSL_CERT_FILE=ca.pem /usr/bin/python3 -c \"import urllib.request as u; u.urlopen('https://other.test/hello')\"",
}


def missing(program, module=None):
    """Why it cannot be tried here, or None."""
    if not shutil.which(program, path="/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin"):
        return f"{program} is not installed"
    if module and subprocess.run(["/usr/bin/python3", "-I", "-c", f"import {module}"], capture_output=True, check=False).returncode:
        return f"Python's {module} is not installed"
    return None


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """What is compiled: outside, because a session has no need of a compiler."""
    home = tmp_path_factory.mktemp("programs")
    if not missing("go"):
        (home / "fetch.go").write_text(GO)
        for name, cgo in (("fetch-go", "0"), ("fetch-cgo", "1")):
            go = {"PATH": "/usr/local/go/bin:/usr/bin:/bin", "HOME": str(home), "GOCACHE": str(home / "go-cache"), "CGO_ENABLED": cgo, "GO111MODULE": "off"}
            shelf.run("go", "build", "-o", home / name, home / "fetch.go", env=go)
        shutil.rmtree(home / "go-cache")
    if not missing("musl-gcc"):
        (home / "fetch.c").write_text(MUSL)
        shelf.run("musl-gcc", "-static", "-o", home / "fetch-musl", home / "fetch.c")
    if not missing("javac"):
        (home / "Fetch.java").write_text(JAVA)
    return home


def believe(home, authority):
    """Puts the authority where the clients look for it."""
    shutil.copy(authority, home / "ca.pem")
    if not missing("javac"):
        shelf.run("keytool", "-importcert", "-noprompt", "-alias", "a", "-file", home / "ca.pem", "-keystore", home / "ca.p12", "-storepass", "changeit",
                  "-storetype", "PKCS12")  # fmt: skip


@pytest.fixture(scope="module", params=["T3", "T2", "T0"])
def clients(here, programs, tmp_path_factory, request):
    """A session of a launcher whose bash may reach web.test: run(command) gives what it says and its status."""
    folder = tmp_path_factory.mktemp("clients")
    internet = World(folder)
    with tempfile.TemporaryDirectory(prefix="caisson-clients-", dir=PLACE) as place, harness.Launcher(pathlib.Path(place)) as one:
        one.base.chmod(0o755)
        authority = shelf.served(internet, folder, PUBLIC)
        internet.names.zone["other.test"] = [OTHER]
        internet.elsewhere = internet.serve(OTHER, 443, echo)
        shutil.copytree(programs, one.home, dirs_exist_ok=True)
        believe(one.home, authority)
        for path in (one.home, *one.home.rglob("*")):
            os.chown(path, harness.SESSION_UID, harness.SESSION_UID)
        edit(
            one.policies / "bash.json",
            network="allowlist",
            egress=[{"host": "web.test", "why": "what a test needs"}],
            weaken=[{"field": "/network", "why": "what a test needs"}],
        )
        if request.param == "T0":
            edit(one.policies / "base.json", require=REQUIRED)
        one.start(wrapper=[*internet.wrapper(), *places.wrapper(request.param, one.home)])
        control = one.control()
        if control.hello["tier"] != request.param:
            pytest.skip(f"this kernel does not give tier {request.param}")
        session = control.create()
        yield lambda command: control.run(session, "/bin/bash", "-c", "PATH=/usr/local/bin:/usr/bin:/bin; " + command), internet, request.param
    internet.close()


def old_cares(run):
    version = run("node -p process.versions.ares")[1]
    return tuple(map(int, version.split(".")[:2])) < (1, 20)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_fetches_what_is_permitted(clients, client):
    command, *needed = CLIENTS[client]
    if why := missing(*needed):
        pytest.skip(why)
    run, _, tier = clients
    ended, out, err = run(command)
    # What asks for names by UDP alone has no way out there (policies/README.md): musl, and c-ares before it read `use-vc`, as Node 18 has it.
    if tier == "T0" and (client == "musl" or (client == "node c-ares" and old_cares(run))):
        assert out == ""
        ended, out, err = run("curl -sS --proxy $http_proxy http://web.test/hello")
    assert ended.get("exit_code") == 0 and out.endswith(shelf.TEXT), (ended, out, err)


@pytest.mark.parametrize("client", REFUSED)
def test_a_client_fails_at_once_at_what_is_not(clients, client):
    run, internet, tier = clients
    ended, out, err = run(REFUSED[client])
    told = "403" if tier == "T0" and client != "wget" else "denied"  # by a proxy, or by an alert of TLS
    assert ended.get("exit_code") and told in err.lower(), (ended, out, err)
    assert internet.elsewhere == []


def test_a_browser_fetches_what_is_permitted(internet, tmp_path):
    """In the workspace's namespace without a launcher: its own walls are another matter."""
    if not shutil.which("chromium"):
        pytest.skip("chromium is not installed")
    shelf.served(internet, tmp_path, PUBLIC)
    internet.open(rule("web.test"), port=443)
    done = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={tmp_path}/profile", "--ignore-certificate-errors",
         "--dump-dom", "https://web.test/hello.html"],
        preexec_fn=internet.as_workspace, capture_output=True, text=True, timeout=240, check=False)  # fmt: skip
    assert shelf.TEXT.strip() in done.stdout, done.stderr
    assert internet.record(event="connection", host="web.test", port=443)
