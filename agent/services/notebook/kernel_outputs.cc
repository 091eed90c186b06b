#include "agent/services/notebook/kernel_outputs.h"

namespace caisson::services {
namespace {

// Bounds of one output: enough for usual plots and tables.
constexpr std::size_t kMostValues = 256 * 1024;
constexpr std::size_t kMostDepth = 64;
constexpr std::size_t kMostTraceback = 1000;
// An error explains why a flood ended, so it has room of its own.
constexpr std::size_t kErrorRoom = 256 * 1024;
constexpr std::size_t kErrorCount = 8;

std::optional<std::string> string_in(const json::Value& content, const char* key) {
  const auto it = content.find(key);
  if (it == content.end() || !it->is_string()) return std::nullopt;
  return it->get<std::string>();
}

json::Value object_of(const json::Value& content, const char* key) {
  const auto it = content.find(key);
  return it != content.end() && it->is_object() ? *it : json::Value::object();
}

std::optional<KernelOutput> output_of(const json::Value& content) {
  KernelOutput output{.output_type = string_in(content, "output_type").value_or("")};
  if (output.output_type == "stream") {
    output.name = string_in(content, "name").value_or("") == "stderr" ? "stderr" : "stdout";
    output.text = string_in(content, "text");
    return output.text ? std::optional(std::move(output)) : std::nullopt;
  }
  if (output.output_type == "display_data" || output.output_type == "execute_result") {
    output.data = object_of(content, "data");
    output.metadata = object_of(content, "metadata");
    if (output.output_type == "display_data") return output;
    const auto count = json::get_int(content, "execution_count");
    if (count) output.execution_count = *count;
    return output;
  }
  if (output.output_type != "error") return std::nullopt;
  output.ename = string_in(content, "ename").value_or("");
  output.evalue = string_in(content, "evalue").value_or("");
  output.traceback.emplace();
  if (const auto lines = content.find("traceback"); lines != content.end() && lines->is_array())
    for (const json::Value& line : *lines)
      if (line.is_string() && output.traceback->size() < kMostTraceback) output.traceback->push_back(line.get<std::string>());
  return output;
}

}  // namespace

void KernelOutputs::take(const json::Value& head, std::string_view content) {
  const std::string event = string_in(head, "event").value_or("");
  if (event == "clear") {
    const auto wait = json::get_bool(head, "wait");
    if (wait && wait->value_or(false)) clear_next_ = true;
    else clear();
    return;
  }
  if (event != "output" && event != "update") return;
  const auto parsed = json::parse(content, {.max_bytes = content.size(), .max_depth = kMostDepth, .max_values = kMostValues});
  if (!parsed || !parsed->is_object()) {
    dropped_ += content.size();
    return;
  }
  const std::string display = string_in(head, "display").value_or("");
  if (event == "update") return update(display, *parsed, content.size());
  auto output = output_of(*parsed);
  // JSON may take six times the bytes of a text.
  const std::size_t bytes = (output && output->text ? output->text->size() : content.size()) + display.size();
  if (output) add(std::move(*output), display, bytes);
  else dropped_ += bytes;
}

void KernelOutputs::add(KernelOutput output, std::string display, std::size_t bytes) {
  if (clear_next_) clear();
  const std::size_t room = most_bytes_ + (output.output_type == "error" ? kErrorRoom : 0);
  if (bytes_ + bytes > room || share_.resize(bytes_ + bytes) != http::Room::granted) {
    dropped_ += bytes;
    return;
  }
  // Pieces of one stream are joined, as in a notebook.
  if (output.output_type == "stream" && !outputs_.empty() && outputs_.back().output_type == "stream" &&
      outputs_.back().name == output.name) {
    outputs_.back().text->append(*output.text);
    bytes_ += bytes;
    return;
  }
  if (outputs_.size() >= most_outputs_ + (output.output_type == "error" ? kErrorCount : 0)) {
    dropped_ += bytes;
    return;
  }
  bytes_ += bytes;
  if (!output.data) display.clear();
  if (!display.empty()) {
    Shown& shown = displays_[display];
    ++shown.count;
    shown.bytes += bytes;
  }
  outputs_.push_back(std::move(output));
  origins_.push_back(std::move(display));
}

void KernelOutputs::update(const std::string& display, const json::Value& content, std::size_t bytes) {
  const auto known = displays_.find(display);
  if (known == displays_.end()) return;
  Shown& shown = known->second;
  const std::size_t now = bytes_ - shown.bytes + shown.count * bytes;
  if (now > most_bytes_ || share_.resize(now) != http::Room::granted) {
    dropped_ += bytes;
    return;
  }
  bytes_ = now;
  shown.bytes = shown.count * bytes;
  shown.updated = outputs_.size();
  shown.data = object_of(content, "data");
  shown.metadata = object_of(content, "metadata");
}

std::vector<KernelOutput> KernelOutputs::release() {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const auto known = displays_.find(origins_[i]);
    if (known == displays_.end() || i >= known->second.updated) continue;
    outputs_[i].data = known->second.data;
    outputs_[i].metadata = known->second.metadata;
  }
  return std::move(outputs_);
}

void KernelOutputs::clear() {
  clear_next_ = false;
  outputs_.clear();
  origins_.clear();
  displays_.clear();
  bytes_ = 0;
  share_.release();
}

void KernelOutputs::add_error(std::string ename, std::string evalue, std::vector<std::string> traceback) {
  clear_next_ = false;
  outputs_.push_back(
      {.output_type = "error", .ename = std::move(ename), .evalue = std::move(evalue), .traceback = std::move(traceback)});
  origins_.emplace_back();
}

}  // namespace caisson::services
