"""browser-use's own agent, unmodified, with a model that answers from a script: what it is shown is what it answers by. ADDRESS, KEY and PAGE
come by the environment; prints what came of it as JSON."""
import asyncio
import json
import os
import re

os.environ.update(ANONYMIZED_TELEMETRY="false", BROWSER_USE_CLOUD_SYNC="false", BROWSER_USE_LOGGING_LEVEL="error", BROWSER_USE_VERSION_CHECK="false")
from browser_use import Agent, BrowserSession  # noqa: E402
from browser_use.llm.views import ChatInvokeCompletion  # noqa: E402

PAGE = os.environ["PAGE"]


class Script:
    """One action a step. The number of an element is looked up in the state that the agent shows its model."""

    model = provider = name = model_name = "script"
    _verified_api_keys = True

    def __init__(self):
        self.steps = [lambda state: {"navigate": {"url": PAGE, "new_tab": True}},
                      lambda state: {"click": {"index": number(state, "id=press")}},
                      lambda state: {"done": {"text": "clicked" if "pressed" in state else state, "success": True}}]
        self.pictures = 0

    async def ainvoke(self, messages, output_format=None, **_):
        state = messages[-1].content
        parts = state if isinstance(state, list) else []
        self.pictures += sum(part.type == "image_url" for part in parts)
        text = "".join(part.text for part in parts if part.type == "text") if parts else state
        action = self.steps.pop(0)(text)
        answer = {"thinking": "", "evaluation_previous_goal": "", "memory": "", "next_goal": "", "action": [action]}
        return ChatInvokeCompletion(completion=output_format.model_validate(answer), usage=None)


def number(state, mark):
    found = re.search(rf"\[(\d+)\]<[^>\n]*{mark}\b", state)
    assert found, f"no {mark} in what the model is shown:\n{state}"
    return int(found[1])


async def main():
    session = BrowserSession(cdp_url=os.environ["ADDRESS"], headers={"X-AIO-API-Key": os.environ["KEY"]})
    script = Script()
    agent = Agent(task="press the button", llm=script, browser_session=session, use_judge=False, use_vision=True)
    history = await agent.run(max_steps=6)
    print(json.dumps({"result": history.final_result(), "errors": [error for error in history.errors() if error], "shown": script.pictures > 0}))


asyncio.run(main())
