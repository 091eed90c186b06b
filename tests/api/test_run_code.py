"""POST /run_code as SandboxFusion's clients send it."""
import base64
import secrets
import threading

import pytest
from conftest import eventually

PROGRAMS = {  # language: a program that copies a line of its input
    "python": "print('got', input())",
    "nodejs": "console.log('got', require('fs').readFileSync(0, 'utf8').trim())",
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
    return set(answer["message"].split("there is: ")[1].split(", "))


@pytest.mark.parametrize("language", PROGRAMS)
def test_a_program_reads_its_input_and_succeeds(judge, offered, language):
    if language not in offered:
        answer = judge(PROGRAMS[language], language)
        assert answer["status"] == "SandboxError" and "python" in answer["message"]
        pytest.skip(f"no toolchain of {language} in the sessions' view here: it is answered with the list, as it must be")
    got = judge(PROGRAMS[language], language, stdin="line\n", compile_timeout=240, run_timeout=60)
    assert (got["status"], got["message"]) == ("Success", ""), got
    assert (got["compile_result"] is not None) == (language in COMPILED)
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
    got = judge(code, language, run_timeout=1)
    assert (got["status"], got["run_result"]["status"], got["run_result"]["return_code"]) == ("Failed", "TimeLimitExceeded", None)
    assert got["run_result"]["stdout"] == "part\n" and got["run_result"]["execution_time"] >= 1


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
    run = judge("import os; print(os.listdir(os.environ['HOME']), os.path.exists('/tmp/judged.txt'))")["run_result"]
    assert run["stdout"] == "['run'] False\n"
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
    got = judge(HOLDS, stdin="0", **limit)
    assert (got["status"], got["run_result"]["stdout"]) == ("Success", "400\n"), got


def test_the_compiler_has_the_same_memory_as_its_program(judge, offered):
    if "c" not in offered:
        pytest.skip("no C compiler in the sessions' view here")
    got = judge("int main(void) { return 0; }", "c", memory_limit_MB=128, compile_timeout=60)
    assert got["status"] == "Success" and got["compile_result"]["return_code"] == 0


def test_less_memory_than_a_session_needs_is_refused_in_words(judge):
    got = judge("print(1)", memory_limit_MB=1)
    assert got["status"] == "SandboxError" and "memory_limit_MB 1" in got["message"] and got["run_result"] is None


def test_a_limit_that_is_no_number_is_422(api):
    answer = api.post("/run_code", {"code": "1", "language": "python", "memory_limit_MB": "much"})
    assert answer.status_code == 422 and answer.json()["detail"][0]["loc"] == ["body", "memory_limit_MB"]


def test_sockets_are_refused(judge):
    assert "PermissionError" in judge("import socket; socket.socket()")["run_result"]["stderr"]


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
    eventually(lambda: len(judged()) <= 2)  # those that were prepared


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
