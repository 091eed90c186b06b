#include "agent/display/keymap.h"

#include <gtest/gtest.h>

#include "agent/display/typing_plan.h"
#include "agent/display/x_wire.h"
#include "agent/display/xkb_wire.h"

namespace caisson::display {
namespace {

constexpr std::uint8_t kMod5 = 0x80;
constexpr Keysym kLevel3 = 0xFE03, kShiftL = 0xFFE1;

// A keyboard from keycode 8 on. Type 0: one level; 1: two by Shift; 2: two by Shift or Lock; 3: four by Shift and Mod5.
class Board {
 public:
  Board& key(std::uint8_t type, std::vector<Keysym> keysyms, std::uint8_t groups = 1) {
    xcb_xkb_key_sym_map_t map{};
    std::ranges::fill(map.kt_index, type);
    map.groupInfo = keysyms.empty() ? 0 : groups;
    map.width = keysyms.empty() ? 0 : static_cast<std::uint8_t>(keysyms.size() / groups);
    map.nSyms = static_cast<std::uint16_t>(keysyms.size());
    keys_ += bytes_of(map);
    for (const Keysym keysym : keysyms) keys_ += bytes_of(keysym);
    ++count_;
    return *this;
  }
  [[nodiscard]] std::string map() const {
    xcb_xkb_get_map_reply_t head{};
    head.nTypes = 4;
    head.firstKeySym = 8;
    head.nKeySyms = count_;
    std::string out(bytes_of(head));
    out += type(0, {});
    out += type(kShift, {{kShift, 1}});
    out += type(kShift | kLock, {{kShift, 1}, {kLock, 1}});
    out += type(kShift | kMod5, {{kShift, 1}, {kMod5, 2}, {kShift | kMod5, 3}});
    return out + keys_;
  }
  // Keycode 8 is Shift, 9 the third level.
  [[nodiscard]] static std::string modifiers() {
    xcb_get_modifier_mapping_reply_t head{};
    head.keycodes_per_modifier = 1;
    std::string out(bytes_of(head));
    return out + std::string("\x08\0\0\0\0\0\0\x09", 8);
  }
  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] Keymap parsed() const { return Keymap::parse(map(), modifiers()).value(); }

 private:
  static std::string type(std::uint8_t mask, std::vector<std::pair<int, int>> entries) {
    xcb_xkb_key_type_t head{};
    head.mods_mask = mask;
    head.nMapEntries = static_cast<std::uint8_t>(entries.size());
    std::string out(bytes_of(head));
    for (const auto& [modifiers, level] : entries) {
      xcb_xkb_kt_map_entry_t entry{};
      entry.active = 1;
      entry.mods_mask = static_cast<std::uint8_t>(modifiers);
      entry.level = static_cast<std::uint8_t>(level);
      out += bytes_of(entry);
    }
    return out;
  }
  std::string keys_;
  std::uint8_t count_ = 0;
};

Board german() {
  Board board;
  board.key(0, {kShiftL}).key(0, {kLevel3}).key(2, {'a', 'A'}).key(1, {'7', '/'}).key(3, {'q', 'Q', '@', 0x7d9});
  board.key(0, {}).key(0, {}).key(0, {});  // 13, 14, 15
  return board;
}

TEST(Keymap, AKeyOfTheFirstLevelNeedsNoModifier) {
  EXPECT_EQ(german().parsed().find('a', 0, 0), (Stroke{.keycode = 10, .modifiers = 0}));
}
TEST(Keymap, TheLevelSaysWhichModifiersArePressed) {
  const Keymap map = german().parsed();
  EXPECT_EQ(map.find('A', 0, 0), (Stroke{.keycode = 10, .modifiers = kShift}));
  EXPECT_EQ(map.find('/', 0, 0), (Stroke{.keycode = 11, .modifiers = kShift}));
  EXPECT_EQ(map.find('@', 0, 0), (Stroke{.keycode = 12, .modifiers = kMod5}));
  EXPECT_EQ(map.find(keysym_of(U'Ω'), 0, 0), (Stroke{.keycode = 12, .modifiers = kShift | kMod5})) << "by an older number";
  EXPECT_EQ(map.modifier_key(kShift), 8);
  EXPECT_EQ(map.modifier_key(kMod5), 9);
}
TEST(Keymap, ALockedModifierIsReckonedWith) {
  const Keymap map = german().parsed();
  EXPECT_EQ(map.find('A', 0, kLock), (Stroke{.keycode = 10, .modifiers = 0}));
  EXPECT_EQ(map.find('a', 0, kLock), (Stroke{.keycode = 10, .modifiers = kShift}));
}
TEST(Keymap, WhatNoKeyGivesIsNotFound) { EXPECT_EQ(german().parsed().find(keysym_of(U'я'), 0, 0), std::nullopt); }
TEST(Keymap, AnotherGroupHasOtherKeysyms) {
  Board board;
  board.key(0, {kShiftL}).key(0, {kLevel3}).key(1, {'a', 'A', keysym_of(U'ф'), keysym_of(U'Ф')}, 2).key(1, {'1', '!'});
  const Keymap map = board.parsed();
  EXPECT_EQ(map.find(keysym_of(U'Ф'), 1, 0), (Stroke{.keycode = 10, .modifiers = kShift}));
  EXPECT_EQ(map.find('a', 1, 0), std::nullopt);
  EXPECT_EQ(map.find('1', 1, 0), (Stroke{.keycode = 11, .modifiers = 0})) << "a key of one group has it for all";
  EXPECT_EQ(map.key_with('a'), 10);
}
TEST(Keymap, KeysWithoutAKeysymAreSpare) { EXPECT_EQ(german().parsed().spare(), (std::vector<std::uint8_t>{15, 14, 13})); }
TEST(Keymap, AKeyThatWasLeftBoundIsSpare) {
  Board board = german();
  board.key(1, {keysym_of(U'語'), keysym_of(U'語')});
  EXPECT_EQ(board.parsed().spare().front(), 16);
}
TEST(Keymap, AKeyThatGoesBackWhateverItsLetterIsNotSpare) {
  constexpr Keysym kBack = 0x1008FF26, kPlay = 0x1008FF14;
  Board board;
  while (board.count() < 166 - 8) board.key(0, {'a'});
  board.key(0, {kBack}).key(0, {}).key(0, {kPlay}).key(0, {});  // 166 to 169
  const Keymap map = board.parsed();
  EXPECT_EQ(map.multimedia(), (std::vector<std::uint8_t>{168}));
  EXPECT_EQ(map.spare(), (std::vector<std::uint8_t>{169}));
}
TEST(Keymap, EveryCutOfAReplyIsAnError) {
  const std::string map = german().map(), modifiers = Board::modifiers();
  for (std::size_t size = 0; size < map.size(); ++size) EXPECT_FALSE(Keymap::parse(map.substr(0, size), modifiers)) << size;
  for (std::size_t size = 32; size < modifiers.size(); ++size)
    EXPECT_FALSE(Keymap::parse(map, modifiers.substr(0, size))) << size;
}

std::vector<TypingBatch> planned(const std::u32string& text) {
  const Keymap map = german().parsed();
  return plan_typing(text, map, 0, 0, map.spare()).value();
}

TEST(TypingPlan, TheLayoutsOwnKeysAreStruckWithoutBinding) {
  const auto batches = planned(U"aA@");
  ASSERT_EQ(batches.size(), 1U);
  EXPECT_TRUE(batches[0].bindings.empty());
  EXPECT_EQ(batches[0].strokes, (std::vector<Stroke>{{10, 0}, {10, kShift}, {12, kMod5}}));
}
TEST(TypingPlan, ACharacterIsBoundOnceInABatch) {
  const auto batches = planned(U"ж語жaж");
  ASSERT_EQ(batches.size(), 1U);
  ASSERT_EQ(batches[0].bindings.size(), 2U);
  EXPECT_EQ(batches[0].bindings[0].keysym, keysym_of(U'ж'));
  EXPECT_EQ(batches[0].strokes, (std::vector<Stroke>{{15, 0}, {14, 0}, {15, 0}, {10, 0}, {15, 0}}));
}
TEST(TypingPlan, ABatchBindsNoKeyTwice) {
  const auto batches = planned(U"абвгдa😀");
  ASSERT_EQ(batches.size(), 2U);
  for (const TypingBatch& batch : batches) {
    EXPECT_EQ(batch.bindings.size(), 3U);
    EXPECT_NE(batch.bindings[0].keycode, batch.bindings[1].keycode);
  }
  EXPECT_EQ(batches[1].bindings[2].keysym, 0x01000000U | 0x1F600);
}
TEST(TypingPlan, TheKeyNotUsedForLongestIsBoundAnewInTheNextBatch) {
  const auto batches = planned(U"абваг");
  ASSERT_EQ(batches.size(), 2U);
  const auto key_of = [&](std::size_t stroke) { return batches[0].strokes[stroke].keycode; };
  EXPECT_EQ(key_of(3), key_of(0));
  ASSERT_EQ(batches[1].bindings.size(), 1U);
  EXPECT_EQ(batches[1].bindings[0].keycode, key_of(1));
}
TEST(TypingPlan, ACharacterKeepsItsKeyInTheNextBatch) {
  const auto batches = planned(U"абвгв");
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(batches[1].strokes[1], batches[0].strokes[2]);
}
TEST(TypingPlan, ALineEndsWithOneReturn) {
  Board board = german();
  board.key(0, {0xFF0D});
  const Keymap map = board.parsed();
  const auto batches = plan_typing(U"a\r\na\n\r", map, 0, 0, map.spare());
  ASSERT_TRUE(batches);
  EXPECT_EQ((*batches)[0].strokes, (std::vector<Stroke>{{10, 0}, {16, 0}, {10, 0}, {16, 0}, {16, 0}}));
}
TEST(TypingPlan, AControlCharacterIsRefused) {
  const Keymap map = german().parsed();
  EXPECT_EQ(plan_typing(U"a\a", map, 0, 0, map.spare()).error().what, "the control character U+0007 cannot be typed");
}
TEST(TypingPlan, WithoutASpareKeyWhatTheLayoutLacksIsAnError) {
  const Keymap map = german().parsed();
  EXPECT_EQ(plan_typing(U"ж", map, 0, 0, {}).error().code, Code::unavailable);
  EXPECT_TRUE(plan_typing(U"a", map, 0, 0, {}));
}

}  // namespace
}  // namespace caisson::display
