"""POST /run_code and /run_jupyter as SandboxFusion's clients send them."""
import base64
import concurrent.futures
import secrets
import threading

import pytest
from conftest import eventually

PROGRAMS = {  # language: a program that copies a line of its input
    "python": "print('got', input())",
    "nodejs": "console.log('got', require('fs').readFileSync(0, 'utf8').trim())",
    "typescript": "enum Word { got = 'got' }\nconst line: string = require('fs').readFileSync(0, 'utf8').trim();\n"
                  "console.log(Word.got, line as string)",
    "bash": "read x; echo got $x",
    "c": '#include <stdio.h>\nint main(void) { char x[99]; scanf("%98s", x); printf("got %s\\n", x); return 0; }',
    "cpp": '#include <iostream>\nint main() { std::string x; std::cin >> x; std::cout << "got " << x << "\\n"; }',
    "go": 'package main\nimport "fmt"\nfunc main() { var x string; fmt.Scan(&x); fmt.Println("got", x) }',
    "java": "public class Main { public static void main(String[] a) {\n"
            'System.out.println("got " + new java.util.Scanner(System.in).next()); } }',
    "rust": 'fn main() { let mut x = String::new(); std::io::stdin().read_line(&mut x).unwrap(); println!("got {}", x.trim()); }',
    "perl": "my $x = <STDIN>; print 'got ', $x;",
    "php": "<?php echo 'got ', fgets(STDIN);",
    "ruby": "puts 'got ' + gets",
    "lua": "print('got ' .. io.read())",
    "R": "cat('got', readLines(file('stdin'))[1], '\\n')",
    "julia": 'println("got ", readline())',
}
COMPILED = {"c", "cpp", "go", "java", "rust"}


@pytest.fixture
def judge(api):
    def ask(code: str, language="python", **fields) -> dict:
        answer = api.post("/run_code", {"code": code, "language": language, **fields})
        assert answer.status_code == 200, answer.text
        got = answer.json()
        assert set(got) == {"status", "message", "compile_result", "run_result", "executor_pod_name", "files"}
        return got
    return ask


@pytest.fixture(scope="module")
def offered(api):
    answer = api.post("/run_code", {"code": "", "language": "cobol"}).json()
    assert answer["status"] == "SandboxError"
    return set(answer["message"].split("available: ")[1].split(", "))


@pytest.mark.parametrize("language", PROGRAMS)
def test_a_program_reads_its_input_and_succeeds(judge, offered, language):
    if language not in offered:
        answer = judge(PROGRAMS[language], language)
        assert answer["status"] == "SandboxError" and "python" in answer["message"] and "EXTRA_PACKAGES=" in answer["message"]
        pytest.skip(f"no toolchain of {language} in the sessions' view here: it is answered with the list, as it must be")
    got = judge(PROGRAMS[language], language, stdin="line\n", compile_timeout=240, run_timeout=60)
    assert (got["status"], got["message"]) == ("Success", ""), got
    assert (got["compile_result"] is not None) == (language in COMPILED) or language == "typescript"
    run = got["run_result"]
    assert (run["status"], run["return_code"], run["stdout"].split(), run["stderr"]) == ("Finished", 0, ["got", "line"], "")
    assert 0 < run["execution_time"] < 60


def test_the_answer_is_shaped_as_its_clients_expect(judge):
    got = judge("print('Hello')")
    assert got["compile_result"] is None and got["executor_pod_name"] is None and got["files"] == {}
    # `end` is ours, beside what SandboxFusion tells.
    assert set(got["run_result"]) == {"status", "execution_time", "return_code", "stdout", "stderr", "end"}


def test_a_program_that_fails_is_failed_with_its_code(judge):
    got = judge("import sys\nprint('x')\nsys.exit(3)")
    run = got["run_result"]
    assert (got["status"], run["status"], run["return_code"], run["stdout"]) == ("Failed", "Finished", 3, "x\n")


def test_a_python_error_is_on_stderr_as_python_writes_it(judge):
    run = judge("def f():\n    return 1/0\nf()")["run_result"]
    assert run["return_code"] == 1 and run["stderr"].startswith("Traceback") and 'File "main.py", line 2, in f' in run["stderr"]
    assert run["stderr"].endswith("ZeroDivisionError: division by zero\n") and "caisson" not in run["stderr"]
    assert "SyntaxError" in judge("x = (")["run_result"]["stderr"]


def test_a_signal_is_its_negative_number(judge):
    assert judge("kill -SEGV $$", "bash")["run_result"]["return_code"] == -11
    assert judge("import os; os.kill(os.getpid(), 9)")["run_result"]["return_code"] == -9


def test_a_program_that_does_not_compile_is_not_run(judge, offered):
    if "cpp" not in offered:
        pytest.skip("no C++ compiler in the sessions' view here")
    got = judge("int main() { return x; }", "cpp", compile_timeout=60)
    assert got["status"] == "Failed" and got["run_result"] is None
    assert got["compile_result"]["return_code"] == 1 and "main.cpp:1" in got["compile_result"]["stderr"]


@pytest.mark.parametrize("language, code", [("python", "print('part')\nwhile True: pass"), ("bash", "echo part; sleep 600")])
def test_the_time_of_a_run_is_limited_and_what_it_wrote_is_kept(judge, language, code):
    got = judge(code, language, run_timeout=5)  # on a slow machine it must have begun
    assert (got["status"], got["run_result"]["status"], got["run_result"]["return_code"]) == ("Failed", "TimeLimitExceeded", None)
    assert got["run_result"]["stdout"] == "part\n" and got["run_result"]["execution_time"] >= 5


def test_the_time_of_a_compiler_is_limited(judge, offered):
    if "cpp" not in offered:
        pytest.skip("no C++ compiler in the sessions' view here")
    got = judge("#include <bits/stdc++.h>\n#include <regex>\nint main() {}", "cpp", compile_timeout=0.1)
    assert got["status"] == "Failed" and got["compile_result"]["status"] == "TimeLimitExceeded" and got["run_result"] is None


def test_files_are_there_and_come_back(judge):
    sent = base64.b64encode(bytes(range(256))).decode()
    code = "import os\ndata = open('in/raw', 'rb').read()\nopen('out.bin', 'wb').write(data[::-1])\nos.mkfifo('pipe')"
    got = judge(code, files={"in/raw": sent, "absent": None}, fetch_files=["out.bin", "in/raw", "none", "pipe"])
    assert got["status"] == "Success" and set(got["files"]) == {"out.bin", "in/raw"}
    assert base64.b64decode(got["files"]["out.bin"]) == bytes(range(256))[::-1] and got["files"]["in/raw"] == sent


def test_a_file_that_cannot_be_put_in_place_is_no_verdict(judge):
    got = judge("1", files={"/usr/bin/x": ""})
    assert got["status"] == "SandboxError" and "/usr/bin/x" in got["message"] and got["run_result"] is None


def test_a_judged_program_sees_nothing_of_the_workspace(api, judge):
    api.bash("echo secret > judged.txt; echo secret > /tmp/judged.txt")
    run = judge("import os; print(set(os.listdir(os.environ['HOME'])) - set(os.listdir('/etc/skel')), os.path.exists('/tmp/judged.txt'))")["run_result"]
    assert run["stdout"] == "{'run'} False\n"
    judge("open('/tmp/from-judged', 'w')")
    assert api.bash("ls /tmp/from-judged; rm judged.txt /tmp/judged.txt")["stdout"] == ""


def test_programs_do_not_meet(judge):
    judge("open('/tmp/left', 'w'); open('/dev/shm/left', 'w')")
    run = judge("import os; print(os.path.exists('/tmp/left'), os.path.exists('/dev/shm/left'))")["run_result"]
    assert run["stdout"] == "False False\n"


def test_a_program_that_kills_all_it_can_harms_itself_alone(judge, api):
    got = judge("kill -9 -1; echo still", "bash")
    assert got["status"] in ("Failed", "Success") and got["run_result"]["status"] == "Finished"
    assert judge("print(1)")["run_result"]["stdout"] == "1\n" and api.bash("echo fine")["stdout"] == "fine\n"


def test_memory_stops_at_the_limit(judge):
    got = judge("x = []\nwhile True: x.append(bytearray(b'x' * (32 << 20)))", run_timeout=60)
    assert got["status"] == "Failed" and got["run_result"]["return_code"] != 0


HOLDS = "x = b'x' * (400 << 20)\nprint(len(x) >> 20, flush=True)\nimport time; time.sleep(float(input()))"
CHILDREN_HOLD = """import os, sys, time
for _ in range(8):
    if os.fork() == 0:
        x = b'x' * (50 << 20)
        time.sleep(60)
        os._exit(0)
sys.exit(any(os.wait()[1] for _ in range(8)))"""


@pytest.mark.parametrize("code", [HOLDS, CHILDREN_HOLD], ids=["one process", "its children"])
def test_a_program_does_not_get_more_memory_than_was_asked_for(judge, api, code):
    neighbour = {"language": "python", "session_id": secrets.token_hex(4)}
    api.data("/v1/code/execute", {**neighbour, "code": "kept = bytearray(b'y' * (200 << 20))"})
    got = judge(code, stdin="60", memory_limit_MB=128, run_timeout=50)  # without cgroup v2 the watchdog needs a moment
    run = got["run_result"]
    assert (got["status"], run["status"]) == ("Failed", "Finished") and run["return_code"] != 0, got
    assert api.data("/v1/code/execute", {**neighbour, "code": "print(len(kept) >> 20)"})["stdout"] == "200\n"


@pytest.mark.parametrize("limit", [{}, {"memory_limit_MB": -1}, {"memory_limit_MB": 1 << 50}, {"memory_limit_MB": 600}])
def test_memory_within_the_limit_is_had(judge, limit):
    got = judge(HOLDS, stdin="0", run_timeout=60, **limit)
    assert (got["status"], got["run_result"]["stdout"]) == ("Success", "400\n"), got


def test_the_compiler_has_the_same_memory_as_its_program(judge, offered):
    if "c" not in offered:
        pytest.skip("no C compiler in the sessions' view here")
    got = judge("int main(void) { return 0; }", "c", memory_limit_MB=128, compile_timeout=60)
    assert got["status"] == "Success" and got["compile_result"]["return_code"] == 0


AT_ONCE = {  # 512 MiB in one go; a program that gets them waits, and would be ended by whoever watches
    "python": "x = bytearray(512 << 20)\nimport time; time.sleep(60)",
    "cpp": "#include <unistd.h>\n#include <vector>\nint main() { std::vector<char> x(512 << 20); sleep(60); return x[7]; }"}


@pytest.mark.parametrize("language", AT_ONCE)
def test_an_allocation_beyond_the_limit_fails_by_itself(judge, offered, language):
    if language not in offered:
        pytest.skip(f"no toolchain of {language} in the sessions' view here")
    run = judge(AT_ONCE[language], language, memory_limit_MB=128, run_timeout=50, compile_timeout=240)["run_result"]
    assert run["status"] == "Finished" and run["return_code"] not in (0, -9) and run["execution_time"] < 30, run
    said = {"python": "MemoryError", "cpp": "bad_alloc"}[language]
    assert said in run["stderr"] and run["end"]["reason"] not in ("oom", "memory"), run


DEEP = {  # some 100 MiB of stack
    "python": "import sys\nsys.setrecursionlimit(10**7)\ndef f(n):\n    return 1 + f(n - 1) if n else 0\nprint(f(150000))",
    "cpp": "#include <cstdio>\nint f(int n) { volatile char x[1000]; x[n % 999] = 1; return n ? 1 + f(n - 1) + x[7] * 0 : 0; }\n"
           'int main() { std::printf("%d\\n", f(100000)); }'}


@pytest.mark.parametrize("language", DEEP)
def test_deep_recursion_has_the_memory_that_was_asked_for(judge, offered, language):
    if language not in offered:
        pytest.skip(f"no toolchain of {language} in the sessions' view here")
    run = judge(DEEP[language], language, memory_limit_MB=512, run_timeout=50, compile_timeout=60)["run_result"]
    assert (run["return_code"], run["stdout"]) == (0, {"python": "150000\n", "cpp": "100000\n"}[language]), run


@pytest.mark.parametrize("language, code", [
    ("nodejs", "console.log(1 + 1)"), ("java", "public class Main { public static void main(String[] a) { System.out.println(2); } }")])
def test_runtimes_that_reserve_addresses_start_within_a_limit(judge, offered, language, code):
    if language not in offered:
        pytest.skip(f"no toolchain of {language} in the sessions' view here")
    got = judge(code, language, memory_limit_MB=256, run_timeout=60, compile_timeout=240)
    assert got["run_result"] and got["run_result"]["stdout"] == "2\n", got


def test_threads_start_within_a_limit(judge):
    code = "import threading\nts = [threading.Thread(target=print, args=(1,)) for _ in range(8)]\n[t.start() for t in ts]\n[t.join() for t in ts]"
    said = judge(code, memory_limit_MB=256, run_timeout=60)["run_result"]["stdout"]
    assert sorted(said) == sorted("1\n" * 8)  # each writes twice


def test_less_memory_than_a_session_needs_is_refused_in_words(judge):
    got = judge("print(1)", memory_limit_MB=1)
    assert got["status"] == "SandboxError" and "memory_limit_MB 1" in got["message"] and got["run_result"] is None


def test_a_limit_that_is_no_number_is_422(api):
    answer = api.post("/run_code", {"code": "1", "language": "python", "memory_limit_MB": "much"})
    assert answer.status_code == 422 and answer.json()["detail"][0]["loc"] == ["body", "memory_limit_MB"]


SERVES_ITSELF = """import http.server, threading, urllib.request
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'served ' + self.path.encode())
server = http.server.ThreadingHTTPServer(('127.0.0.1', 8000), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen('http://localhost:8000/x', timeout=25).read().decode())
server.shutdown()"""


def test_programs_test_their_own_servers_side_by_side(judge):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: judge(SERVES_ITSELF, run_timeout=30)["run_result"], range(4)))
    assert [a["stdout"] for a in answers] == ["served /x\n"] * 4, answers  # one port, a loopback of each one's own


def test_what_is_no_file_name_or_no_base64_is_no_verdict_in_any_language(judge):
    for files in ({"/usr/bin/x": ""}, {"a\0b": ""}, {"x": "?"}):
        got = judge("echo 1", "bash", files=files)
        assert got["status"] == "SandboxError" and "cannot be written" in got["message"] and got["run_result"] is None, got


def test_files_are_there_for_every_language(judge):
    sent = base64.b64encode(bytes(range(256))).decode()
    got = judge("read -r x; cat deep/er/raw > copy; echo $x; pwd; ls", "bash", stdin="line\n", files={"deep/er/raw": sent, "absent": None},
                fetch_files=["copy"])
    assert got["run_result"]["stdout"] == "line\n/home/gem/run\ncopy\ndeep\nmain.sh\n" and got["files"] == {"copy": sent}, got


def test_pytest_runs_with_its_arguments(judge, offered):
    if "pytest" not in offered:
        pytest.skip("no pytest in the sessions' view here")
    code = "import pytest\ndef test_good(tmp_path):\n    assert tmp_path.exists()\ndef test_bad():\n    assert 1 == 2\n"
    got = judge(code, "pytest", run_timeout=60)
    assert got["status"] == "Failed" and "1 failed, 1 passed" in got["run_result"]["stdout"], got
    got = judge(code, "pytest", args=["-k", "good", "--junitxml=a report.xml"], fetch_files=["a report.xml"], run_timeout=60)
    assert got["status"] == "Success" and b'tests="1"' in base64.b64decode(got["files"]["a report.xml"]), got


def test_more_programs_than_sessions_wait_for_their_turn(judge):
    with concurrent.futures.ThreadPoolExecutor(80) as pool:  # MAX_CODE_SESSIONS is 64
        answers = list(pool.map(lambda n: judge(f"sleep 0.5; echo {n}", "bash", run_timeout=60), range(80)))
    assert [a["run_result"]["stdout"] for a in answers] == [f"{n}\n" for n in range(80)]


@pytest.fixture
def notebook(api):
    def ask(*cells: str, **fields) -> dict:
        answer = api.post("/run_jupyter", {"cells": cells, **fields})
        assert answer.status_code == 200, answer.text
        got = answer.json()
        assert set(got) == {"status", "message", "driver", "cells", "executor_pod_name", "files"}
        return got
    return ask


def test_cells_of_a_notebook_share_their_variables_and_say_what_they_show(notebook):
    got = notebook("a = 123", "a", "print(a)", 'import sys; sys.stderr.write("stderr message")', 'raise RuntimeError("error message")',
                   "a + 1")
    assert (got["status"], got["message"], got["driver"]["status"], got["driver"]["return_code"]) == ("Success", "", "Finished", 0), got
    cells = got["cells"]
    assert len(cells) == 6 and all(set(c) == {"stdout", "stderr", "display", "error"} for c in cells)
    assert cells[0] == {"stdout": "", "stderr": "", "display": [], "error": []}
    assert cells[1]["display"] == [{"text/plain": "123"}] and cells[2]["stdout"] == "123\n" and "stderr message" in cells[3]["stderr"]
    assert (cells[4]["error"][0]["ename"], cells[4]["error"][0]["evalue"]) == ("RuntimeError", "error message")
    assert cells[5]["display"] == [{"text/plain": "124"}]  # what is raised does not end the run


def test_a_notebook_has_its_files_and_nothing_of_the_workspace(api, notebook):
    api.bash("echo secret > notebook.txt; echo secret > /tmp/notebook.txt")
    sent = base64.b64encode(bytes(range(256))).decode()
    got = notebook("import os; print(os.listdir(os.environ['HOME']), os.path.exists('/tmp/notebook.txt'), os.getcwd())",
                   "open('out', 'wb').write(open('in/raw', 'rb').read()[::-1]); os.mkfifo('pipe'); os.mkdir('dir')",
                   files={"in/raw": sent}, fetch_files=["out", "pipe", "dir", "none"])
    assert "notebook.txt" not in got["cells"][0]["stdout"] and "False /home/gem/run" in got["cells"][0]["stdout"], got
    assert set(got["files"]) == {"out"} and base64.b64decode(got["files"]["out"]) == bytes(range(256))[::-1]
    api.bash("rm notebook.txt /tmp/notebook.txt")


@pytest.mark.parametrize("limits", [{"total_timeout": 6}, {"cell_timeout": 6}])
def test_a_notebook_that_takes_too_long_has_failed(notebook, limits):
    got = notebook("print('part')", "while True: pass", "print('never')", **limits)
    assert (got["status"], got["driver"]["status"]) == ("Failed", "TimeLimitExceeded") and len(got["cells"]) == 2, got
    assert got["cells"][0]["stdout"] == "part\n"


def test_a_notebook_whose_kernel_dies_has_failed(notebook):
    got = notebook("import os; os.kill(os.getpid(), 9)", "1")
    assert (got["status"], got["driver"]["status"]) == ("Failed", "Error") and len(got["cells"]) == 1, got


def test_a_notebook_ends_with_its_session(api, notebook):
    assert notebook("1")["status"] == "Success"
    eventually(lambda: not [s for s in api.sessions() if s.get("label") == "run_jupyter"])


def test_a_notebook_whose_files_cannot_be_written_is_not_run(notebook):
    for files in ({"/usr/bin/x": ""}, {"x": "?"}):
        got = notebook("1", files=files)
        assert got["status"] == "SandboxError" and "cannot be written" in got["message"] and got["cells"] == [], got


def test_verdicts_side_by_side_are_right(judge):
    answers = {}
    threads = [threading.Thread(target=lambda n=n: answers.update({n: judge(f"print({n})")["run_result"]["stdout"]})) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {n: f"{n}\n" for n in range(8)}


def test_a_session_ends_with_its_verdict(api, judge):
    def judged():
        return [s for s in api.sessions() if s.get("label") == "run_code"]
    judge("1")
    eventually(lambda: len(judged()) <= 4)  # those that were prepared: two for Python, two for all else


def test_the_key_in_the_url_is_enough(api):
    import httpx
    job = {"code": "print(1)", "language": "python"}
    answer = httpx.post(f"{api.url}/run_code?api_key={api.key}", json=job, timeout=60, trust_env=False)
    assert answer.json()["run_result"]["stdout"] == "1\n"


def test_a_missing_field_is_422(api):
    assert api.post("/run_code", {"language": "python"}).json()["detail"][0]["loc"] == ["body", "code"]


def test_ping_answers_without_a_key(api):
    import httpx
    assert httpx.get(f"{api.url}/v1/ping", trust_env=False).status_code == 200
