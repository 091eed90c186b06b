"""caisson-display at its bounds: queues, malformed frames, X servers that have ended, stand still or do not answer."""
import os
import re
import signal
import socket
import time

import pytest
from display import Refused, Worker, Xvnc


def test_while_an_action_waits_other_operations_are_answered(worker):
    wait = worker.ask("action", action="WAIT", duration=60)
    assert worker.call("info")[0]["width"] == 1280
    assert worker.call("screenshot", format="jpeg")[1]
    assert wait not in worker.answers


def test_actions_come_one_after_the_other(at, client):
    numbers = [at.ask("action", action="CLICK", x=x, y=5, num_clicks=2) for x in range(10, 20)]
    for number in numbers:
        at.answer(number)
    assert [e[3] for e in client.events() if e[:2] == ("button", "press")] == [str(x) for x in range(10, 20) for _ in range(2)]


def test_more_than_64_actions_are_refused(worker):
    numbers = [worker.ask("action", action="WAIT", duration=60) for _ in range(64)]
    with pytest.raises(Refused) as refused:
        worker.act("MOVE_TO", x=1, y=1)
    assert refused.value.code == "limit"
    assert not set(numbers) & set(worker.answers)


@pytest.mark.parametrize("frame", [b"\xff\xff\xff\xff", b"\x02\0\0\0[]", b"\x03\0\0\0{} ", b'\x02\0\0\0{}', b'\x0a\0\0\0{"id":-1}  ',
                                   b'\x0d\0\0\0{"id":1,"id":2', b"\0\0\0\0"])
def test_a_malformed_frame_ends_the_worker(worker, frame):
    worker.process.stdin.write(frame + b" " * 16)
    worker.process.stdin.flush()
    status, said = worker.ended()
    assert status == 1 and said.count("\n") == 1


@pytest.mark.parametrize("op, members", [
    ("nothing", {}), ("info", {"x": 1}), ("action", {}), ("action", {"action": "click"}), ("clipboard_get", {"text": "a"}),
    ("action", {"action": "CLICK", "z": 1}), (5, {})])
def test_what_is_unknown_is_refused_and_the_worker_goes_on(worker, op, members):
    with pytest.raises(Refused) as refused:
        worker.call(op, **members)
    assert refused.value.code == "invalid_argument"
    assert worker.call("info")[0]["height"] == 1024


def test_answers_to_a_hundred_pictures_at_once_all_come(worker, client):
    numbers = [worker.ask("screenshot", format="png") for _ in range(100)]
    assert all(len(worker.answer(number)[1]) > 1000 for number in numbers)


def test_when_stdin_ends_the_worker_ends(worker):
    worker.process.stdin.close()
    assert worker.ended() == (0, "")


def test_without_a_server_the_worker_ends_with_status_3(program):
    with Worker(":65000", "--wait-ms", "200") as worker:
        status, said = worker.ended()
        assert status == 3 and re.fullmatch("caisson-display: connect to .*\n", said)


def test_a_server_that_never_answers_is_an_end_with_status_3(program):
    path = "/tmp/.X11-unix/X64999"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        try:
            listener.listen()
            with Worker(":64999", "--wait-ms", "200") as worker:
                assert worker.ended() == (3, "caisson-display: the X server did not answer in time\n")
        finally:
            os.unlink(path)


def test_a_server_that_is_killed_ends_the_worker_with_status_3(program):
    with Xvnc() as own, Worker(own.name) as worker:
        worker.call("info")
        own.process.kill()
        status, said = worker.ended()
        assert status == 3 and said.startswith("caisson-display: ") and said.count("\n") == 1


def test_a_server_that_stops_gives_errors_until_it_goes_on(program):
    with Xvnc() as own, Worker(own.name, "--answer-ms", "300") as worker:
        worker.call("info")
        own.process.send_signal(signal.SIGSTOP)
        asked = [worker.ask("info"), worker.ask("screenshot"), worker.ask("clipboard_get"), worker.ask("clipboard_set", b"x" * 900_000),
                 worker.ask("resize", width=640, height=480), worker.ask("action", b"x", action="TYPING"),
                 *(worker.ask("action", action="CLICK") for _ in range(50))]
        for number in asked:
            with pytest.raises(Refused) as refused:
                worker.answer(number)
            assert refused.value.code == "timeout"
        own.process.send_signal(signal.SIGCONT)
        end = time.monotonic() + 60
        while True:
            try:
                assert worker.call("info")[0]["width"] > 0
                break
            except Refused:
                assert time.monotonic() < end
