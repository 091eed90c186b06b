"""The commands of `aio browser`: one operation each."""
from __future__ import annotations

from .table import Arg, Command, number, whole

PAGE = "/v1/browser/page"
SELECTOR = Arg("selector", "selector of playwright: CSS, text=…, xpath=…")
MAYBE_SELECTOR = SELECTOR._replace(nargs="?")
INDEX = Arg("--index", "number of `aio browser elements`, instead of a selector", whole(0, 1_000_000))
X_Y = (Arg("--x", "pixels from the left of the page, instead of a selector", number(-100000, 100000)),
       Arg("--y", "pixels from its top", number(-100000, 100000)))
TIMEOUT = Arg("--timeout", "seconds", number(0.001, 3600))
TAB = Arg("index", "number of `aio browser tabs`", whole(0, 10000))
SAVE = Arg("save_path", "file of the workspace", metavar="PATH")
STATES = ("load", "domcontentloaded", "networkidle", "commit")
WAITS = ("selector", "load", "url", "network_idle", "download", "function", "response", "request", "timeout")


def page(name: str, does: str, operation: str, *args: Arg, **more) -> Command:
    method, _, path = operation.partition(" ")
    return Command("browser", name, does, f"{method} {PAGE}/{path}", args, **more)


def tab(name: str, does: str, operation: str, *args: Arg, **more) -> Command:
    method, _, path = operation.partition(" ")
    return Command("browser", name, does, f"{method} /v1/browser/{path}", args, **more)


def browser(picture: tuple) -> tuple:
    return (
        page("navigate", "open an address", "POST navigate", Arg("url", "address"),
             Arg("--wait-until", "state of the page", choices=STATES), TIMEOUT, show="place"),
        page("back", "one page back", "POST back"),
        page("forward", "one page forward", "POST forward"),
        page("reload", "load the page again", "POST reload"),
        page("screenshot", "picture of the page", "GET screenshot", *picture, Arg("--full-page", "all of it", bool), run="picture.save"),
        page("text", "the page's text", "GET text"),
        page("markdown", "the page as Markdown", "GET markdown", show="markdown"),
        page("html", "the page's HTML", "GET html", Arg("--outer", "with the element itself", bool)),
        page("elements", "what can be clicked and filled, with numbers", "GET elements", show="elements"),
        page("find", "places of a text", "POST find_text", Arg("keyword", "text")),
        page("click", "click", "POST click", MAYBE_SELECTOR, INDEX, *X_Y, Arg("--button", "of the mouse", choices=("left", "right", "middle")),
             Arg("--count", "1 to 3 clicks", whole(1, 3), "click_count")),
        page("fill", "give a field a text", "POST fill", Arg("text", "the text that it then has"), MAYBE_SELECTOR, INDEX),
        page("type", "type where the focus is", "POST type", Arg("text", "what is typed"),
             Arg("--delay", "milliseconds between keys", number(0, 10000))),
        page("press", "press a key", "POST press_key", Arg("key", "such as Enter or ctrl+a")),
        page("hover", "move the pointer over", "POST hover", MAYBE_SELECTOR, *X_Y),
        page("select", "choose in a list", "POST select_option", SELECTOR, Arg("--value", "its value"), Arg("--label", "its text"),
             Arg("--index", "its place", whole(0, 1_000_000))),
        page("check", "check a box", "POST check", SELECTOR),
        page("uncheck", "uncheck a box", "POST uncheck", SELECTOR),
        page("upload", "give files of the workspace to a field", "POST upload_file", SELECTOR, Arg("files", "paths", nargs="+", metavar="PATH")),
        page("scroll", "scroll", "POST scroll", Arg("direction", "where to", choices=("up", "down", "left", "right"), nargs="?"),
             Arg("amount", "pixels", whole(0, 1_000_000), nargs="?")),
        page("scroll-to", "scroll an element into view", "POST scroll_to_element", SELECTOR),
        page("evaluate", "run JavaScript in the page", "POST evaluate", Arg("expression", "a function is called, a promise awaited")),
        page("wait", "wait for something of the page", "POST wait", Arg("type", "what", choices=WAITS), Arg("--selector", "of selector"),
             Arg("--state", "of selector or load"), Arg("--url", "of url"), Arg("--url-pattern", "of response and request"),
             Arg("--expression", "of function"), Arg("--save-path", "of download: file of the workspace", metavar="PATH"), TIMEOUT),
        page("console", "messages of the page's console", "GET console", Arg("--clear", "forget them", bool)),
        tab("tabs", "open tabs", "GET tabs", show="tabs"),
        tab("new-tab", "open a tab", "POST tabs", Arg("url", "address", nargs="?")),
        tab("switch-tab", "show a tab", "PUT tabs/{index}/activate", TAB),
        tab("close-tab", "close a tab", "DELETE tabs/{index}", TAB),
        tab("cookies", "cookies", "GET cookies", Arg("--urls", "of these addresses, with commas between")),
        tab("clear-cookies", "forget all cookies", "DELETE cookies"),
        tab("save-state", "cookies and storage into a file", "POST state/save", SAVE._replace(names="path")),
        tab("load-state", "cookies and storage from a file", "POST state/load", SAVE._replace(names="path")),
        tab("requests", "requests of the page", "GET network/requests", Arg("--filter", "part of the address"),
            Arg("--limit", "at most so many", whole(1, 10000))),
        tab("info", "addresses for DevTools and for a viewer, sizes", "GET info"),
        tab("restart", "start the browser anew", "POST restart", Arg("--mode", "hard: its process, too", choices=("soft", "hard"))),
    )
