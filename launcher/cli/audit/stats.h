// What a log adds up to: records by kind, refused calls, commands and how they ended. Bounded whatever a log holds. Pure.
#pragma once

#include <map>
#include <string>

#include "launcher/common/base/json.h"

namespace caisson::audit {

class Stats {
 public:
  void add(const json::Value& record, std::size_t bytes);
  void add(const Stats& other);
  [[nodiscard]] json::Value to_json() const;

 private:
  using Counts = std::map<std::string, std::uint64_t>;
  static constexpr std::size_t kMaxNames = 1000;  // of each kind; the rest counts as "other"
  static void count(Counts& counts, const std::string& name, std::uint64_t n = 1);

  std::uint64_t records_ = 0, bytes_ = 0, removed_ = 0, spilled_ = 0;
  Counts events_, denials_, exit_codes_, signals_, limits_, ends_;
};

}  // namespace caisson::audit
