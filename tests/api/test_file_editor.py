"""/v1/file/str_replace_editor: its sentences are what clients match on (trap 11)."""
import pytest


@pytest.fixture
def file(api):
    name = api.bash("mktemp -p ~ edit-XXXXXX")["stdout"].strip()
    api.bash(f"printf 'one\\ntwo\\nthree\\ntwo\\nfive\\n' > {name}")
    yield name
    api.bash(f"rm -f {name}")


def edit(api, path, command, **fields):
    return api.data("/v1/file/str_replace_editor", {"command": command, "path": path, **fields})


def refused(api, path, command, **fields):
    answer = api.fails("/v1/file/str_replace_editor", {"command": command, "path": path, **fields})
    assert answer["message"] == answer["data"]["message"] == answer["data"]["error"]
    return answer["message"]


def content(api, path):
    return api.data("/v1/file/read", {"file": path})["content"]


def test_trap_11_view_numbers_lines_as_cat_does(api, file):
    got = edit(api, file, "view")
    assert got["output"].startswith(f"Here's the result of running `cat -n` on {file}:\n     1\tone\n     2\ttwo\n")
    assert (got["path"], got["prev_exist"]) == (file, True)


def test_trap_10_view_range_counts_from_1_and_includes_its_end(api, file):
    assert edit(api, file, "view", view_range=[2, 3])["output"].endswith(":\n     2\ttwo\n     3\tthree\n")
    assert "     5\tfive\n" in edit(api, file, "view", view_range=[4, -1])["output"]


@pytest.mark.parametrize("given, said", [
    ([1], "It should be a list of two integers."),
    ([0, 2], "Its first element `0` should be within the range of lines of the file: [1, 6]."),
    ([2, 99], "Its second element `99` should be smaller than the number of lines in the file: `6`."),
    ([4, 2], "Its second element `2` should be greater than or equal to the first element `4`."),
])
def test_trap_11_a_wrong_view_range_is_explained(api, file, given, said):
    message = refused(api, file, "view", view_range=given)
    assert message == f"Invalid `view_range` parameter: {str(given) if len(given) > 1 else '[1]'}. {said}"


def test_trap_8_a_long_file_is_clipped_at_16000_characters(api, file):
    api.bash(f"head -c 20000 /dev/zero | tr '\\0' 'é' > {file} ; python3 -c \"print('é' * 20000)\" > {file}")
    output = edit(api, file, "view")["output"]
    assert "é" * 16000 + "<response clipped><NOTE>" in output and "é" * 16001 not in output


def test_trap_11_a_directory_shows_two_levels_without_hidden_ones(api):
    api.bash("mkdir -p ~/edir/a/b/c ~/edir/.h; touch ~/edir/x ~/edir/a/y ~/edir/a/b/z")
    output = edit(api, "/home/gem/edir", "view")["output"]
    assert output.startswith("Here's the files and directories up to 2 levels deep in /home/gem/edir, excluding hidden items:\n/home/gem/edir")
    assert "/home/gem/edir/a/y" in output and "/edir/a/b/z" not in output and "/.h" not in output
    assert "1 hidden files/directories in this directory are excluded." in output
    assert "is not allowed when `path` points to a directory" in refused(api, "/home/gem/edir", "view", view_range=[1, 2])
    assert "only the `view` command can be used on directories." in refused(api, "/home/gem/edir", "str_replace", old_str="a", new_str="b")
    api.bash("rm -rf ~/edir")


def test_trap_11_create_makes_a_file_and_never_replaces_one(api, file):
    fresh = file + "-new"
    got = edit(api, fresh, "create", file_text="text\n")
    assert got["output"] == f"File created successfully at: {fresh}" and got["prev_exist"] is False and got["new_content"] == "text\n"
    assert refused(api, fresh, "create", file_text="other") == (
        f"Invalid `path` parameter: {fresh}. File already exists at: {fresh}. Cannot overwrite files using command `create`.")
    assert refused(api, fresh + "x", "create") == "Parameter `file_text` is required for command: create."
    # The creation is an edit: undoing it writes the same text again, and the file stays.
    assert edit(api, fresh, "undo_edit")["output"].startswith(f"Last edit to {fresh} undone successfully.")
    assert content(api, fresh) == "text\n"
    api.bash(f"rm {fresh}")


def test_trap_11_str_replace_replaces_one_place(api, file):
    got = edit(api, file, "str_replace", old_str="three", new_str="THREE\n3")
    assert got["output"].startswith(f"The file {file} has been edited. Here's the result of running `cat -n` on a snippet of {file}:\n")
    assert got["output"].endswith("Review the changes and make sure they are as expected. Edit the file again if necessary.")
    assert "     3\tTHREE\n     4\t3\n" in got["output"]
    assert (got["old_content"], got["new_content"]) == ("one\ntwo\nthree\ntwo\nfive\n", "one\ntwo\nTHREE\n3\ntwo\nfive\n")
    assert content(api, file) == got["new_content"]


def test_trap_11_what_cannot_be_replaced_is_explained(api, file):
    assert refused(api, file, "str_replace", old_str="six", new_str="6") == (
        f"No replacement was performed, old_str `six` did not appear verbatim in {file}.")
    assert refused(api, file, "str_replace", old_str="two", new_str="2") == (
        "No replacement was performed. Multiple occurrences of old_str `two` in lines [2, 4]. Please ensure it is unique.")
    assert "`new_str` and `old_str` must be different." in refused(api, file, "str_replace", old_str="one", new_str="one")
    assert refused(api, file, "str_replace", new_str="x") == "Parameter `old_str` is required for command: str_replace."
    missing = refused(api, "/tmp/missing", "str_replace", old_str="a", new_str="b")
    assert missing == "Invalid `path` parameter: /tmp/missing. The path /tmp/missing does not exist. Please provide a valid path."


def test_trap_11_blanks_around_the_text_are_forgiven(api, file):
    edit(api, file, "str_replace", old_str="\n  three  \n", new_str=" drei ")
    assert content(api, file) == "one\ntwo\ndrei\ntwo\nfive\n"


@pytest.mark.parametrize("mode, wanted", [("ALL", "one\n2\nthree\n2\nfive\n"), ("FIRST", "one\n2\nthree\ntwo\nfive\n"),
                                          ("LAST", "one\ntwo\nthree\n2\nfive\n")])
def test_trap_11_replace_mode_chooses_the_places(api, file, mode, wanted):
    assert edit(api, file, "str_replace", old_str="two", new_str="2", replace_mode=mode)["new_content"] == wanted


@pytest.mark.parametrize("line, wanted", [(0, "new\none\ntwo\nthree\ntwo\nfive\n"), (2, "one\ntwo\nnew\nthree\ntwo\nfive\n"),
                                          (5, "one\ntwo\nthree\ntwo\nfive\nnew\n")])
def test_trap_11_insert_goes_behind_a_line(api, file, line, wanted):
    got = edit(api, file, "insert", insert_line=line, new_str="new")
    assert got["new_content"] == content(api, file) == wanted
    assert "on a snippet of the edited file:\n" in got["output"]
    assert got["output"].endswith("(correct indentation, no duplicate lines, etc). Edit the file again if necessary.")


def test_trap_11_insert_beyond_the_file_is_explained(api, file):
    assert refused(api, file, "insert", insert_line=9, new_str="x") == (
        "Invalid `insert_line` parameter: 9. It should be within the range of allowed values: [0, 5]")
    assert refused(api, file, "insert", new_str="x") == "Parameter `insert_line` is required for command: insert."


def test_trap_11_the_last_ten_edits_can_be_undone(api, file):
    for n in range(12):
        edit(api, file, "insert", insert_line=0, new_str=str(n))
    for _ in range(10):
        edit(api, file, "undo_edit")
    assert content(api, file).startswith("1\n0\none\n")
    assert refused(api, file, "undo_edit") == f"No edit history found for {file}."


def test_binary_and_huge_files_are_refused(api, file):
    api.bash(f"head -c 100 /dev/zero > {file}")
    assert "appears to be binary" in refused(api, file, "view")
    api.bash(f"head -c 11000000 /dev/zero | tr '\\0' x > {file}")
    assert refused(api, file, "view") == "File is too large (10MB). Maximum allowed size is 10MB."
