// The table of every policy field, and of every field of a seccomp set, for what reads or documents policy files. Of a field that
// has a row in rows.h, type, default, bounds and order come from there; the table adds its meaning and the form of its texts.
// Validation, JSON Schema, the reference in policies/README.md, the widening check and explain derive from both.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/json.h"
#include "launcher/common/policy/rows.h"
#include "launcher/common/tables/lines.h"
#include "launcher/compiler/load.h"
#include "launcher/compiler/text_formats.h"

namespace caisson::policy {

enum class Type {
  text,
  choice,
  boolean,
  integer,
  octal,
  number,   // number: up to 64 bits, as integer or "0x…"
  list,     // of unique strings
  ports,    // list of unique ports
  ranges,   // list of ports and of texts "first-last"
  map,      // string -> string
  content,  // path -> text, or list of lines
  object,
  objects,  // list of objects; their fields are <pointer>/*/…
  rows,     // list of lists of objects: <pointer>/*/*/…
};

struct Field {
  std::string_view pointer;  // "/limits/processes"; "*" stands for a list index
  Type type;
  Form form;                  // of texts, list elements and map keys
  std::string_view allowed;   // choices, weakest (narrowest) first for choice; empty: any
  std::uint64_t min, max;     // of the value, of the length, or of the count
  std::string_view fallback;  // JSON; empty: none, or that of the row; kRequired: must be there
  Widens widens;
  std::string_view doc;
};
inline constexpr std::string_view kRequired = "required";

[[nodiscard]] constexpr const Row* find_row(std::string_view pointer) {
  const auto row = std::ranges::find(kRows, pointer, &Row::pointer);
  return row == std::end(kRows) ? nullptr : row;
}
// Whether policy files have it.
[[nodiscard]] constexpr bool in_files(const Row& row) { return row.widens != Widens::made; }

[[nodiscard]] std::span<const Field> policy_fields();
[[nodiscard]] std::span<const Field> set_fields();
[[nodiscard]] const Field* find_field(std::span<const Field> fields, std::string_view pattern);

// One parsed file. Problems of it name its file and the nearest line.
struct Source {
  std::string file;
  json::Value doc;
  json::Lines lines;
};

class Problems {
 public:
  void add(const Source& source, const std::string& pointer, std::string what, std::string meant = {});
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::vector<Problem> take();  // at most kMaxProblems, the last one counting the rest

 private:
  std::vector<Problem> kept_;
  std::size_t count_ = 0;
};

// Types, bounds, forms, unknown and missing fields of a whole document.
void validate(const Source& source, std::span<const Field> fields, Problems& problems);

// The value of a number field: 21522 or "0x5412". Call on validated documents only.
[[nodiscard]] std::uint64_t number_of(const json::Value& value);

// policies/schema.json (draft 2020-12), and the table in policies/README.md.
[[nodiscard]] std::string schema_text();
[[nodiscard]] std::string reference_text();

}  // namespace caisson::policy
