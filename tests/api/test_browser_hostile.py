"""A page that is against us, in the browser of a workspace: what it reaches, and what another site makes the visitor's browser ask for."""
import http.server
import os
import threading

import pytest
from screen import needs_desktop, serving

pytestmark = needs_desktop
PORTS = range(1, 65536) if os.environ.get("CAISSON_TEST_FULL") else [*range(1, 1025), *range(5800, 6100), *range(8000, 8500), *range(9200, 9300)]
# A refused connection is ERR_CONNECTION_REFUSED at once; what listens answers, or at least keeps the request.
SCAN = """(async ports => {
  const open = [];
  const one = async port => {
    const late = new AbortController(), timer = setTimeout(() => late.abort(), 3000);
    try { await fetch(`http://127.0.0.1:${port}/`, {mode: "no-cors", signal: late.signal}); open.push(port); }
    catch (why) { if (why.name === "AbortError") open.push(port); }
    clearTimeout(timer);
  };
  for (let at = 0; at < ports.length; at += 200) await Promise.all(ports.slice(at, at + 200).map(one));
  return open;
})"""


def evaluate(api, expression):
    answer = api.post("/v1/browser/page/evaluate", {"expression": expression}).json()
    assert answer["success"], answer
    return answer["data"]


@pytest.fixture
def served(api):
    """A server of the workspace's own, and its port."""
    with serving(api, 8123):
        yield 8123


def test_no_port_of_the_workspace_is_ours(api, served):
    assert api.post("/v1/browser/page/navigate", {"url": f"http://127.0.0.1:{served}/"}).json()["success"]
    found = [port for at in range(0, len(PORTS), 4000) for port in evaluate(api, f"({SCAN})({list(PORTS[at : at + 4000])})")]
    assert found == [served]


def test_the_agent_is_not_reached(native, api, served):
    """Its port is the host's: the network of a session has neither it nor a way to it."""
    assert api.post("/v1/browser/page/navigate", {"url": f"http://127.0.0.1:{served}/"}).json()["success"]
    assert evaluate(api, f"({SCAN})([{native.port}])") == []
    for address in ("10.0.0.1", "172.17.0.1", "169.254.169.254", "[::1]"):
        assert not api.post("/v1/browser/page/navigate", {"url": f"http://{address}:{native.port}/readyz", "timeout": 20}).json()["success"]


class Foreign(http.server.BaseHTTPRequestHandler):
    """A site whose pages do what they can to the server."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>foreign</title>")

    def log_message(self, *_):
        pass


@pytest.fixture
def foreign():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Foreign)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


ASKS = """async address => {
  const seen = {};
  for (const path of ["/json/version", "/json/list", "/cdp/json/version", "/v1/browser/info", "/v1/browser/screenshot"]) {
    try { const got = await fetch(address + path); seen[path] = "read " + got.status; } catch (why) { seen[path] = "nothing"; }
  }
  for (const path of ["/cdp", "/websockify", "/vnc/websockify", "/devtools/browser/x"])
    seen[path] = await new Promise(done => {
      const socket = new WebSocket(address.replace("http", "ws") + path);
      socket.onopen = () => done("open");
      socket.onclose = () => done("nothing");
    });
  return seen;
}"""


def test_a_page_of_another_site_in_the_visitors_browser_gets_nothing(browser, api, foreign):
    browser.get(foreign)
    browser.set_script_timeout(60)
    answers = browser.execute_async_script(f"const done = arguments[1]; ({ASKS})(arguments[0]).then(done)", api.url)
    assert len(answers) == 9 and set(answers.values()) == {"nothing"}
