"""What the benches of one session's exec beside others share: the time of one exec, and how times are told."""
import os
import time


def exec_us(control, session):
    begin = time.monotonic()
    label, fds = control.start(session, "/usr/bin/true", stdin=False)
    control.event("exec_exit", session=session, exec=label)
    for fd in fds:
        os.close(fd)
    return (time.monotonic() - begin) * 1e6


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def held(value, target):
    return f"target {target:.2f}   {'held' if value <= target else 'MISSED'}"


def tell(times):
    """times: name -> microseconds of each exec."""
    for name, values in times.items():
        print(f"exec true, {name:8}  median {quantile(values, 0.5):7.0f} us   p99 {quantile(values, 0.99):7.0f} us   ({len(values)} execs)")
