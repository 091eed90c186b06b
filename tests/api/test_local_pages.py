"""Tasks as the evaluation of AIO's agents has them: the shell writes a page below /tmp, calls of the browser work on it as file:///tmp/..., and
the shell reads what came of it."""
import json

import pytest
from screen import act, needs_desktop

pytestmark = needs_desktop
FORM = """<title>Order</title><form onsubmit="event.preventDefault(); const f = new FormData(this);
 document.getElementById('out').textContent = [f.get('name'), f.get('size'), f.getAll('extra').join('+'), f.get('when')].join('|')">
<input name=name><select name=size><option value=s>Small</option><option value=l>Large</option></select>
<input type=checkbox name=extra value=cheese id=cheese><input type=checkbox name=extra value=olives id=olives checked>
<input type=date name=when><button id=go>Send</button></form><p id=out></p>"""
TABLE = "<title>Staff</title><h1>Staff</h1><table><tr><th>Name</th><th>Pay</th></tr>" + "".join(
    f"<tr><td>{name}</td><td>{pay}</td></tr>" for name, pay in (("Ada", 120), ("Bo", 95), ("Cy", 101))) + "</table>"
LATE = """<title>Late</title><button id=load onclick="setTimeout(() => { document.body.insertAdjacentHTML('beforeend', '<p id=late>arrived</p>') }, 400)">Load</button>"""
LIST = """<title>List</title><input id=new><ul id=list></ul><script>const list = document.getElementById('list'), box = document.getElementById('new');
box.onkeydown = (event) => { if (event.key === 'Enter') { const item = document.createElement('li'); item.textContent = box.value; list.append(item); box.value = '' } };
list.ondblclick = (event) => event.target.remove()</script>"""
LONG = "<title>Long</title>" + "<p>filler</p>" * 400 + "<p id=end>the needle is here</p>"
SAVE = """<title>Save</title><a id=save>csv</a><script>document.getElementById('save').href = URL.createObjectURL(new Blob(['a,b\\n1,2\\n']));
document.getElementById('save').download = 'table.csv'</script>"""
LOAD = """<title>Load</title><input type=file id=file onchange="files[0].text().then((t) => document.getElementById('out').textContent = t.length + ':' + t)"><p id=out></p>"""
CALC = "<title>Calculator</title><output id=out>0</output>" + "".join(
    f"<button style='width:80px;height:80px' onclick=\"press('{key}')\">{key}</button>" for key in "789+456-123=0C") + \
    "<script>let text = ''; function press(key) { text = key === 'C' ? '' : key === '=' ? String(Function('return ' + text)()) : text + key; document.getElementById('out').textContent = text || '0' }</script>"


class Task:
    def __init__(self, api, folder):
        self.api, self.folder = api, folder

    def write(self, name, text):
        self.api.data("/v1/bash/exec", {"command": f"cat > {self.folder}/{name} <<'END'\n{text}\nEND"})

    def open(self, text, name="page.html"):
        self.write(name, text)
        return self("navigate", url=f"file://{self.folder}/{name}")

    def __call__(self, operation, **body):
        return self.api.data(f"/v1/browser/page/{operation}", body)

    def text(self, selector="#out"):
        return self("evaluate", expression=f"document.querySelector({json.dumps(selector)}).textContent")

    def shell(self, command):
        return self.api.bash(command)["stdout"]


@pytest.fixture
def task(api):
    folder = api.bash("mktemp -d /tmp/task-XXXXXX")["stdout"].strip()
    yield Task(api, folder)
    api.bash(f"rm -rf {folder} ~/Downloads/table*.csv")


def test_a_form_is_filled_and_sent(task):
    assert task.open(FORM)["title"] == "Order"
    for selector, text in (("[name=name]", "Grace Hopper"), ("[name=when]", "2026-12-24")):
        task("fill", selector=selector, text=text)
    task("select_option", selector="[name=size]", value="l")
    task("check", selector="#cheese")
    task("uncheck", selector="#olives")
    task("click", selector="#go")
    assert task.text() == "Grace Hopper|l|cheese|2026-12-24"


def test_a_form_is_filled_by_the_numbers_of_its_elements(task):
    task.open(FORM)
    found = task.api.data("/v1/browser/page/elements", method="GET")
    index = next(one["index"] for one in found if one["tag"] == "input" and one["name"] == "" and one["type"] in ("", "text", None))
    task("fill", index=index, text="Ada")
    task("press_key", key="Enter")
    assert task.text().startswith("Ada|s|olives")


def test_a_table_is_read(task):
    task.open(TABLE)
    text = task.api.data("/v1/browser/page/markdown", method="GET")["markdown"]
    assert "Ada" in text and "120" in text
    best = task("evaluate", expression="[...document.querySelectorAll('tr')].slice(1).map(r => [+r.cells[1].textContent, r.cells[0].textContent]).sort((a, b) => b[0] - a[0])[0][1]")
    task.api.data("/v1/file/write", {"file": f"{task.folder}/best.txt", "content": best})
    assert task.shell(f"cat {task.folder}/best.txt") == "Ada"


def test_what_comes_later_is_waited_for(task):
    task.open(LATE)
    task("click", selector="#load")
    task("wait", type="selector", selector="#late")
    assert task.text("#late") == "arrived"


def test_a_list_is_kept_by_keys_and_the_mouse(task):
    task.open(LIST)
    for item in ("milk", "bread", "eggs"):
        task("click", selector="#new")
        task("type", text=item)
        task("press_key", key="Enter")
    spot = task("evaluate", expression="(({x, y, width, height}) => ({x: x + width / 4 + screenX + (outerWidth - innerWidth) / 2, y: y + height / 2 + screenY + outerHeight - innerHeight}))"
                                       "(document.querySelectorAll('li')[1].getBoundingClientRect())")
    act(task.api, "DOUBLE_CLICK", x=round(spot["x"]), y=round(spot["y"]))
    assert task("evaluate", expression="[...document.querySelectorAll('li')].map((item) => item.textContent)") == ["milk", "eggs"]


def test_a_needle_far_below_is_found_and_shown(task):
    task.open(LONG)
    assert task("find_text", keyword="needle")
    task("scroll_to_element", selector="#end")
    assert task("evaluate", expression="document.getElementById('end').getBoundingClientRect().top < innerHeight")


def test_links_between_pages_and_the_way_back(task):
    task.write("other.html", "<title>Other</title><a href=page.html>back</a>")
    task.open("<title>First</title><a id=on href=other.html>on</a>")
    task("click", selector="#on")
    assert task("evaluate", expression="document.title") == "Other"
    task("back")
    assert task("evaluate", expression="document.title") == "First"


def test_two_pages_in_two_tabs(task):
    task.open(TABLE)
    task.write("second.html", "<title>Second</title>")
    opened = task.api.data("/v1/browser/tabs", {"url": f"file://{task.folder}/second.html"})
    tabs = task.api.data("/v1/browser/tabs", method="GET")
    assert {"Staff", "Second"} <= {tab["title"] for tab in tabs}
    task("evaluate", expression="document.title = 'Renamed'")
    assert "Renamed" in {tab["title"] for tab in task.api.data("/v1/browser/tabs", method="GET")}
    task.api.data(f"/v1/browser/tabs/{opened['index']}", method="DELETE")


def test_a_file_that_a_page_makes_is_read_by_the_shell(task):
    task.open(SAVE)
    task("click", selector="#save")
    assert task.shell("for i in $(seq 100); do [ -s ~/Downloads/table.csv ] && break; sleep 0.1; done; cat ~/Downloads/table.csv") == "a,b\n1,2\n"


def test_a_file_that_the_shell_made_is_read_by_a_page(task):
    task.open(LOAD)
    task.shell(f"seq 3 > {task.folder}/numbers.txt")
    task("upload_file", selector="#file", files=[f"{task.folder}/numbers.txt"])
    task("wait", type="function", expression="document.getElementById('out').textContent !== ''")
    assert task.text() == "6:1\n2\n3\n"


def test_a_calculator_is_used_by_its_buttons(task):
    task.open(CALC)
    for key in "7+8=":
        task("evaluate", expression=f"[...document.querySelectorAll('button')].find((b) => b.textContent === '{key}').id = 'wanted'")
        task("click", selector="#wanted")
        task("evaluate", expression="document.getElementById('wanted').removeAttribute('id')")
    assert task.text() == "15"


def test_a_page_is_changed_by_the_shell_and_loaded_again(task):
    task.open("<title>before</title>")
    task.shell(f"sed -i s/before/after/ {task.folder}/page.html")
    assert task("reload")["title"] == "after"
    picture = task.api.http.get("/v1/browser/page/screenshot")
    assert picture.content[:4] == b"\x89PNG"
