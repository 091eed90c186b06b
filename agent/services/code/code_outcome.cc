#include "agent/services/code/code_outcome.h"

#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

constexpr std::size_t kMostOutputs = 1000;
constexpr std::size_t kMostLines = 2000;

// A display or a result, rebuilt from untrusted JSON.
std::optional<json::Value> checked_output(const json::Value& said) {
  if (!said.is_object()) return std::nullopt;
  const std::string type = json::text_of(said, "output_type");
  const auto data = said.find("data");
  if ((type != "display_data" && type != "execute_result") || data == said.end() || !data->is_object()) return std::nullopt;
  json::Value out = {{"output_type", type}, {"data", json::Value::object()}, {"metadata", json::Value::object()}};
  for (const auto& [kind, value] : data->items())
    if (value.is_string()) out["data"][kind] = value;
  if (const auto count = said.find("execution_count"); count != said.end() && count->is_number_integer())
    out["execution_count"] = *count;
  return out;
}

std::optional<CodeError> checked_error(const json::Value& report) {
  const auto said = report.find("error");
  if (said == report.end() || !said->is_object()) return std::nullopt;
  CodeError error{.name = json::text_of(*said, "ename"), .value = json::text_of(*said, "evalue"), .traceback = {}};
  if (const auto lines = said->find("traceback"); lines != said->end() && lines->is_array())
    for (const json::Value& line : *lines)
      if (line.is_string() && error.traceback.size() < kMostLines) error.traceback.push_back(line.get<std::string>());
  return error;
}

json::Value stream(std::string_view name, const std::string& text) {
  return {{"output_type", "stream"}, {"name", name}, {"text", text}};
}

}  // namespace

Result<CodeOutcome> make_outcome(std::string out, std::string err, const json::Value& report, int exit_code) {
  if (const std::string refused = json::text_of(report, "refused"); !refused.empty()) return fail(Code::not_found, refused);
  CodeOutcome outcome{.status = exit_code == 0 ? "ok" : "error", .out = std::move(out), .err = std::move(err)};
  outcome.exit_code = exit_code;
  if (!outcome.out.empty()) outcome.outputs.push_back(stream("stdout", outcome.out));
  if (!outcome.err.empty()) outcome.outputs.push_back(stream("stderr", outcome.err));
  if (const auto shown = report.find("outputs"); shown != report.end() && shown->is_array())
    for (const json::Value& said : *shown)
      if (auto output = checked_output(said); output && outcome.outputs.size() < kMostOutputs)
        outcome.outputs.push_back(std::move(*output));
  outcome.error = checked_error(report);
  if (outcome.error) {
    outcome.outputs.push_back({{"output_type", "error"},
                               {"ename", outcome.error->name},
                               {"evalue", outcome.error->value},
                               {"traceback", outcome.error->traceback}});
  }
  return outcome;
}

}  // namespace caisson::services
