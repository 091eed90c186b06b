// KernelOutputs: the outputs of one cell so far, in nbformat's shapes, from the events of its bridge. The session may lie, so
// sizes and counts are bounded here again, and events of another form are dropped. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/http/budget.h"
#include "launcher/common/base/json.h"

namespace caisson::services {

struct KernelOutput {
  std::string output_type;                      // stream, display_data, execute_result, error
  std::optional<std::string> name, text;        // stream
  std::optional<json::Value> data, metadata;    // display_data, execute_result: objects
  std::optional<std::int64_t> execution_count;  // execute_result
  std::optional<std::string> ename, evalue;     // error
  std::optional<std::vector<std::string>> traceback;
};

class KernelOutputs {
 public:
  // share: pays for kept outputs; outputs that it does not grant are dropped.
  KernelOutputs(std::size_t most_bytes, std::size_t most_outputs, http::Budget::Share share = {})
      : most_bytes_(most_bytes), most_outputs_(most_outputs), share_(std::move(share)) {}

  // One event: "output", "update" or "clear"; `content` is its body. Anything else changes nothing.
  void take(const json::Value& head, std::string_view content);
  void add_error(std::string ename, std::string evalue, std::vector<std::string> traceback);
  void note_dropped(std::uint64_t bytes) { dropped_ += bytes; }

  [[nodiscard]] std::vector<KernelOutput> release();
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  // Outputs that one id updates. Only the last update is kept, and only release() applies it, so an update costs its own bytes,
  // however many outputs have the id.
  struct Shown {
    std::size_t count = 0, bytes = 0;
    std::size_t updated = 0;  // number of all outputs at the last update
    json::Value data, metadata;
  };

  void add(KernelOutput output, std::string display, std::size_t bytes);
  void update(const std::string& display, const json::Value& content, std::size_t bytes);
  void clear();

  std::size_t most_bytes_, most_outputs_;
  std::vector<KernelOutput> outputs_;
  std::vector<std::string> origins_;  // each output's id; "": none, so it is never updated
  std::map<std::string, Shown, std::less<>> displays_;
  std::size_t bytes_ = 0;
  http::Budget::Share share_;  // of these
  std::uint64_t dropped_ = 0;
  bool clear_next_ = false;  // clear_output(wait=True): clears when the next output comes
};

}  // namespace caisson::services
