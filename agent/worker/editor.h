// str_replace_editor: view, create, str_replace, insert, undo_edit. The sentences are part of its contract: agents have learned
// them, and clients look for parts of them.
#pragma once

#include <deque>
#include <map>
#include <mutex>

#include "agent/worker/paths.h"

namespace caisson::worker {

// The content of each file before its last edits. All of it is bounded together: the file edited longest ago is forgotten first.
class EditHistory {
 public:
  // not_the_first: an earlier worker has ended, and its history of edits with it.
  explicit EditHistory(bool not_the_first);
  void push(const std::string& path, std::string text);
  [[nodiscard]] std::optional<std::string> pop(const std::string& path);
  // The encoding of a file that is not UTF-8, as of its last view or change: added text is written in the same encoding.
  void remember(const std::string& path, const std::string& encoding);
  [[nodiscard]] std::string encoding_of(const std::string& path);
  // For the refusal of undo_edit: a sentence that says since when edits are remembered. Empty if none was forgotten.
  [[nodiscard]] const std::string& note() const { return note_; }

 private:
  static constexpr std::size_t kMostEdits = 10;
  static constexpr std::size_t kMostBytes = 64 * 1024 * 1024;
  static constexpr std::size_t kMostEncodings = 1000;
  void forget_oldest();

  std::string note_;
  std::mutex lock_;
  std::map<std::string, std::deque<std::string>> edits_;
  std::deque<std::string> order_;  // paths, the last edited one at the end
  std::size_t bytes_ = 0;
  std::map<std::string, std::string> encodings_;
};

// {command, path, parts: {file_text?, old_str?, new_str?: sizes}, insert_line?, view_range?, replace_mode?} + these texts ->
// {path, existed, sizes: [output, old, new], has_old, has_new, metadata?} + output, old and new text, one after the other
[[nodiscard]] Outcome edit_file(EditHistory& history, const Request& request);

}  // namespace caisson::worker
