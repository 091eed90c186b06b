"""loop.py CONTROL-SOCKET [ROUNDS]: how long PID 1 answers nobody while it makes domains ready. One client asks for nothing but the list of
workspaces, again and again, alone and then while another makes ROUNDS (40) workspaces, in each a session of each kind: with a template, a
canary, a filter of its own (narrowed), namespaces of its own (private). A turn of the loop is at most as long as the longest answer.
Beside it, in the same moments, the floor: what a process waits that does nothing but answer. What it waits, the machine takes."""
import multiprocessing
import pathlib
import socket as sockets
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from control import Control  # noqa: E402
from latency import held, quantile  # noqa: E402

socket, ROUNDS, TARGET_MS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40, 5


def ask(question, over, told):
    took = []
    while not over.is_set():
        begin = time.monotonic()
        question()
        took.append((time.monotonic() - begin) * 1e3)
        time.sleep(0.0005)
    told.put(took)


def ask_launcher(over, told):
    control = Control(socket)
    ask(lambda: control.call("workspace_list"), over, told)


def answer(end):
    while data := end.recv(64):
        end.send(data)


def ask_floor(over, told):
    here, there = sockets.socketpair(sockets.AF_UNIX, sockets.SOCK_SEQPACKET)
    multiprocessing.Process(target=answer, args=(there,), daemon=True).start()
    ask(lambda: (here.send(b"?"), here.recv(64)), over, told)


def measured(work):
    over = multiprocessing.Event()
    pairs = [(target, multiprocessing.Queue()) for target in (ask_launcher, ask_floor)]
    askers = [multiprocessing.Process(target=target, args=(over, told)) for target, told in pairs]
    for one in askers:
        one.start()
    work()
    over.set()
    took = [told.get() for _, told in pairs]
    for one in askers:
        one.join()
    return took


def make():
    control = Control(socket)
    for n in range(ROUNDS):
        control.call("workspace_create", name=f"bench-{n}")
        control.create(workspace=f"bench-{n}")
        control.create(workspace=f"bench-{n}", isolation="private")
        control.create(workspace=f"bench-{n}", narrow={"limits": {"processes": 100 + n}})
        control.create("code", workspace=f"bench-{n}")
        control.call("workspace_destroy", workspace=f"bench-{n}")
    control.close()


for name, work in (("alone", lambda: time.sleep(3)), ("beside", make)):
    for who, took in zip(("launcher", "floor"), measured(work)):
        print(f"an answer of the {who:8} {name:7} p50 {quantile(took, 0.5):6.2f} ms   p99 {quantile(took, 0.99):6.2f} ms   "
              f"longest {max(took):6.2f} ms   ({len(took)} answers)   "
              f"{held(max(took), TARGET_MS) if (who, name) == ('launcher', 'beside') else ''}")
