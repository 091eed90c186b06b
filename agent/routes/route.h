// Route: one row of the table from which the router, auth, validation, OpenAPI and the docs page derive. A handler is a
// named coroutine, task<Response> f(Call) or task<Response> f(Call, Body); bind<f, Data>() makes it an Endpoint, where
// Data is the type of the envelope's `data` (std::monostate: any; a struct with Schema<>, std::vector of it, std::string).
//
// A handler's Error becomes the answer {"success":false,"message":...} with HTTP 200 (Code::internal: 500 with an id);
// unknown sessions are answered by returning http::session_not_found().
#pragma once

#include <bit>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "agent/auth/principal.h"
#include "agent/http/coro.h"
#include "agent/http/event_stream.h"
#include "agent/http/request.h"
#include "agent/http/response.h"
#include "agent/http/websocket.h"
#include "agent/routes/schema.h"
#include "agent/routes/services.h"

namespace caisson::routes {

// The area of an operation, for permissions; also its tag in OpenAPI.
enum class Scope {
  system,
  sandbox,
  bash,
  shell,
  file,
  file_watch,
  jupyter,
  nodejs,
  code,
  browser,
  proxy,
  operator_,
  workspaces,
  audit,
  auth,
  mcp,
  util,
  skills
};
struct Tag {
  Scope scope;
  std::string_view name, doc;
};
[[nodiscard]] std::span<const Tag> tags();
[[nodiscard]] std::string_view scope_name(Scope scope);

enum Flag : unsigned {
  kNone = 0,
  kPublic = 1,         // needs no key: ping, healthz, readyz, who issues tokens (resource_metadata.h), third parties' files
                       // (page/static.h) and nothing else
  kEventStream = 2,    // answers Server-Sent Events on an explicit Accept: text/event-stream
  kFlat = 4,           // the response is Data itself, not an envelope around it
  kHidden = 8,         // not in OpenAPI
  kStreamedBody = 16,  // the handler reads the body piece by piece; the row's limit is for all of it
  kBinary = 32,        // answers bytes (application/octet-stream), also of a range
  kConflict = 64,      // 409 if the present state does not permit it
  kPage = 128,         // one of our pages: answers without a key, holds nothing secret, and asks for the key itself
  kInside = 256,       // lies behind a page's address, such as a preview: the cookie of its path is enough
  kOwnCheck = 512,     // the handler checks the credential, which is not where other requests have it
  kWhole = 1024,       // concerns all workspaces: 404 for a client of one workspace
  kProbe = 2048,       // asked by machines all the time: not in the access log, and never too often
  kImmediate = 4096,   // the handler waits for nothing, so nobody watches meanwhile whether its client leaves
  kWatch = 8192,       // all that a credential of one terminal may use; its handler then takes no input
  kMakes = 16384,      // a GET that makes something: needs full access
  kHands = 65536,      // needs the browser's hands or eyes: refused while a person has it alone
  kViews = 32768,      // a WebSocket for which read access is enough; its handler then takes no input
};

// A test fails if a row has a flag that is not here.
inline constexpr Flag kFlags[] = {kPublic,   kEventStream, kFlat,  kHidden,    kStreamedBody, kBinary, kConflict, kPage, kInside,
                                  kOwnCheck, kWhole,       kProbe, kImmediate, kWatch,        kMakes,  kHands,    kViews};
// All of them; 0 if one has not exactly one bit, or has that of another.
[[nodiscard]] consteval unsigned all_flags() {
  unsigned all = 0;
  for (const unsigned flag : kFlags) {
    if (!std::has_single_bit(flag) || (all & flag) != 0) return 0;
    all |= flag;
  }
  return all;
}
static_assert(all_flags() != 0, "two flags share a bit: what one permits, the other would");

inline constexpr std::string_view kWorkspaceHeader = "x-caisson-workspace";
inline constexpr std::size_t kDefaultBodyLimit = 8 * 1024 * 1024;

struct Route;

// One request on its way through a handler.
struct Call {
  Services& services;
  http::Request request;
  const Route& route;
  http::StreamWriter* writer;      // owned by the connection, which outlives the handler
  auth::Principal principal = {};  // on whose behalf; what the handler hands out has its bounds

  // Answers with Server-Sent Events; the handler then returns http::already_sent().
  [[nodiscard]] task<http::EventStream> event_stream() const { return http::EventStream::open(*writer); }
  // StreamWriter's, if there is one.
  [[nodiscard]] task<http::Lane::Turn> work(std::size_t bytes) const;
  [[nodiscard]] task<http::Lane::Turn> answer_of(std::size_t bytes, bool carried_out) const;
};

struct Endpoint {
  task<http::Response> (*handler)(Call) = nullptr;
  task<void> (*websocket)(Call, http::WebSocket) = nullptr;  // instead of handler: the route is an upgrade
  json::Value (*describe_body)(Components&) = nullptr;       // nullptr: takes no body
  bool body_required = false;
  json::Value (*describe_data)(Components&) = nullptr;  // nullptr: any
  std::string (*data_name)() = nullptr;
};

// A parameter of the query, for the description. The handler checks it.
struct Parameter {
  std::string_view name, type, doc;  // type: of JSON Schema
  bool required = false;
  Bounds bounds = {};
  std::string_view fallback = {};  // its default as JSON; null: it may be null
};

struct Route {
  http::Method method;
  std::string_view path;  // "/v1/bash/sessions/{session_id}/close"
  std::string_view operation_id;
  Scope scope;
  unsigned flags;
  Unknown unknown;
  std::string_view summary;
  Endpoint endpoint;
  std::size_t body_limit = kDefaultBodyLimit;
  std::span<const Parameter> query = {};
  std::string_view content_type = {};  // of the answer, if it is not JSON; several are separated by a space
};

// Answers without a credential, or looks for it itself.
[[nodiscard]] constexpr bool is_keyless(const Route& route) { return (route.flags & (kPublic | kPage | kOwnCheck)) != 0; }
// A request of this method and kind changes nothing: read access is enough.
[[nodiscard]] constexpr bool only_reads(const Route& route) {
  const bool looks = route.endpoint.websocket == nullptr || (route.flags & kViews) != 0;
  return looks && route.method == http::Method::get && (route.flags & kMakes) == 0;
}
// Works in the workspace that the request names.
[[nodiscard]] constexpr bool has_workspace(const Route& route) {
  return !is_keyless(route) && route.scope != Scope::workspaces && route.scope != Scope::auth;
}

// Whether a credential with these scopes may use the operation.
[[nodiscard]] bool permits(const auth::Scopes& scopes, const Route& route);
[[nodiscard]] http::Response validation_response(const Issues& issues);
// The answer for a handler's result. Failures of tools are 200, because clients repeat a command that gets a 5xx.
[[nodiscard]] http::Response to_response(Result<http::Response> result, std::string_view request_id);
// Says that a person has the browser alone, and until when; nullopt: none has.
[[nodiscard]] std::optional<std::string> taken_text(const services::Workspace& workspace);
// The answer while a person has the browser alone and the operation needs it; nullopt: it may go on.
[[nodiscard]] std::optional<http::Response> refuse_taken(const Route& route, const services::Workspace& workspace);

namespace detail {

template <class F>
struct HandlerTraits;
template <>
struct HandlerTraits<task<http::Response> (*)(Call)> {
  using Body = void;
};
template <class B>
struct HandlerTraits<task<http::Response> (*)(Call, B)> {
  using Body = B;
};

template <class Body, auto F>
task<http::Response> with_body(Call call) {
  Issues issues;
  CO_TRY_ASSIGN(http::Lane::Turn turn, co_await call.work(call.request.body.size()));
  Body body = decode_body<Body>(call.request.body, call.route.unknown, call.route.body_limit, issues);
  if (!issues.empty()) co_return validation_response(issues);
  call.request.body = std::string();
  turn = {};
  co_return co_await F(std::move(call), std::move(body));
}

template <class T>
json::Value describe(Components& components) {
  return Codec<T>::describe({}, components);
}

}  // namespace detail

template <auto F, class Data = std::monostate>
constexpr Endpoint bind() {
  using Body = typename detail::HandlerTraits<decltype(F)>::Body;
  Endpoint e;
  if constexpr (std::is_void_v<Body>) {
    e.handler = F;
  } else {
    e.handler = detail::with_body<Body, F>;
    e.describe_body = detail::describe<Body>;
    e.body_required = !Codec<Body>::all_optional();
  }
  if constexpr (!std::is_same_v<Data, std::monostate>) {
    e.describe_data = detail::describe<Data>;
    e.data_name = Codec<Data>::type_name;
  }
  return e;
}

// The schema of a multipart body with one file, as FastAPI calls it.
[[nodiscard]] json::Value describe_upload(Components& components);

// A handler that reads a form from the connection (kStreamedBody).
template <auto F, class Data>
constexpr Endpoint bind_form() {
  Endpoint e = bind<F, Data>();
  e.describe_body = describe_upload;
  e.body_required = true;
  return e;
}

// task<void> f(Call, http::WebSocket): the handler returns when the conversation is over.
template <auto F>
constexpr Endpoint bind_websocket() {
  Endpoint e;
  e.websocket = F;
  return e;
}

}  // namespace caisson::routes
