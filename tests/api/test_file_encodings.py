"""str_replace_editor and files that are not UTF-8: shown, edited and written back in their own encoding."""
import secrets
import subprocess

import pytest
from test_file_editor import content, edit, put, refused

# Of the sessions' own interpreter, which is Debian's.
INSTALLED = subprocess.run(["/usr/bin/python3", "-I", "-c", "import chardet"], capture_output=True, check=False).returncode == 0
pytestmark = pytest.mark.skipif(not INSTALLED, reason="python3-chardet is not installed (scripts/setup --test)")

TEXTS = {
    "cp1251": "# Комментарий\nимя = \"Привет, мир\"\nprint(имя)\n",
    "koi8-r": "Привет, мир! Это тест кодировки.\nВторая строка\n",
    "cp1252": "Das ist ein schöner Text\nüber Käse und Öl\n",
    "gb18030": "你好,世界。这是一个测试文件。\n第二行\n",
    "cp932": "こんにちは、世界。これはテストです。\n二行目\n",
}


@pytest.fixture
def of(api):
    """of(bytes): a file that holds them."""
    made = []

    def make(data: bytes) -> str:
        made.append(put(api, f"encoded-{secrets.token_hex(4)}", data))
        return made[-1]

    yield make
    for path in made:
        api.bash(f"rm -f {path}")


def bytes_of(api, path: str) -> bytes:
    return bytes.fromhex("".join(api.bash(f"od -An -v -tx1 {path}")["stdout"].split()))


@pytest.mark.parametrize("text", ["Das Mädchen heißt Käthe. Größe und Höhe, Fußgängerübergang.\n", "Größe\n", "naïve résumé\n"])
def test_what_could_be_much_is_western_european(api, of, text):
    path = of(text.encode("cp1252"))
    assert f"     1\t{text}" in edit(api, path, "view")["output"]
    edit(api, path, "str_replace", old_str=text.split()[-1], new_str="ÄÖ")
    assert bytes_of(api, path) == text.replace(text.split()[-1], "ÄÖ").encode("cp1252")


@pytest.mark.parametrize("encoding", TEXTS)
def test_a_legacy_encoding_is_shown_edited_undone_and_kept(api, of, encoding):
    text = TEXTS[encoding]
    path, first = of(text.encode(encoding)), text.split("\n")[0]
    assert f"     1\t{first}\n" in edit(api, path, "view")["output"]
    assert edit(api, path, "view", view_range=[1, 1])["output"].endswith(f":\n     1\t{first}\n")
    word = first.split(" ")[-1]
    got = edit(api, path, "str_replace", old_str=word, new_str=word + word)
    wanted = text.replace(word, word + word)
    assert (got["old_content"], got["new_content"]) == (text, wanted) and bytes_of(api, path) == wanted.encode(encoding)
    got = edit(api, path, "insert", insert_line=1, new_str=word)
    longer = wanted.replace("\n", f"\n{word}\n", 1)
    assert got["new_content"] == longer and bytes_of(api, path) == longer.encode(encoding)
    assert edit(api, path, "undo_edit")["new_content"] == wanted and bytes_of(api, path) == wanted.encode(encoding)


def test_what_the_encoding_lacks_is_an_error_and_changes_nothing(api, of):
    before = TEXTS["cp1251"].encode("cp1251")
    path = of(before)
    for change in ({"command": "str_replace", "old_str": "мир", "new_str": "世界"}, {"command": "insert", "insert_line": 0, "new_str": "世"}):
        said = refused(api, path, **change)
        assert said.startswith(f"No edit was performed. The file {path} is windows-1251, and it has no character `世`.")
        assert bytes_of(api, path) == before
    assert "No edit history" in refused(api, path, "undo_edit")


def test_what_was_added_does_not_change_the_encoding(api, of):
    path = of("Это короткий текст\n".encode("cp1251"))
    edit(api, path, "view")
    for n in range(3):
        edit(api, path, "insert", insert_line=0, new_str=f"ascii only {n}")
    edit(api, path, "str_replace", old_str="короткий", new_str="ёж")
    assert bytes_of(api, path).endswith("Это ёж текст\n".encode("cp1251"))


@pytest.mark.parametrize("text", ["é", "Привет", "ÀÁÂ × ÷", "ascii", "\ufeffwith a mark", "日本"])
def test_utf_8_is_never_taken_for_anything_else(api, of, text):
    path = of(f"{text}\n".encode())
    edit(api, path, "insert", insert_line=1, new_str="世界 é")
    assert content(api, path) == f"{text}\n世界 é\n" and bytes_of(api, path) == f"{text}\n世界 é\n".encode()


def test_utf_8_with_a_broken_byte_stays_what_it_is(api, of):
    path = of("Привет, мир\n".encode() + b"\xff\n")
    edit(api, path, "str_replace", old_str="мир", new_str="世界")
    assert bytes_of(api, path) == "Привет, 世界\n".encode() + b"\xff\n"


def test_bytes_of_no_known_encoding_stay_as_they_are(api, of):
    data = b"begin\n" + bytes(range(128, 256)) * 8 + b"\nend\n"
    path = of(data)
    edit(api, path, "str_replace", old_str="begin", new_str="start")
    assert bytes_of(api, path) == data.replace(b"begin", b"start")


def test_a_large_file_is_decoded_whole(api, of):
    text = "plain ascii line\n" * 200_000 + "последняя строка этого файла\n"
    path = of(text.encode("cp1251"))
    got = edit(api, path, "str_replace", old_str="последняя", new_str="конечная")
    assert got["new_content"].endswith("\nконечная строка этого файла\n")
    assert api.bash(f"tail -n 1 {path} | iconv -f cp1251 -t utf-8")["stdout"] == "конечная строка этого файла\n"
