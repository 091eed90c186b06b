"""denials.py CONTROL_SOCKET AUDIT_DIR: one session makes a million refused system calls in a tight loop; what becomes of the exec latency of
another? Quiet and loaded rounds alternate, so that both meet the same machine. Each loud session is a new one, because a flood
costs a session its listener: the kernel then answers ENOSYS by itself."""
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from control import Control  # noqa: E402
from latency import exec_us, held, quantile, tell  # noqa: E402

CALLS, ROUNDS, EXECS = 1_000_000, 4, 100
# keyctl: refused by every policy; by syscall(2), so that nothing but the refusal is in the loop.
LOOP = f"""
import ctypes, time
call, begin = ctypes.CDLL(None, use_errno=True).syscall, time.monotonic()
told = 0
for _ in range({CALLS}):
    call(250, 0, 0, 0)
    told += ctypes.get_errno() == 1
print(told, ctypes.get_errno(), time.monotonic() - begin)
"""


def record_ms(control, session):
    """From the call itself to its record being readable, as somebody sees who polls the log."""
    log = open(pathlib.Path(sys.argv[2]) / f"{session}.ndjson")
    found = []
    for _ in range(50):
        label, fds = control.start(session, "python3", "-c", "import ctypes; ctypes.CDLL(None).syscall(250, 0, 0, 0)", stdin=False)
        while not (record := next((r for r in map(json.loads, log) if r["event"] == "denial"), None)):
            time.sleep(0.0002)
        found.append(time.monotonic() * 1e3 - record["at_us"] / 1e3)
        control.event("exec_exit", session=session, exec=label)
        for fd in fds:
            os.close(fd)
    return found


control = Control(sys.argv[1])
quiet = control.create()
waits = record_ms(control, quiet)
print(f"a refused call is on record after  median {quantile(waits, 0.5):.1f} ms   most {max(waits):.1f} ms   {held(max(waits), 100)}")
times = {"quiet": [], "denials": []}
calls_per_second = 0.0
for _ in range(ROUNDS):
    times["quiet"] += [exec_us(control, quiet) for _ in range(EXECS)]
    loud = control.create()
    label, fds = control.start(loud, "python3", "-c", LOOP, stdin=False)
    time.sleep(0.2)  # the interpreter starts
    times["denials"] += [exec_us(control, quiet) for _ in range(EXECS)]
    control.event("exec_exit", session=loud, exec=label)
    told, errno, seconds = os.read(fds[0], 200).split()
    assert int(errno) in (1, 38), f"keyctl was not refused: errno {errno}"
    calls_per_second = CALLS / float(seconds)
    for fd in fds:
        os.close(fd)
    control.destroy(loud)
    records = [json.loads(line) for line in (pathlib.Path(sys.argv[2]) / f"{loud}.ndjson").read_text().splitlines()]
    recorded = sum(r["event"] == "denial" for r in records)
    dropped = sum(r["dropped"] for r in records if r["event"] == "denials_dropped")
    print(f"{CALLS} refused calls: {int(told)} answered EPERM, of these {recorded} recorded and {dropped} counted; then ENOSYS")
    assert int(told) == recorded + dropped, "a refused call is missing from the log"
tell(times)
ratio = quantile(times["denials"], 0.99) / quantile(times["quiet"], 0.99)
print(f"p99 beside {CALLS} refused calls ({calls_per_second:,.0f} a second) / quiet: {ratio:.2f}   {held(ratio, 2)}")
