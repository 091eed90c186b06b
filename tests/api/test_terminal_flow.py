"""/v1/shell/ws for clients that ask for more: offsets, acknowledgements, resumption, several viewers, read-only ones."""
import asyncio
import json

import pytest
from conftest import Api
from test_outlive import resident
from test_shell_ws import Terminal

WINDOW = 128 * 1024


class Flow(Terminal):
    """A client that acknowledges; `offset` is where its next byte begins. In flow=1, `text` has all output without gaps."""

    def __init__(self, api, session="", query="", acknowledges=True):
        super().__init__(api, "&flow=1" + (f"&session_id={session}" if session else "") + query)
        self.acknowledges, self.offset, self.gaps, self.sizes, self.errors = acknowledges, 0, [], [], []

    async def greeting(self) -> dict:
        first, self.ready = await self.message(), await self.message()
        assert (first["type"], self.ready["type"]) == ("session_id", "ready")
        self.session, self.offset = first["data"], self.ready["offset"]
        return self.ready

    async def take(self, seconds=60.0):
        message = json.loads(await asyncio.wait_for(self.ws.recv(), seconds))
        if message["type"] == "output":
            assert message["offset"] >= self.offset + len(message["data"].encode()) > self.offset
            self.text += message["data"]
            self.offset = message["offset"]
            if self.acknowledges:
                await self.send(type="ack", data={"offset": self.offset})
        {"gap": self.gaps, "size": self.sizes, "error": self.errors}.get(message["type"], []).append(message.get("data"))
        return message

    async def until(self, wanted: str) -> str:
        while wanted not in self.text:
            await self.take()
        return self.text

    async def quiet(self, seconds=1.0):
        """Takes what comes until nothing comes any more."""
        try:
            while True:
                await self.take(seconds)
        except asyncio.TimeoutError:
            pass

    async def prompt(self):
        await self.greeting()
        await self.until("$ ")
        return self

    async def run(self, line: str):
        await self.send(type="input", data=line + "\r")

    def cut(self):
        """As when the network is gone: no closing handshake."""
        self.ws.transport.abort()


def go(use):
    return asyncio.run(use)


def test_ready_and_output_carry_offsets(api):
    async def use():
        async with Flow(api) as t:
            ready = await t.greeting()
            await t.until("$ ")
            return ready, t
    ready, t = go(use())
    assert ready | {"end": 0} == {"type": "ready", "data": "Terminal ready", "offset": 0, "end": 0, "window": WINDOW,
                                  "readonly": False, "cols": 80, "rows": 24}
    assert t.offset == len(t.text.encode())


def test_a_client_that_asks_for_nothing_sees_nothing_new(api):
    async def use():
        async with Flow(api) as other, Terminal(api, f"&session_id={(await other.prompt()).session}") as t:
            seen = [await t.message() for _ in range(3)]
            await other.send(type="resize", data={"cols": 99, "rows": 20})
            await other.run("seq 100000; echo en$((1))d")
            while "en1d" not in t.text:
                seen.append(await t.message())
                t.text += seen[-1].get("data", "")
                if seen[-1]["type"] == "output":
                    await other.quiet(0.001)
            return seen
    seen = go(use())
    assert {m["type"] for m in seen[2:]} <= {"output", "ping"} and all(set(m) == {"type", "data"} for m in seen if m["type"] == "output")


@pytest.mark.parametrize("what, each", [("seq 250000", "{}\r\n"), ("python3 -c 'for i in range(1, 60001): print(i, \"\u20ac\U0001F600\")'", "{} \u20ac\U0001F600\r\n")])
def test_a_connection_that_is_cut_again_and_again_goes_on_at_its_byte(api, what, each):
    """The program is in the middle of its output all the time; there is no pause in which nothing could be lost."""
    async def use():
        async with Flow(api) as t:
            await t.prompt()
            await t.run(f"echo be$((1))gin; {what}; echo en$((1))d")
            await t.until("be1gin\r\n")
        text, session, offset, cuts = t.text, t.session, t.offset, 0
        while "en1d" not in text:
            async with Flow(api, session, f"&offset={offset}") as t:
                assert (await t.greeting())["offset"] == offset
                while len(t.text) < 40_000 and "en1d" not in text + t.text:
                    await t.take()
                text, offset, cuts = text + t.text, t.offset, cuts + 1
                assert not t.gaps
                t.cut()
        return text, cuts
    text, cuts = go(use())
    count = 250000 if what.startswith("seq") else 60000
    assert text.split("be1gin\r\n")[1].split("en1d")[0] == "".join(each.format(i) for i in range(1, count + 1))
    assert cuts > 3


def test_an_offset_that_is_no_longer_kept_is_answered_with_the_gap(api):
    async def use():
        async with Terminal(api) as old:
            session = await old.begin()
            await old.send(type="input", data="python3 -c \"print('\u20ac' * 200000)\"; echo en$((1))d\r")
            await old.until("en1d")
        async with Flow(api, session, "&offset=3") as t:
            await t.greeting()
            await t.until("en1d")
            return t
    t = go(use())
    (gap,) = t.gaps
    assert gap["from"] == 3 and gap["to"] > 100_000
    assert t.text.startswith("\u20ac") and "\ufffd" not in t.text
    assert t.offset == gap["to"] + len(t.text.encode())


def test_an_offset_of_another_session_is_answered_with_a_gap_backwards(api):
    async def use():
        async with Flow(api) as first, Flow(api, (await first.prompt()).session, "&offset=999999999") as t:
            ready = await t.greeting()
            await t.until("$ ")
            return ready, t
    ready, t = go(use())
    assert t.gaps == [{"from": 999999999, "to": ready["offset"]}] and ready["offset"] == 0


@pytest.mark.parametrize("offset", ["-1", "1x", "0x10", "9" * 30, "1.5", "%201"])
def test_an_offset_that_is_no_number_is_refused(api, offset):
    async def use():
        async with Terminal(api, f"&flow=1&offset={offset}") as t:
            return await t.message()
    assert go(use()) == {"type": "error", "data": "offset must be a number of bytes"}


def test_without_acknowledgements_a_window_is_sent_and_the_program_waits(api):
    async def use():
        async with Flow(api, acknowledges=False) as t:
            await t.prompt()
            await t.send(type="ack", data={"offset": t.offset})
            begun = t.offset
            await t.run("seq 300000; echo en$((1))d")
            while t.offset < begun + WINDOW - 4:
                await t.take()
            await t.quiet()
            stood = t.offset
            ends = []
            while len(ends) < 2 or ends[-2] != ends[-1]:  # on a slow machine it takes a while until all has been read that is
                async with Flow(api, t.session, "&readonly=1") as looker:
                    end = (await looker.greeting())["end"]
                    while looker.offset < end:
                        await looker.take()
                    await looker.quiet(0.5)
                    ends += [end, looker.offset]
            t.acknowledges = True
            await t.send(type="ack", data={"offset": t.offset})
            await t.until("en1d")
            return begun, stood, ends, t
    begun, stood, ends, t = go(use())
    assert WINDOW - 4 <= stood - begun <= WINDOW
    assert ends[-1] < begun + 2 * WINDOW
    assert "299999\r\n300000\r\n" in t.text and not t.gaps


@pytest.mark.parametrize("ack", [{"data": {}}, {"data": {"offset": -1}}, {"data": {"offset": "x"}}, {"offset": 1.5}, {}])
def test_an_odd_acknowledgement_is_told_and_changes_nothing(api, ack):
    async def use():
        async with Flow(api) as t:
            await t.prompt()
            await t.send(type="ack", **ack)
            await t.run("echo on-$((1+1))")
            await t.until("on-2")
            return t.errors
    assert len(go(use())) == 1


def test_an_acknowledgement_of_bytes_that_were_never_sent_opens_no_window(api):
    async def use():
        async with Flow(api, acknowledges=False) as t:
            await t.prompt()
            await t.send(type="ack", data={"offset": 2**50})
            begun = t.offset
            await t.run("seq 300000")
            await t.quiet()
            return t.offset - begun
    assert go(use()) <= WINDOW


def test_all_viewers_see_everything_and_each_new_size(api):
    async def use():
        async with Flow(api) as a, Flow(api, (await a.prompt()).session) as b:
            await b.greeting()
            await b.send(type="resize", data={"cols": 99, "rows": 33})
            await b.run("echo $((2+3))-$(stty size)")
            await a.until("5-33 99"), await b.until("5-33 99")
            return a, b
    a, b = go(use())
    assert a.sizes[-1] == {"cols": 99, "rows": 33} and a.text == b.text


def test_a_slow_viewer_gets_a_gap_instead_of_slowing_the_others(api):
    async def use():
        async with Flow(api) as fast, Flow(api, (await fast.prompt()).session, acknowledges=False) as slow:
            await slow.greeting()
            await fast.run("seq 200000; echo en$((1))d")
            await fast.until("en1d")
            slow.acknowledges = True
            await slow.quiet(0.3)
            await slow.send(type="ack", data={"offset": slow.offset})
            await slow.until("en1d")
            return fast, slow
    fast, slow = go(use())
    # Behind the last word each may have come a different way into the prompt.
    assert not fast.gaps and len(slow.gaps) == 1 and slow.gaps[0]["to"] <= fast.offset


@pytest.mark.parametrize("spelling", ["1", "true", "", "yes"])
def test_a_read_only_viewer_sees_and_cannot_type_or_resize(api, spelling):
    async def use():
        async with Flow(api) as t, Flow(api, (await t.prompt()).session, f"&readonly={spelling}") as looker:
            assert (await looker.greeting())["readonly"] is True
            await looker.run("echo owned-$((1+1))")
            await looker.send(type="resize", data={"cols": 7, "rows": 7})
            while len(looker.errors) < 2:
                await looker.take()
            await t.run("echo size-$(stty size)")
            await looker.until("size-24 80")
            return looker
    looker = go(use())
    assert set(looker.errors) == {"this terminal is read-only"} and "owned-2" not in looker.text


def test_a_read_only_viewer_never_slows_the_program(api):
    async def use():
        async with Flow(api) as t, Flow(api, (await t.prompt()).session, "&readonly=1", acknowledges=False) as looker:
            await looker.greeting()
            await t.run("seq 200000; echo en$((1))d")
            await t.until("en1d")
            t.cut()
            await looker.quiet(0.3)
            return t
    assert not go(use()).gaps


def test_a_read_only_terminal_needs_a_session(api):
    async def use():
        async with Terminal(api, "&readonly=1") as t:
            return await t.message()
    assert go(use())["data"] == "a read-only terminal needs session_id"


def test_a_stalled_viewer_does_not_slow_a_command_of_the_api(api):
    async def use():
        async with Flow(api, acknowledges=False) as t:
            await t.prompt()
            done = await asyncio.to_thread(api.shell, "seq 200000 | tail -c 1000000; echo en$((1))d", id=t.session, timeout=25)
            t.cut()  # it has not read
            return done
    done = go(use())
    assert done["status"] == "completed" and done["output"].endswith("en1d")


@pytest.mark.parametrize("flow", [True, False])
def test_200_mb_of_output_and_a_stalled_reader_leave_the_memory_flat(launch, flow):
    """With acknowledgements the program first waits for the viewer, for as long as one is waited for, and then goes on. The API's copy of a
    command's output (8 MiB by default) is kept small, so that what is seen is the viewer's."""
    here = launch(CAISSON_OUTPUT_CAP_BYTES="65536")
    api, agent = Api(here.url, here.key), here.agent_pid
    api.http.timeout = 900

    async def use():
        async with Flow(api, acknowledges=False) if flow else Terminal(api) as t:
            await (t.prompt() if flow else t.begin())
            other = api.data("/v1/bash/sessions/create")["session_id"]
            before = most = resident(agent)
            await t.send(type="input", data="head -c 200000000 /dev/zero | tr '\\0' a; touch ~/done\r")
            t.ws.transport.pause_reading()
            over = asyncio.create_task(asyncio.to_thread(api.bash, "until rm ~/done 2>/dev/null; do sleep .1; done", session_id=other))
            while not over.done():
                most = max(most, resident(agent))
                await asyncio.wait([over], timeout=0.05)
            t.ws.transport.abort()
            return before, most, over.result()["exit_code"]
    before, most, code = go(use())
    print(f"flow={flow}: {before} KiB before, at most {most} KiB")
    assert code == 0 and most < before + 6 * 1024
