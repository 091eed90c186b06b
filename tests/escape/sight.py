"""The same attacks twice: in sessions of one tier and unconfined, each looked at from outside."""

import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

import catalogue
import places
from decoys import CANARY, Decoys, beyond_own_numbers, contents, metadata, sleeper, victim_state
from over_http import OverHttp
from policies import give_more, write_policies
from harness import API_KEY, Launcher, Refused, careless, eventually, inside, processes

VICTIM = tuple(f"PR-05.{n}" for n in ("kill", "kill-9", "tgkill", "tkill", "queue", "queue-thread", "pidfd", "group", "owner", "stop")) + (
    "PR-13.limit", "PR-14.nice", "PR-14.affinity", "PR-14.io", "PR-14.idle", "PR-15.oom-victim", "PR-15.coredump", "PR-15.timerslack")  # fmt: skip
DAEMONS = ("PR-09.daemon", "PR-10.daemons", "RS-22.fork-race")
LEAKS = ("RS-14.segment", "RS-14.queue")
LOCKS = {"RS-17.flock": False, "RS-17.ofd-lock": True}
SERVES = ("NW-18.serve", "NW-18.serve-loopback", "NW-18.serve6")
UIDS = {"nested": 61007, "nested-sandbox": 61006, "packages": 61004, "T3": 61003, "T2": 61002, "T0": 61000, "no mounts": 61005, "T1": places.UID}
# So many attacks that have shown nothing are no matter of a slow machine: they are not tried again.
MANY = 10
BURSTS = ("RS-01.burst", "RS-03.burst")
OWN_TREE = "IP-11.mnt"
BOX = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
EVERYBODY = ("PR-06.kill-all", "PR-06.stop-all")
FILES = ("FS-02.", "FS-04.", "FS-30.")
METADATA = ("chmod", "fchmodat2", "chown", "utime", "setxattr", "removexattr")
FULL_PORTS = (80, 443, 22, 25, 2375, 10250)
# Where every address leads here: what a session would reach if it reached anything.
EVERYWHERE = """
import socket, threading
def tcp(port):
    s = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    while True: s.accept()
def udp(port):
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.bind(("::", port))
    s.setsockopt(socket.IPPROTO_IP, 8, 1)
    while True:
        data, to = s.recvfrom(64); s.sendto(data, to)
for p in %r: threading.Thread(target=tcp, args=[p]).start()
for p in (53, 443, 123): threading.Thread(target=udp, args=[p]).start()
print("ready", flush=True)
"""
# The first process of a PID namespace: 7 when its other child no longer runs after the attack.
WITNESS = """
import subprocess, sys, time
quiet = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
victim = subprocess.Popen(["sleep", "60"], **quiet)
subprocess.Popen(sys.argv[1:], start_new_session=True, **quiet)
for _ in range(150):
    time.sleep(0.1)
    stat = open(f"/proc/{victim.pid}/stat").read()
    if stat[stat.rindex(")") + 2] in "TtZX": sys.exit(7)
"""


def inherited():
    """More than harness.careless: state that a careless parent hands down."""
    careless()
    ctypes.CDLL(None).personality(0x0040000)


# What is to be had in abundance is had by a user of its own whose processes and memory are bounded: root's would not be.
SMALL = ("setpriv", "--reuid=61234", "--regid=61234", "--clear-groups", "--", "prlimit", "--nproc=250", f"--as={512 << 20}", "--")
INHERITS = ("setpriv", "--pdeathsig", "KILL", "--inh-caps=+chown", "--ambient-caps=+chown", "--", "sh", "-c", 'exec 9</; exec "$0" "$@"')


class CarelessLauncher(Launcher):
    def spawn(self, *options, wrapper=(), **environment):
        self.answers_by_http = "T1" in wrapper
        return super().spawn(*options, wrapper=(*INHERITS, "setarch", "-R", *wrapper), **environment)

    def answers(self):
        if not self.answers_by_http:
            return super().answers()
        with contextlib.suppress(OSError, Refused):
            OverHttp(self)
            return True
        return False


def patiently(act, seconds=60):
    """What is refused for a moment succeeds later: processes of the same user may still be ending."""
    end = time.monotonic() + seconds
    while True:
        try:
            return act()
        except (Refused, OSError, AssertionError):
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


class Sight:
    """A launcher of one tier, what stands around it, and a victim in another session."""

    environment = {}  # of the launcher
    attackers = {}  # arguments of a session of the attacker's

    def __init__(self, tier, base, program, kind=None):
        self.tier, self.base, self.kind = tier, base, kind
        self.unconfined = False
        base.chmod(0o755)
        # Controls run as other users, who do not reach a build folder or pytest's own.
        self.program = pathlib.Path(shutil.copy(program, base / "escape"))
        self.cases = {case.id: case for case in catalogue.cases(self.program)}
        self.work = base / "work"
        self.work.mkdir()
        self.launcher = self.decoys = None
        try:
            self.surround()
            self.begin(tier)
        except BaseException:
            self.close()
            raise

    def make_launcher(self, base):
        return CarelessLauncher(base)

    def surround(self):
        (self.base / "launcher").mkdir()
        self.launcher = self.make_launcher(self.base / "launcher")
        # An id of its own, for the parts run side by side: sessions get the home's owner.
        self.uid = UIDS[self.kind or self.tier]
        os.chown(self.launcher.home, self.uid, self.uid)
        self.decoys = Decoys(self.base, self.program, self.uid)

    def begin(self, tier):
        self.configure()
        beyond_own_numbers()
        self.launcher.start(*self.options(), wrapper=places.wrapper(tier, self.launcher.home), **self.environment)
        # Beyond T3 what was started is the container, and the launcher its first process.
        self.pid = self.launcher.pid if tier == "T3" else first_child(self.launcher.pid)
        self.control = OverHttp(self.launcher) if tier == "T1" else self.launcher.control()
        assert self.control.hello["tier"] == places.tier(tier), self.launcher.log.read_text()
        self.settle()

    def options(self):
        return ()

    def attacking(self):
        return patiently(lambda: self.control.create(**self.attackers))

    def answers(self, session, ids):
        """The verdicts of a session, and how it fares. One that is refused, or whose API is gone for a moment, has answered nothing."""
        try:
            return catalogue.in_session(self.control, session, self.path, ids, self.places)
        except (Refused, OSError) as e:
            return {}, f"without an answer: {e}"

    def attacked(self):
        """A session that the attacker has no part in."""
        return self.control.create()

    def configure(self):
        write_policies(self.launcher.policies, self.base)
        if self.kind:
            give_more(self.launcher.policies, self.kind)
        shutil.copy(self.program, self.launcher.home / "escape")
        self.decoys.programs(self.launcher.home, self.program)
        if self.tier == "T1":
            for path in (self.launcher.base, *self.launcher.base.rglob("*")):
                if path.parent != self.launcher.home:
                    os.chown(path, places.UID, places.UID)

    def settle(self):
        """The victim's session, and what depends on where things are in a session."""
        more = self.neighbour()
        self.victim = sleeper(self.control, self.other)
        session = self.attacking()
        self.statement = catalogue.statement(self.control, session)
        self.left = {entry["id"] for entry in self.statement["confinement"]["residual"]}
        home = self.bring(session)
        self.path = f"{home}/escape"
        if self.kind == "nested":
            more["nested"] = 1
        self.places = self.decoys.places(home, self.launcher, self.pid, victim=self.number(self.victim), **more)
        self.control.destroy(session)

    def bring(self, session):
        """The program is in that session's home, whose path this is."""
        return inside(self.control, session, "out = os.getcwd()")

    def neighbour(self):
        """Another session, with a private home and network where the tier has them: what is in it."""
        private_home = None
        try:
            self.other = self.control.create("hermit")
            note = f'printf {CANARY} > "$HOME/private" && printf %s "$HOME/private"'
            private_home = self.control.output(self.other, "/bin/sh", "-c", note)
        except Refused:
            self.other = self.attacked()
        # A port that is free in the session's network may be taken on the host.
        port = next(one for one in iter(self.private_server, None) if not one or self.decoys.servers.tcp_server(one))
        return {"private_tcp": port or self.decoys.servers.tcp, "private_home": private_home}

    def private_server(self):
        """The port of a server in the other session; 0 where a session has no network."""
        server = "import os, socket\ntry: s = socket.create_server(('127.0.0.1', 0)); port = s.getsockname()[1]\nexcept OSError: port = 0\n" \
            "n = os.path.expanduser('~/port'); open(n + '.new', 'w').write(str(port)); os.rename(n + '.new', n)\nif port: s.accept(); s.accept()"
        self.control.start(self.other, "/usr/bin/python3", "-c", server)
        wait = 'for _ in $(seq 300); do [ -s "$HOME/port" ] && break; sleep 0.1; done; cat "$HOME/port" 2>/dev/null || echo 0'
        return int(self.control.output(self.other, "/bin/sh", "-c", wait))

    def number(self, pid):
        """A process's number as the sessions would know it: that of the launcher's PID namespace."""
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        pids = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[1:]
        return int(pids[0] if self.tier == "T3" else pids[1])

    def fresh_victim(self):
        if victim_state(self.victim) is None or victim_state(self.victim) != self.calm:
            with contextlib.suppress(OSError):
                os.kill(self.victim, signal.SIGKILL)
            try:
                self.victim = sleeper(self.control, self.other)
            except Refused as e:
                # A control may end it: what is unconfined may do anything. A session may not, but where its statement says so.
                assert self.unconfined or "landlock-no-scopes" in self.left, f"the other session is gone: {e}"
                self.other = self.attacked()
                self.victim = sleeper(self.control, self.other)
            self.places["victim"] = self.number(self.victim)
        self.calm = victim_state(self.victim)

    def end(self, session):
        with contextlib.suppress(Refused):  # an attack may have ended its own
            self.control.destroy(session)

    # In sessions.

    def confined(self):
        """id -> what the program said in sessions, put right by what is seen outside."""
        before = [(contents(d), metadata(d)) for d in (self.decoys.ro, self.decoys.outside)]
        ipc, self.calm = self.decoys.ipc.state(), victim_state(self.victim)
        together = [case.id for case in self.cases.values() if not case.alone()]
        found = settled(together, self.confined_together, lambda id, got: got["verdict"] != "undecided")
        if not self.places["private_home"]:
            found["IP-04.private-home"] = {"verdict": "stopped", "sign": "ENOENT", "note": "no private session can be had in this tier"}
        after = [(contents(d), metadata(d)) for d in (self.decoys.ro, self.decoys.outside)]
        for name, verdict in found.items():
            if name.startswith(FILES) and verdict["verdict"] == "stopped":
                what = 1 if name.split(".")[1] in METADATA else 0
                others = [found[o]["verdict"] for o in found if o.startswith(FILES) and (o.split(".")[1] in METADATA) == bool(what)]
                if "open" not in others and [b[what] for b in before] != [a[what] for a in after]:
                    verdict.update(verdict="open", note="the decoys are not as they were")
            if name.startswith(("IP-01", "IP-02")) and verdict["verdict"] == "stopped" and self.decoys.ipc.state() != ipc:
                verdict.update(verdict="open", note="the host's objects are not as they were")
        for case in self.cases.values():
            if case.alone():
                found[case.id] = self.confined_alone(case)
        return found

    def confined_together(self, ids):
        """Cases that share a session. Where a limit of the session ends the program, another session goes on behind it: on a slow
        machine that is the limit of processor time, which is the program's as a whole."""
        found, rest, patience = {}, ids, 5
        while rest and patience > 0:
            session = self.attacking()
            got, _ = self.answers(session, rest)
            self.end(session)
            if not got:
                patience -= 1  # a machine that is busy enough may not get to a first answer in that time
            found.update(got)
            rest = [id for id in rest if id not in found]
        return found

    def confined_alone(self, case):
        self.fresh_victim()
        if case.id in BURSTS:
            # The watchdog may look at that moment: then it was luck, which the next try does not have.
            for _ in range(4):
                if (verdict := self.alone_once(case))["verdict"] == "open":
                    break
            return verdict
        for _ in range(4):
            # A look from outside whether it is locked holds the lock for a moment; and a slow machine ends an attack before its answer.
            if (verdict := self.alone_once(case))["verdict"] != "undecided":
                break
        return verdict

    def alone_once(self, case):
        session = self.attacking()
        if case.id in EVERYBODY:
            return self.everybody(case, session)
        with self.watch(case) as seen:
            found, over = self.answers(session, [case.id])
        self.end(session)
        verdict = found.get(case.id)
        if verdict is None:
            sign = "limit" if over in ("limit", "processes", "memory", "oom") else "SIGKILL"
            stopped = sign in case.expected or case.id in EVERYBODY
            verdict = {"verdict": "stopped" if stopped else "undecided", "sign": sign, "note": f"the session was ended: {over}"}
        if effect := self.effect(case, seen):
            verdict.update(verdict="open", note=effect)
        elif case.id in SERVES + VICTIM + DAEMONS + LEAKS + tuple(LOCKS) and verdict["verdict"] == "open":
            # Inside it looked like success; outside nothing is to be seen of it.
            verdict.update(verdict="stopped", sign="no effect")
        self.alive(verdict)
        return verdict

    def everybody(self, case, session):
        """Its first victim is the program itself, which then answers nothing."""
        with contextlib.suppress(Refused):  # when it was faster than the launcher's answer
            self.control.start(session, self.path, "--only", case.id, *catalogue.arguments(self.places))
        time.sleep(1)
        self.end(session)
        effect = self.effect(case, [])
        verdict = {"verdict": "open" if effect else "stopped", "sign": "no effect", "note": effect or "only its own session"}
        self.alive(verdict)
        return verdict

    def alive(self, verdict):
        """No answer is not a wall: a fresh session must start and the other session be there."""
        try:
            patiently(self.starts)
            listed = [s["session"] for s in self.control.call("session_list")[0]["sessions"]]
            assert self.other in listed
        except (Refused, OSError, EOFError, AssertionError) as e:
            verdict.update(verdict="undecided", note=f"afterwards no session starts: {e}")

    def starts(self):
        self.control.output(session := self.control.create(**self.attackers), "true")
        self.control.destroy(session)

    # What is seen outside.

    @contextlib.contextmanager
    def watch(self, case):
        seen, stop = [], threading.Event()

        def look():
            while not stop.wait(0.02):
                if case.id in LOCKS and self.decoys.locked(LOCKS[case.id]):
                    seen.append("the decoy is locked")
                elif case.id in SERVES and self.decoys.served():
                    seen.append("it answered outside")

        thread = threading.Thread(target=look)
        if case.id in (*LOCKS, *SERVES):
            thread.start()
        yield seen
        stop.set()
        if thread.ident:
            thread.join()

    def effect(self, case, seen, settle=True):
        if seen:
            return seen[0]
        if case.id in VICTIM:
            now = victim_state(self.victim)
            # A signal takes its time, and whoever is ended is there until its parent looks.
            end = time.monotonic() + (0.1 if settle else 1)
            while now == self.calm and time.monotonic() < end:
                time.sleep(0.01)
                now = victim_state(self.victim)
            if now != self.calm:
                return "the victim ended" if now is None else "the victim is not as it was"
        if case.id in DAEMONS:
            if settle:
                with contextlib.suppress(AssertionError):
                    eventually(lambda: not self.decoys.left(), 2)
            if left := self.decoys.left():
                return f"{len(left)} processes are left"
        if case.id in LEAKS and (leaked := self.decoys.leaked()):
            return f"left behind: {leaked}"
        if case.id in EVERYBODY and (victim_state(self.victim) or {}).get("state") != "running":
            return "it reached another session"
        return None

    # Unconfined.

    def controls(self):
        """id -> what the program said unconfined."""
        self.calm, self.unconfined = None, True
        decoy = os.open("/etc/passwd", os.O_RDONLY)
        given = {
            "preexec": inherited, "pass_fds": [decoy], "where": self.work,
            "environment": {"PATH": os.environ["PATH"], "SANDBOX_API_KEY": API_KEY, "LEAKED_VARIABLE": "leaked"},
        }  # fmt: skip
        self.places = {**self.places, **{n: self.launcher.home / n for n in ("suid", "sgid", "capable")}, "lease": self.launcher.home}
        batches = {"user": [], "net": [], "box": [], "plain": []}
        for case in self.cases.values():
            if not case.alone() and "spare" not in case.flags and case.id != OWN_TREE:
                batches[next((f for f in ("user", "net", "box") if f in case.flags), "plain")].append(case.id)

        def batch(name, prefix):
            def run(ids):
                return catalogue.unconfined(self.program, ids, self.places, prefix=prefix, **given)

            return settled(batches[name], run, lambda id, got: catalogue.shown(self.cases[id], got) != (False, None))

        found = batch("plain", INHERITS)
        user = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")
        found |= batch("user", user)
        # The first process is the shell: one whose rights are no more than the attacker's.
        first = (*BOX, "sh", "-c", '"$0" "$@"; true')
        found |= batch("box", first)
        found |= catalogue.unconfined(self.program, [OWN_TREE], self.places, own_mounts=False, **given)
        with everywhere() as net:
            found |= batch("net", net)
        for case in self.cases.values():
            if "spare" in case.flags:
                found[case.id] = {"verdict": "undecided", "sign": "", "note": "never run unconfined"}
            elif case.alone():
                # Something else may have had the port or the moment: that it works once is the proof.
                for _ in range(6):
                    found[case.id] = self.control_alone(case, given)
                    if found[case.id]["verdict"] == "open" or case.control:
                        break
        os.close(decoy)
        return found

    def control_alone(self, case, given):
        self.fresh_victim()
        if case.id in EVERYBODY:
            return self.control_everybody(case, given)
        box = BOX if "box" in case.flags else ()
        if case.area == "resources" or case.id in DAEMONS:
            box += SMALL
        with self.watch(case) as seen:
            places = {**self.places, "small": 1}
            found = catalogue.unconfined(self.program, [case.id], places, prefix=box, **given).get(case.id, catalogue.LOST)
        if case.id in VICTIM + DAEMONS + LEAKS + SERVES + tuple(LOCKS):
            effect = self.effect(case, seen, settle=False)
            found = {**found, "verdict": "open" if effect else "undecided", "note": effect or "no effect outside"}
        if case.id in DAEMONS:
            self.decoys.end_left()
        return found

    def control_everybody(self, case, given):
        """In a PID namespace of its own, with a victim in it. Whoever attacks everybody may end or stop itself, too."""
        argv = [*BOX, "/usr/bin/python3", "-c", WITNESS, str(self.program), "--only", case.id, *catalogue.arguments(self.places)]
        _, status = catalogue.bounded(argv, 60, cwd=given["where"])
        return {"verdict": "open" if status == 7 else "undecided", "sign": "", "note": f"status {status}"}

    def close(self):
        if self.launcher:
            self.launcher.stop()
        if self.decoys:
            self.decoys.close()


def settled(ids, run, shows):
    """What `run` finds of these cases. An attack that a slow machine ends before its answer has shown nothing: it is tried again, twice."""
    found = run(ids)
    for _ in range(2):
        again = [id for id in ids if not shows(id, found.get(id, catalogue.LOST))]
        if not 0 < len(again) <= MANY:
            break
        found |= run(again)
    return found


def first_child(pid):
    return next(p for p, (parent, _, _) in processes().items() if parent == pid)


@contextlib.contextmanager
def everywhere():
    """A network namespace where every address leads to a server; yields the prefix that enters it."""
    network = (
        "ip link set lo up; ip link add d0 type dummy && ip addr add 203.0.113.1/24 dev d0 && ip link set d0 up; "
        "ip route add local 0.0.0.0/0 dev lo; ip -6 route add local ::/0 dev lo; "
        "ip route add 224.0.0.0/4 dev d0 2>/dev/null; exec \"$0\" -c \"$1\""
    )
    server = subprocess.Popen(
        ["unshare", "--net", "--", "sh", "-c", network, "/usr/bin/python3", EVERYWHERE % (FULL_PORTS,)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert server.stdout.readline() == b"ready\n"
        yield ("nsenter", f"--net=/proc/{server.pid}/ns/net", "--")
    finally:
        server.kill()
        server.wait()
