#include "agent/mcp/revision.h"

#include <algorithm>
#include <optional>

#include "agent/frames/base64.h"

namespace caisson::mcp {
namespace {

constexpr std::string_view kMetaRevision = "io.modelcontextprotocol/protocolVersion";
constexpr std::string_view kMetaCapabilities = "io.modelcontextprotocol/clientCapabilities";

// Which member of `params` the header Mcp-Name repeats.
struct Named {
  std::string_view method, member;
};
constexpr Named kNamed[] = {{"tools/call", "name"}, {"prompts/get", "name"}, {"resources/read", "uri"}};

std::optional<Revision> known(std::string_view name) {
  const auto found = std::ranges::find(kRevisions, name);
  if (found == kRevisions.end()) return std::nullopt;
  return static_cast<Revision>(found - kRevisions.begin());
}

std::unexpected<Failure> unsupported(std::string_view asked) {
  return std::unexpected(Failure{.code = ErrorCode::unsupported_version,
                                 .text = "Unsupported protocol version",
                                 .data = {{"supported", kRevisions}, {"requested", asked}},
                                 .status = 400});
}

std::unexpected<Failure> mismatch(std::string what) {
  return std::unexpected(
      Failure{.code = ErrorCode::header_mismatch, .text = "Header mismatch: " + std::move(what), .status = 400});
}

// A header's value: itself, or what =?base64?...?= holds. nullopt: that is no base64.
std::optional<std::string> header_text(std::string_view value) {
  constexpr std::string_view kBegin = "=?base64?", kEnd = "?=";
  if (!value.starts_with(kBegin) || !value.ends_with(kEnd) || value.size() < kBegin.size() + kEnd.size())
    return std::string(value);
  value.remove_prefix(kBegin.size());
  value.remove_suffix(kEnd.size());
  return frames::base64_decode(value);
}

Or<void> check_header(const http::Request& request, std::string_view header, std::string_view shown, std::string_view wanted) {
  if (request.count_of(header) != 1) return mismatch(std::string(shown) + " is missing, or there twice");
  const auto text = header_text(*request.header(header));
  if (!text) return mismatch(std::string(shown) + " is not valid base64");
  if (*text != wanted) return mismatch(std::string(shown) + " differs from the body");
  return {};
}

std::string text_of(const json::Value& object, std::string_view member) {
  const auto found = object.find(member);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Or<Revision> stateless_revision(const http::Request& request, const Message& message, std::string_view header) {
  const auto meta = message.params.find("_meta");
  const bool has_meta = meta != message.params.end() && meta->is_object();
  const std::string told = has_meta ? text_of(*meta, kMetaRevision) : "";
  if (told.empty() && !header.empty() && !known(header)) return unsupported(header);
  if (told.empty() || !meta->contains(kMetaCapabilities) || !meta->at(std::string(kMetaCapabilities)).is_object())
    return std::unexpected(
        Failure{.code = ErrorCode::invalid_params,
                .text = "Invalid params: _meta needs " + std::string(kMetaRevision) + " and " + std::string(kMetaCapabilities),
                .status = 400});
  if (auto same = check_header(request, "mcp-protocol-version", "MCP-Protocol-Version", told); !same)
    return std::unexpected(std::move(same).error());
  const auto revision = known(told);
  if (!revision) return unsupported(told);
  if (!is_stateless(*revision)) return *revision;
  if (auto same = check_header(request, "mcp-method", "Mcp-Method", message.method); !same)
    return std::unexpected(std::move(same).error());
  const auto named = std::ranges::find(kNamed, message.method, &Named::method);
  if (named == std::end(kNamed)) return *revision;
  if (auto same = check_header(request, "mcp-name", "Mcp-Name", text_of(message.params, named->member)); !same)
    return std::unexpected(std::move(same).error());
  return *revision;
}

}  // namespace

Or<Revision> revision_of(const http::Request& request, const Message& message) {
  const std::string_view header = request.header("mcp-protocol-version").value_or("");
  const auto meta = message.params.find("_meta");
  const bool says = meta != message.params.end() && meta->is_object() && meta->contains(kMetaRevision);
  const auto named = known(header);
  if (says || (named ? is_stateless(*named) : !header.empty())) return stateless_revision(request, message, header);
  return named.value_or(Revision::v2025_03_26);  // without a header: the first that has this transport
}

Revision negotiated(std::string_view asked) {
  const auto revision = known(asked);
  return revision && !is_stateless(*revision) ? *revision : Revision::v2025_11_25;
}

}  // namespace caisson::mcp
