"""TYPING in a page of Chromium: what a program types arrives exactly, by the clipboard and key by key."""
import os
import time

import pytest
from screen import act, needs_desktop, open_field

pytestmark = needs_desktop
RUNS = 20 if os.environ.get("CAISSON_TEST_FULL") else 2
LINES = ["The quick brown fox", "Größe über Öl, façade", "Ελληνικά κείμενα", "Съешь ещё этих мягких", "日本語の文章です", "한국어 문장입니다",
         "نص عربي قصير", "हिन्दी में पाठ", "😀🎉🚀👩\u200d💻🇩🇪", "~!@#$%^&*()_+{}|:\"<>?`-=[]\\;',./"]
THOUSAND = "\n".join(LINES * 8)[:1000]


@pytest.mark.parametrize("by_clipboard", [True, False], ids=["by the clipboard", "key by key"])
def test_a_thousand_characters_of_eight_scripts_arrive_exactly(api, by_clipboard):
    for _ in range(RUNS):
        field = open_field(api)
        act(api, "TYPING", text=THOUSAND, use_clipboard=by_clipboard)
        late = time.monotonic() + 60
        while len(field()) < len(THOUSAND) and time.monotonic() < late:
            time.sleep(0.02)
        assert field() == THOUSAND
