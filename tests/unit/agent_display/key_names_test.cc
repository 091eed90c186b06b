#include "agent/display/key_names.h"

#include <gtest/gtest.h>

#include "agent/display/utf8.h"

namespace caisson::display {
namespace {

TEST(KeyNames, NamesOfPyautoguiAreKnownInAnyCase) {
  EXPECT_EQ(key_named("enter"), 0xFF0DU);
  EXPECT_EQ(key_named("CTRL"), 0xFFE3U);
  EXPECT_EQ(key_named("PageDown"), 0xFF56U);
  EXPECT_EQ(key_named("f12"), 0xFFC9U);
  EXPECT_EQ(key_named("volumeup"), 0x1008FF13U);
}

// KEYBOARD_KEYS of pyautogui 0.9.54, without the single characters.
TEST(KeyNames, EachNameOfPyautoguiIsAKey) {
  const char* const names[] = {"accept",
                               "add",
                               "alt",
                               "altleft",
                               "altright",
                               "apps",
                               "backspace",
                               "browserback",
                               "browserfavorites",
                               "browserforward",
                               "browserhome",
                               "browserrefresh",
                               "browsersearch",
                               "browserstop",
                               "capslock",
                               "clear",
                               "convert",
                               "ctrl",
                               "ctrlleft",
                               "ctrlright",
                               "decimal",
                               "del",
                               "delete",
                               "divide",
                               "down",
                               "end",
                               "enter",
                               "esc",
                               "escape",
                               "execute",
                               "f1",
                               "f10",
                               "f11",
                               "f12",
                               "f13",
                               "f14",
                               "f15",
                               "f16",
                               "f17",
                               "f18",
                               "f19",
                               "f2",
                               "f20",
                               "f21",
                               "f22",
                               "f23",
                               "f24",
                               "f3",
                               "f4",
                               "f5",
                               "f6",
                               "f7",
                               "f8",
                               "f9",
                               "final",
                               "fn",
                               "hanguel",
                               "hangul",
                               "hanja",
                               "help",
                               "home",
                               "insert",
                               "junja",
                               "kana",
                               "kanji",
                               "launchapp1",
                               "launchapp2",
                               "launchmail",
                               "launchmediaselect",
                               "left",
                               "modechange",
                               "multiply",
                               "nexttrack",
                               "nonconvert",
                               "num0",
                               "num1",
                               "num2",
                               "num3",
                               "num4",
                               "num5",
                               "num6",
                               "num7",
                               "num8",
                               "num9",
                               "numlock",
                               "pagedown",
                               "pageup",
                               "pause",
                               "pgdn",
                               "pgup",
                               "playpause",
                               "prevtrack",
                               "print",
                               "printscreen",
                               "prntscrn",
                               "prtsc",
                               "prtscr",
                               "return",
                               "right",
                               "scrolllock",
                               "select",
                               "separator",
                               "shift",
                               "shiftleft",
                               "shiftright",
                               "sleep",
                               "space",
                               "stop",
                               "subtract",
                               "tab",
                               "up",
                               "volumedown",
                               "volumemute",
                               "volumeup",
                               "win",
                               "winleft",
                               "winright",
                               "yen",
                               "command",
                               "option",
                               "optionleft",
                               "optionright"};
  for (const char* name : names) EXPECT_TRUE(key_named(name)) << name;
}
TEST(KeyNames, ACharacterIsItsOwnKeyInItsOwnCase) {
  EXPECT_EQ(key_named("a"), Keysym{'a'});
  EXPECT_EQ(key_named("A"), Keysym{'A'});
  EXPECT_EQ(key_named("ü"), 0xFCU);
  EXPECT_EQ(key_named("語"), 0x01008A9EU);
  EXPECT_EQ(key_named("\n"), 0xFF0DU);
  EXPECT_EQ(key_named(" "), Keysym{' '});
}
TEST(KeyNames, NamesOfXAreKnown) {
  EXPECT_EQ(key_named("Return"), 0xFF0DU);
  EXPECT_EQ(key_named("iso_level3_shift"), 0xFE03U);
  EXPECT_EQ(key_named("XF86AudioMute"), 0x1008FF12U);
  EXPECT_EQ(key_named("KP_Enter"), 0xFF8DU);
}
TEST(KeyNames, OfTwoNamesThatDifferInCaseBothAreKnown) {
  EXPECT_EQ(key_named("Greek_ALPHA"), keysym_of(U'Α'));
  EXPECT_EQ(key_named("Greek_alpha"), keysym_of(U'α'));
  EXPECT_EQ(key_named("GREEK_alpha"), keysym_of(U'α')) << "the small letter";
  EXPECT_EQ(key_named("Udiaeresis"), 0xDCU);
}
TEST(KeyNames, ANumberOfUnicodeIsAName) {
  EXPECT_EQ(key_named("U20AC"), keysym_of(U'€'));
  EXPECT_EQ(key_named("u+1f600"), 0x0101F600U);
  EXPECT_FALSE(key_named("u+110000"));
  EXPECT_FALSE(key_named("u+0007"));
}
TEST(KeyNames, AnUnknownNameIsAnErrorWithTheNearest) {
  EXPECT_EQ(key_named("retrun").error().what, "no key is named 'retrun'; the nearest name is 'Return'");
  EXPECT_EQ(key_named("Contrl").error().what, "no key is named 'Contrl'; the nearest name is 'control'");
  EXPECT_FALSE(key_named(""));
  EXPECT_FALSE(key_named("ctrl+c"));
  EXPECT_EQ(key_named(std::string(100'000, 'x')).error().code, Code::invalid_argument);
  EXPECT_FALSE(key_named("\x80")) << "not UTF-8";
}
TEST(KeyNames, ControlCharactersHaveNoKeysym) {
  EXPECT_EQ(keysym_of(0), 0U);
  EXPECT_EQ(keysym_of(0x7F), 0U);
  EXPECT_EQ(keysym_of(0x9F), 0U);
}
TEST(KeyNames, AnOlderKeysymOfACharacterIsMadeNew) {
  EXPECT_EQ(canonical(0x06C1), keysym_of(U'а'));
  EXPECT_EQ(canonical(0x20AC), keysym_of(U'€'));
  EXPECT_EQ(canonical(0xFF0D), 0xFF0DU);
}

TEST(Utf8, OnlyShortestFormsOfCharactersAreTaken) {
  EXPECT_EQ(decode_utf8("aü語😀"), U"aü語😀");
  for (const char* wrong :
       {"\x80", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3", "\xE8\xAA"})
    EXPECT_FALSE(is_utf8(wrong)) << wrong;
}
TEST(Utf8, Latin1LosesWhatItLacks) {
  EXPECT_EQ(to_latin1("ü語"), "\xFC?");
  EXPECT_EQ(from_latin1("\xFC"), "ü");
}

}  // namespace
}  // namespace caisson::display
