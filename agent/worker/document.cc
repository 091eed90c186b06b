#include "agent/worker/document.h"

#include <cctype>

#include "agent/worker/child.h"

namespace caisson::worker {
namespace {

constexpr double kSeconds = 60;

json::Value asked_of(const Request& request) {
  json::Value out = json::Value::object();
  for (const char* name : {"page_range", "sheet_name", "row_range", "slide_range"})
    if (const auto it = request.head.find(name); it != request.head.end() && !it->empty()) out[name] = *it;
  return out;
}

}  // namespace

std::string document_kind(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string::npos) return "";
  std::string ending = path.substr(dot + 1);
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending == "pdf" || ending == "xlsx" || ending == "pptx" ? ending : "";
}

Done<Document> view_document(const Fd& file, const std::string& path, const std::string& kind, const Request& request) {
  ChildRequest child;
  child.argv = {"python3", "-I", own_directory() + "document_view.py", kind, json::dump(asked_of(request))};
  child.input = &file;
  child.seconds = kSeconds;
  std::string said;
  const auto line = [&said](std::string_view text) {
    said = text;
    return true;
  };
  TRY_ASSIGN(const ChildEnd end, run_child(child, request, line));
  const auto answer = json::parse(said, {.max_bytes = 8u << 20, .max_depth = 8, .max_values = 64 * 1024});
  if (end.stopped || end.exit_code != 0 || !answer || !answer->is_object())
    return refused(
        "io_error", path,
        "The " + kind + " file could not be read in time and memory (exit code " + std::to_string(end.exit_code) + ")");
  if (const auto why = json::get_string(*answer, "error"); why && *why) return refused("invalid_target", path, **why);
  Document out;
  out.text = json::get_string(*answer, "text").value_or(std::nullopt).value_or("");
  if (const auto facts = answer->find("metadata"); facts != answer->end() && facts->is_object()) out.metadata = *facts;
  return out;
}

}  // namespace caisson::worker
