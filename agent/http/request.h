// Request: one HTTP request as handlers see it, after framing, path decoding, auth and body limits. A plain value: it
// holds no reference to its connection except the shared "has the client gone" flag.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace caisson::traces {
struct Span;
}

namespace caisson::http {

enum class Method { get, head, post, put, patch, del, options, other };

[[nodiscard]] std::string_view method_name(Method method);  // "DELETE" for del
[[nodiscard]] Method method_from(std::string_view name);

// Shared with the connection: set when the client closed or reset it while the handler runs. The handler may go on.
struct Peer {
  bool gone = false;
};

using Pairs = std::vector<std::pair<std::string, std::string>>;

struct Request {
  Method method = Method::get;
  int minor_version = 1;              // HTTP/1.x
  std::string verb;                   // the method as sent
  std::string target;                 // as sent
  std::string path;                   // as sent, without the query
  std::vector<std::string> segments;  // decoded once, by decode_target()
  Pairs query;                        // decoded, in order
  Pairs headers;                      // names in lower case, in order
  Pairs params;                       // {name} parts of the route's path
  std::string body;
  std::string remote;           // the client: "192.0.2.1", without the port; behind trusted proxies their client (forwarded.h)
  std::string connected_from;   // the other end of the connection: the client, or the last proxy
  std::string inside = {};      // the workspace out of whose network it came (Server::serve_inside); "": it came from outside
  std::string host;             // as the client named this server: the Host header, or what a trusted proxy says
  std::string scheme = "http";  // or "https"
  std::string id;               // in the log and in x-request-id of the answer
  std::shared_ptr<traces::Span> span = nullptr;  // of a request that is traced
  std::shared_ptr<Peer> peer = std::make_shared<Peer>();
  bool probes_only = false;  // the server is full: what is no probe gets 503

  // First header of that (lower-case) name; nullopt when absent.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
  [[nodiscard]] std::size_t count_of(std::string_view header) const;
  [[nodiscard]] std::optional<std::string_view> query_value(std::string_view name) const;
  // A {name} of the route's path; empty when the route has none.
  [[nodiscard]] std::string_view param(std::string_view name) const;
  // True only when Accept names text/event-stream itself: SDKs send */* and must get JSON.
  [[nodiscard]] bool accepts_event_stream() const;
  [[nodiscard]] bool client_gone() const { return peer->gone; }
};

}  // namespace caisson::http
