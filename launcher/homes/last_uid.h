// The last uid that was given to a workspace, kept on disk: what one left where others may look belongs to its uid for good, so
// none is ever given to two. Raised before the uid is told to anybody.
#pragma once

#include <sys/types.h>

#include <string>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/json.h"
#include "launcher/common/base/result.h"

namespace caisson::homes {

// Uids of one kind of workspace, and what they are called in the mark.
struct Range {
  const char* name;
  uid_t first, last;
};
// No other program or session has one of these (20000 and up are for sessions, below 20000 for the machine's own), and each is
// among the 65536 ids that a container with ids of its own has, 65534 and 65535 (nobody) left out.
inline constexpr Range kHomeUids{"home", 30001, 39999}, kWorkspaceUids{"workspace", 40001, 65533};

// The file `.lock` in a directory, held alone from take() until our end or that of the object.
class Mark {
 public:
  // Waits for whoever has it. where: what the directory is called. Errors: a mark that is there and is not as we left it.
  [[nodiscard]] static Result<Mark> take(int directory, std::string where);
  // range.first - 1: none was given yet.
  [[nodiscard]] uid_t last(const Range& range) const { return last_.value(range.name, range.first - 1); }
  // The next one is above `uid`: durable when this returns, or the error says why it may not be. Never lowered.
  [[nodiscard]] Status raise(const Range& range, uid_t uid);
  // The error of a range that is used up.
  [[nodiscard]] Error used_up(const Range& range) const;

 private:
  Mark(int directory, std::string where) : directory_(directory), where_(std::move(where)) {}
  [[nodiscard]] Status read();
  [[nodiscard]] std::string way_out() const;
  int directory_;
  std::string where_;
  Fd file_;
  json::Value last_ = json::Value::object();
};

}  // namespace caisson::homes
