"""A web server with the pages of the tests. 127.0.0.1 and localhost are two sites to a browser."""
import http.server
import itertools
import threading


class Site:
    def __init__(self):
        self.pages, self.seen, self.names = {}, [], itertools.count(1)
        self.closing = threading.Event()
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                path = self.path.split("?")[0]
                site.seen.append((path, {name.title(): value for name, value in self.headers.items()}))
                if path == "/hang":  # no answer as long as the tests run
                    site.closing.wait()
                    return
                status, kind, body, headers = site.pages.get(path, (404, "text/plain", b"nothing here", {}))
                self.send_response(status)
                for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), "Cache-Control": "no-store", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def put(self, body, path=None, kind="text/html; charset=utf-8", status=200, **headers):
        path = path or f"/page{next(self.names)}"
        data = body if isinstance(body, bytes) else body.encode()
        self.pages[path] = (status, kind, data, {name.replace("_", "-"): value for name, value in headers.items()})
        return self.url(path)

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def other(self, path):
        return f"http://localhost:{self.port}{path}"

    def headers_of(self, path):
        return [headers for asked, headers in self.seen if asked == path][-1]

    def close(self):
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()
