// Tool: one row of a table of built-in tools. A tool is a named coroutine, task<Outcome> f(Call, Arguments), whose arguments are
// a struct with a Schema; tool<f>() makes a row's Handler of it. Most ask an operation of the API (ask.h), so a tool can do
// nothing that its client could not do there.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "agent/routes/route.h"
#include "agent/services/mcp/message.h"

namespace caisson::mcp {

using routes::Call;

// CallToolResult. An error of the tool's own is told to the model, not to the client's program.
struct Outcome {
  json::Value content = json::Value::array();
  std::optional<json::Value> structured = {};  // an object
  bool is_error = false;
};
[[nodiscard]] Outcome text_outcome(std::string text);
[[nodiscard]] Outcome error_outcome(std::string text);
// The object, and its text for clients that know no structured content.
[[nodiscard]] Outcome structured_outcome(json::Value object);
[[nodiscard]] Outcome image_outcome(std::string_view bytes, std::string_view media_type);
[[nodiscard]] json::Value encode(Outcome outcome);

struct NoArguments {};

struct Handler {
  task<Outcome> (*run)(Call, json::Value) = nullptr;
  json::Value (*describe)(routes::Components&) = nullptr;  // the arguments
};

// ToolAnnotations: what a client may assume before it asks its person.
enum Hint : unsigned {
  kNoHint = 0,
  kReads = 1,
  kDestroys = 2,
  kRepeats = 4,
  kOutside = 8
};  // readOnly, destructive, idempotent, openWorld

struct Tool {
  std::string_view name, title, doc;
  unsigned hints;
  // The least that a credential needs for some use of the tool. tools/list leaves out what it does not have.
  routes::Scope scope;
  auth::Access access;
  Handler handler;
  json::Value (*describe_result)(routes::Components&) = nullptr;  // of structuredContent; nullptr: it has none
};

namespace detail {

// Wrong arguments are an error of the tool: the model reads it, and corrects them.
[[nodiscard]] std::string text_of(const routes::Issues& issues);

template <class F>
struct ToolTraits;
template <class A>
struct ToolTraits<task<Outcome> (*)(Call, A)> {
  using Arguments = A;
};

template <class A, auto F>
task<Outcome> with_arguments(Call call, json::Value given) {
  A arguments{};
  routes::Issues issues;
  routes::Codec<A>::decode(given, {}, json::Value::array(), arguments, routes::Decode{routes::Unknown::ignore, issues});
  if (!issues.empty()) co_return error_outcome(text_of(issues));
  co_return co_await F(std::move(call), std::move(arguments));
}

}  // namespace detail

template <auto F>
constexpr Handler tool() {
  using Arguments = typename detail::ToolTraits<decltype(F)>::Arguments;
  return {detail::with_arguments<Arguments, F>, routes::detail::describe<Arguments>};
}

[[nodiscard]] std::span<const Tool> sandbox_tools();     // sandbox_tools.cc
[[nodiscard]] std::span<const Tool> browser_tools();     // browser_tools.cc
[[nodiscard]] std::span<const Tool> markitdown_tools();  // sandbox_tools.cc

}  // namespace caisson::mcp

namespace caisson::routes {
template <>
struct Schema<mcp::NoArguments> {
  static constexpr std::string_view name = "NoArguments";
  static constexpr auto fields = std::tuple{};
};
}  // namespace caisson::routes
