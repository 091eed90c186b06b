"""The preview proxy with what people run behind it: an application with logins and redirects, events, and a Vite dev server, in a real
Chromium and each way that can hold them."""
import contextlib
import re
import shutil
import socket
import subprocess
import threading

import pytest
from conftest import Api, eventually
from launcher_process import WORKSPACE_UID
from npm import installed
from proxied import app

pytest.importorskip("selenium.webdriver", reason="python3-selenium is not installed")
from selenium.webdriver.common.by import By  # noqa: E402

# As a small Flask application does it: redirects with absolute addresses made of Host, a cookie for /, forms, events.
SITE = r'''
import http.cookies, http.server, sys, time, urllib.parse
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def base(self):  # what a client puts before the application's paths
        return self.headers.get("X-Forwarded-Prefix", "") or (self.path[:self.path.index("/", 10)] if self.path.startswith("/absproxy/") else "")
    def page(self, text):
        body = ("<!doctype html><title>site</title>" + text).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        path = self.path[len(self.base()):] if self.path.startswith("/absproxy/") else self.path
        if path == "/events":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for i in range(3):
                self.wfile.write(b"data: %d\n\n" % i)
                time.sleep(0.1)
            time.sleep(30)
            return
        user = http.cookies.SimpleCookie(self.headers.get("Cookie", "")).get("user")
        if not user:
            return self.page("<form method=post action=login><input name=user><button>in</button></form>")
        self.page(f"<h1>hello {user.value}</h1><ul id=events></ul><script>"
                  "new EventSource('events').onmessage = e => document.querySelector('#events').append(e.data + ';')</script>")
    def do_POST(self):
        form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(302)
        absolute = self.path.startswith("/absproxy/")
        self.send_header("Location", f"http://{self.headers['Host']}{self.base() if absolute else ''}/")
        self.send_header("Set-Cookie", f"user={form['user'][0]}; Path=/; HttpOnly")
        self.end_headers()
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("listening")
server.serve_forever()
'''


@pytest.fixture(scope="module")
def open_server(launch):
    """A server without a key: a browser cannot put one into the requests of a page that it opens by its address."""
    return launch(key=None, CAISSON_AUTH="none", CAISSON_PREVIEW_HOSTS="localhost")


@pytest.fixture(scope="module")
def open_api(open_server, contract):
    return Api(open_server.url, "", contract)


def address(server, port: int, way: str) -> str:
    if way == "host":
        return f"http://{port}-preview.localhost:{server.port}/"
    return f"{server.url}/{'proxy' if way == 'path' else 'absproxy'}/{port}/"


def text(browser, selector: str) -> str:
    return browser.execute_script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)


# Sessions, redirects and a stream as Flask makes them. It knows a prefix only where the path has one.
FLASK = r'''
import sys, time
from flask import Flask, Response, redirect, request, session, url_for
from werkzeug.exceptions import NotFound
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.serving import make_server
port = sys.argv[1]
prefix = f"/absproxy/{port}" if "@WAY@" == "absolute" else ""
site = Flask("site")
site.secret_key = "of a test"
site.config["APPLICATION_ROOT"] = prefix or "/"
@site.get("/")
def home():
    if "user" not in session: return redirect(url_for("login"))
    return ("<!doctype html><title>site</title><h1>hello " + session["user"] + "</h1><ul id=events></ul><script>"
            "new EventSource('events').onmessage = e => document.querySelector('#events').append(e.data + ';')</script>")
@site.get("/login")
def login():
    return "<!doctype html><form method=post><input name=user><button>in</button></form>"
@site.post("/login")
def log_in():
    session["user"] = request.form["user"]
    return redirect(url_for("home", _external=True))
@site.get("/events")
def events():
    def each():
        for i in range(3):
            yield f"data: {i}\n\n"
            time.sleep(0.1)
        time.sleep(30)
    return Response(each(), mimetype="text/event-stream")
server = make_server("127.0.0.1", int(port), DispatcherMiddleware(NotFound(), {prefix: site}) if prefix else site, threaded=True)
print("listening")
server.serve_forever()
'''

WAYS = ("path", "absolute", "host", "header")


def send_header(browser, port: int | None):
    """The header way: each request of the browser names the port."""
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd("Network.setExtraHTTPHeaders", {"headers": {} if port is None else {"X-AIO-Proxy-Port": str(port)}})


@pytest.fixture
def opened(browser, open_server):
    """opened(port, way): the address, with what the way needs of the browser."""
    def visit(port: int, way: str) -> str:
        browser.delete_all_cookies()
        send_header(browser, port if way == "header" else None)
        where = open_server.url + "/" if way == "header" else address(open_server, port, way)
        browser.get(where)
        return where

    yield visit
    send_header(browser, None)


def log_in(browser, open_server, where: str, cookie: str):
    browser.find_element(By.NAME, "user").send_keys("ada")
    browser.find_element(By.TAG_NAME, "button").click()
    eventually(lambda: text(browser, "h1") == "hello ada")
    assert browser.current_url == where
    eventually(lambda: text(browser, "#events") == "0;1;2;")
    below = where.startswith((open_server.url + "/proxy/", open_server.url + "/absproxy/"))
    prefix = where[len(open_server.url):-1] if below else ""
    assert [c["path"].rstrip("/") for c in browser.get_cookies() if c["name"] == cookie] == [prefix]


@pytest.mark.parametrize("way", WAYS)
def test_an_application_with_login_redirects_and_events(browser, open_server, open_api, opened, way):
    with app(open_api, SITE) as port:
        log_in(browser, open_server, opened(port, way), "user")


@pytest.mark.parametrize("way", WAYS)
def test_a_flask_application_with_a_session_redirects_and_a_stream(browser, open_server, open_api, opened, way):
    if open_api.bash("/usr/bin/python3 -c 'import flask'")["exit_code"] != 0:
        pytest.skip("python3-flask is not installed")
    with app(open_api, FLASK.replace("@WAY@", way)) as port:
        where = opened(port, way)
        assert browser.current_url == where + "login"
        log_in(browser, open_server, where, "session")


@pytest.fixture(scope="module")
def project(open_server):
    modules = installed() / "node_modules"
    folder = open_server.dir / "home/project"
    folder.mkdir()
    (folder / "node_modules").mkdir()
    for name in VITE:
        for found in modules.glob(name):
            shutil.copytree(found, folder / "node_modules" / found.relative_to(modules), symlinks=True)
    (folder / "index.html").write_text("<!doctype html><h1></h1><script type=module src=./main.js></script>")
    (folder / "main.js").write_text("import { words } from './words.js'\nconst show = w => document.querySelector('h1').textContent = w\n"
                                    "show(words)\nwindow.loads = 1\nimport.meta.hot.accept('./words.js', m => show(m.words))\n")
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "stripped.config.js").write_text(STRIPPED)
    subprocess.run(["chown", "-R", f"{WORKSPACE_UID}:{WORKSPACE_UID}", folder], check=True)
    yield folder


# Vite and what it needs, of js/package-lock.json.
VITE = ("vite", "esbuild", "@esbuild/linux-*", "rollup", "@rollup/rollup-linux-*", "@types/estree", "fdir", "picomatch", "postcss", "nanoid",
        "picocolors", "source-map-js", "tinyglobby")

# Vite puts its base before every address that it writes, and wants it in every request. /proxy/ takes the prefix away, and names it in a
# header: these lines put it back.
STRIPPED = """const restore = (request) => {
  const prefix = request.headers['x-forwarded-prefix']
  if (prefix && !request.url.startsWith(prefix + '/')) request.url = prefix + request.url
}
export default {
  plugins: [{
    name: 'restore-prefix',
    configureServer(server) {
      server.middlewares.use((request, _, next) => { restore(request); next() })
      server.httpServer.prependListener('upgrade', restore)
    },
  }],
}
"""


class Gateway:
    """A port of this host that puts the header of the fourth way into each request: one request a connection, so that it sees them all."""

    def __init__(self, target: int, header: str):
        self.target, self.header = target, header
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.serve, args=(self.listener.accept()[0],), daemon=True).start()

    def serve(self, client):
        with client, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.target)) as server:
            head = b""
            while b"\r\n\r\n" not in head:
                if not (piece := client.recv(65536)):
                    return
                head += piece
            line, rest = head.split(b"\r\n", 1)
            if b"upgrade: websocket" not in rest.lower():
                rest = re.sub(rb"(?im)^connection: .*?\r\n", b"", rest)
                line += b"\r\nConnection: close"
            server.sendall(line + b"\r\n" + self.header.encode() + b"\r\n" + rest)
            threading.Thread(target=self.copy, args=(client, server), daemon=True).start()
            self.copy(server, client)

    @staticmethod
    def copy(a, b):
        with contextlib.suppress(OSError):
            while data := a.recv(65536):
                b.sendall(data)
        with contextlib.suppress(OSError):
            b.shutdown(socket.SHUT_WR)

    def close(self):
        self.listener.close()


@contextlib.contextmanager
def vite(open_api, project, port: int, *options: str):
    (project / "words.js").write_text("export const words = 'first'\n")
    subprocess.run(["chown", f"{WORKSPACE_UID}:{WORKSPACE_UID}", project / "words.js"], check=True)
    session = open_api.data("/v1/bash/sessions/create")["session_id"]
    command = f"cd ~/project && exec node node_modules/vite/bin/vite.js --host 127.0.0.1 --port {port} --strictPort {' '.join(options)}"
    open_api.data("/v1/bash/exec", {"session_id": session, "command": command, "async_mode": True})
    try:
        eventually(lambda: "ready in" in open_api.data("/v1/bash/output", {"session_id": session})["stdout"])
        yield
    finally:
        open_api.post(f"/v1/bash/sessions/{session}/close")


def replaces_a_module(browser, open_api):
    eventually(lambda: text(browser, "h1") == "first")
    browser.execute_script("window.loads = 2")

    def replaced():
        # Again each time: what is written before the page has its socket is told to nobody.
        open_api.bash("echo \"export const words = 'second'\" > ~/project/words.js; sleep 0.3")
        return text(browser, "h1") == "second"

    eventually(replaced)
    assert browser.execute_script("return window.loads") == 2, "the page was loaded again"


@pytest.mark.parametrize("way, port, options", [("absolute", 5173, ["--base", "/absproxy/5173/"]), ("host", 5174, []),
                                                ("path", 5175, ["--base", "/proxy/5175/", "--config", "stripped.config.js"])])
def test_a_vite_dev_server_replaces_a_module_in_the_page(browser, open_api, project, opened, way, port, options):
    with vite(open_api, project, port, *options):
        opened(port, way)
        replaces_a_module(browser, open_api)


def test_a_vite_dev_server_replaces_a_module_behind_a_gateway_that_sets_the_header(browser, open_server, open_api, project, opened):
    with vite(open_api, project, 5176), contextlib.closing(Gateway(open_server.port, "X-AIO-Proxy-Port: 5176")) as gateway:
        browser.get(gateway.url)
        replaces_a_module(browser, open_api)


def test_the_page_and_the_modules_of_a_vite_dev_server_come_to_a_client_that_sets_the_header(browser, open_api, project, opened):
    """No client of a browser sets headers of WebSockets: without a gateway this way has no replacement of modules."""
    with vite(open_api, project, 5177):
        opened(5177, "header")
        eventually(lambda: text(browser, "h1") == "first")
