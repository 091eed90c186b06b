"""JSON-RPC over pipes for the servers in this folder, by hand: a server of the tests must be able to do what no SDK lets it do."""
import json
import sys
import threading

LOCK = threading.Lock()


def send(message):
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) + "\n")
        sys.stdout.flush()


def notify(method, **params):
    send({"method": method, "params": params})


class Failure(Exception):
    def __init__(self, code, text, **data):
        super().__init__(text)
        self.error = {"code": code, "message": text, **({"data": data} if data else {})}


class Client:
    """Questions to the client, whose answers another thread waits for."""

    def __init__(self):
        self.answers, self.ready, self.last = {}, threading.Condition(), 0

    def ask(self, method, params):
        with self.ready:
            self.last += 1
            number = self.last
        send({"id": number, "method": method, "params": params})
        with self.ready:
            while number not in self.answers:
                self.ready.wait()
            answer = self.answers.pop(number)
        if "error" in answer:
            raise Failure(answer["error"]["code"], answer["error"]["message"])
        return answer["result"]

    def take(self, answer):
        with self.ready:
            self.answers[answer["id"]] = answer
            self.ready.notify_all()


CLIENT = Client()


def serve(handlers):
    """handlers: {method: function(params)}. Each request has a thread of its own."""
    def carry_out(message):
        try:
            handler = handlers.get(message["method"])
            if handler is None:
                raise Failure(-32601, "Method not found")
            send({"id": message["id"], "result": handler(message.get("params", {}))})
        except Failure as why:
            send({"id": message["id"], "error": why.error})
        except (KeyError, TypeError, AttributeError) as why:
            send({"id": message["id"], "error": {"code": -32602, "message": f"Invalid params: {why!r}"}})

    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            CLIENT.take(message)
        elif "id" in message:
            threading.Thread(target=carry_out, args=(message,), daemon=True).start()
