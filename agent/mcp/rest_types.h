// Requests and answers of /v1/mcp/…, by the contract's names. The answers are MCP's own objects: what is here describes them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "agent/routes/one_of.h"

namespace caisson::mcp {

// The arguments of a call: any object; without a body it is empty.
struct ToolArguments {
  json::Value given = json::Value::object();
};

// An entry of `mcpServers`, which services::parse_server reads.
struct ServerEntry {
  json::Value given = json::Value::object();
};
struct AddedServer {
  std::string name, domain, prefix;
};

inline constexpr std::array<std::string_view, 1> kTextType = {"text"}, kImageType = {"image"}, kAudioType = {"audio"},
                                                 kLinkType = {"resource_link"}, kResourceType = {"resource"};
inline constexpr std::array<std::string_view, 2> kAudience = {"user", "assistant"};
inline constexpr std::array<std::string_view, 3> kTaskSupport = {"forbidden", "optional", "required"};

using Meta = std::optional<json::Value>;
struct Icon {
  std::string src;
  std::optional<std::string> mime_type;
  std::optional<std::vector<std::string>> sizes;
};
struct ToolAnnotations {
  std::optional<std::string> title;
  std::optional<bool> reads, destroys, repeats, outside;
};
struct ToolExecution {
  std::optional<std::string> task_support;
};
struct ToolModel {
  std::string name;
  std::optional<std::string> title, description;
  json::Value input;
  Meta output, meta;
  std::optional<std::vector<Icon>> icons;
  std::optional<ToolAnnotations> annotations;
  std::optional<ToolExecution> execution;
};
struct ListToolsResult {
  Meta meta;
  std::optional<std::string> next_cursor;
  std::vector<ToolModel> tools;
};
struct Annotations {
  std::optional<std::vector<std::string>> audience;
  std::optional<double> priority;
};
struct TextContent {
  std::string type, text;
  std::optional<Annotations> annotations;
  Meta meta;
};
struct ImageContent {
  std::string type, data, mime_type;
  std::optional<Annotations> annotations;
  Meta meta;
};
struct AudioContent : ImageContent {};
struct ResourceLink {
  std::string type, name, uri;
  std::optional<std::string> title, description, mime_type;
  std::optional<std::int64_t> size;
  std::optional<std::vector<Icon>> icons;
  std::optional<Annotations> annotations;
  Meta meta;
};
struct TextResource {
  std::string uri, text;
  std::optional<std::string> mime_type;
  Meta meta;
};
struct BlobResource {
  std::string uri, blob;
  std::optional<std::string> mime_type;
  Meta meta;
};
struct EmbeddedResource {
  std::string type;
  routes::OneOf<TextResource, BlobResource> resource;
  std::optional<Annotations> annotations;
  Meta meta;
};
struct CallToolResult {
  Meta meta, structured;
  std::vector<routes::OneOf<TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource>> content;
  bool is_error = false;
};

}  // namespace caisson::mcp

namespace caisson::routes {

template <>
struct Codec<mcp::ToolArguments> {
  static void decode(const json::Value& in, const Bounds&, const json::Value& loc, mcp::ToolArguments& out, const Decode& how) {
    if (in.is_null()) return;
    if (!in.is_object()) return how.issues.add(loc, "dict_type", "Input should be a valid dictionary");
    out.given = in;
  }
  static json::Value describe(const Bounds&, Components&) { return {{"type", "object"}, {"additionalProperties", true}}; }
  static std::string type_name() { return "Arguments"; }
  static constexpr bool all_optional() { return true; }
};

template <>
struct Codec<mcp::ServerEntry> {
  static void decode(const json::Value& in, const Bounds&, const json::Value& loc, mcp::ServerEntry& out, const Decode& how) {
    if (!in.is_object()) return how.issues.add(loc, "dict_type", "Input should be a valid dictionary");
    out.given = in;
  }
  static json::Value describe(const Bounds&, Components&) {
    return {{"type", "object"},
            {"additionalProperties", true},
            {"description", "One server, with the members that it has in `mcpServers` of the configuration"}};
  }
  static std::string type_name() { return "ServerEntry"; }
  static constexpr bool all_optional() { return false; }
};
template <>
struct Schema<mcp::AddedServer> {
  static constexpr std::string_view name = "AddedMcpServer";
  static constexpr auto fields = std::tuple{
      field("name", &mcp::AddedServer::name, "Its name"), field("domain", &mcp::AddedServer::domain, "The policy of its session"),
      field("prefix", &mcp::AddedServer::prefix, "Stands before the names of its tools and prompts")};
};

template <>
struct Schema<mcp::Icon> {
  static constexpr std::string_view name = "Icon";
  static constexpr auto fields =
      std::tuple{field("src", &mcp::Icon::src, "Address"), field("mimeType", &mcp::Icon::mime_type, "Media type"),
                 field("sizes", &mcp::Icon::sizes, "Such as 48x48")};
};
template <>
struct Schema<mcp::ToolAnnotations> {
  static constexpr std::string_view name = "ToolAnnotations";
  static constexpr auto fields =
      std::tuple{field("title", &mcp::ToolAnnotations::title, "Title"),
                 field("readOnlyHint", &mcp::ToolAnnotations::reads, "It changes nothing"),
                 field("destructiveHint", &mcp::ToolAnnotations::destroys, "It may destroy something"),
                 field("idempotentHint", &mcp::ToolAnnotations::repeats, "A second call changes nothing more"),
                 field("openWorldHint", &mcp::ToolAnnotations::outside, "It may reach beyond the sandbox")};
};
template <>
struct Schema<mcp::ToolExecution> {
  static constexpr std::string_view name = "ToolExecution";
  static constexpr auto fields = std::tuple{
      field("taskSupport", &mcp::ToolExecution::task_support, "Whether it is run as a task").one_of(mcp::kTaskSupport)};
};
template <>
struct Schema<mcp::ToolModel> {
  static constexpr std::string_view name = "Tool";
  static constexpr auto fields = std::tuple{field("name", &mcp::ToolModel::name, "Name"),
                                            field("title", &mcp::ToolModel::title, "Name for people"),
                                            field("description", &mcp::ToolModel::description, "What it does"),
                                            field("inputSchema", &mcp::ToolModel::input, "JSON Schema of its arguments").object(),
                                            field("outputSchema", &mcp::ToolModel::output, "JSON Schema of its result").object(),
                                            field("icons", &mcp::ToolModel::icons, "Icons"),
                                            field("annotations", &mcp::ToolModel::annotations, "What it may do"),
                                            field("_meta", &mcp::ToolModel::meta, "Metadata").object(),
                                            field("execution", &mcp::ToolModel::execution, "How it is run")};
};
template <>
struct Schema<mcp::ListToolsResult> {
  static constexpr std::string_view name = "ListToolsResultModel";
  static constexpr auto fields = std::tuple{field("_meta", &mcp::ListToolsResult::meta, "Metadata").object(),
                                            field("nextCursor", &mcp::ListToolsResult::next_cursor, "Always null: all are here"),
                                            field("tools", &mcp::ListToolsResult::tools, "The tools")};
};
template <>
struct Schema<mcp::Annotations> {
  static constexpr std::string_view name = "Annotations";
  static constexpr auto fields =
      std::tuple{field("audience", &mcp::Annotations::audience, "For whom it is").one_of(mcp::kAudience),
                 field("priority", &mcp::Annotations::priority, "From 0 to 1").min(0).max(1)};
};
template <>
struct Schema<mcp::TextContent> {
  static constexpr std::string_view name = "TextContent";
  static constexpr auto fields = std::tuple{field("type", &mcp::TextContent::type, "text").one_of(mcp::kTextType),
                                            field("text", &mcp::TextContent::text, "The text"),
                                            field("annotations", &mcp::TextContent::annotations, "For whom it is"),
                                            field("_meta", &mcp::TextContent::meta, "Metadata").object()};
};
template <>
struct Schema<mcp::ImageContent> {
  static constexpr std::string_view name = "ImageContent";
  static constexpr auto fields = std::tuple{field("type", &mcp::ImageContent::type, "image").one_of(mcp::kImageType),
                                            field("data", &mcp::ImageContent::data, "Base64"),
                                            field("mimeType", &mcp::ImageContent::mime_type, "Media type"),
                                            field("annotations", &mcp::ImageContent::annotations, "For whom it is"),
                                            field("_meta", &mcp::ImageContent::meta, "Metadata").object()};
};
template <>
struct Schema<mcp::AudioContent> {
  static constexpr std::string_view name = "AudioContent";
  using T = mcp::AudioContent;
  static constexpr auto fields =
      std::tuple{field("type", static_cast<std::string T::*>(&T::type), "audio").one_of(mcp::kAudioType),
                 field("data", static_cast<std::string T::*>(&T::data), "Base64"),
                 field("mimeType", static_cast<std::string T::*>(&T::mime_type), "Media type"),
                 field("annotations", static_cast<std::optional<mcp::Annotations> T::*>(&T::annotations), "For whom it is"),
                 field("_meta", static_cast<mcp::Meta T::*>(&T::meta), "Metadata").object()};
};
template <>
struct Schema<mcp::ResourceLink> {
  static constexpr std::string_view name = "ResourceLink";
  static constexpr auto fields = std::tuple{field("name", &mcp::ResourceLink::name, "Name"),
                                            field("title", &mcp::ResourceLink::title, "Name for people"),
                                            field("uri", &mcp::ResourceLink::uri, "Address").min_length(1),
                                            field("description", &mcp::ResourceLink::description, "What it is"),
                                            field("mimeType", &mcp::ResourceLink::mime_type, "Media type"),
                                            field("size", &mcp::ResourceLink::size, "Bytes"),
                                            field("icons", &mcp::ResourceLink::icons, "Icons"),
                                            field("annotations", &mcp::ResourceLink::annotations, "For whom it is"),
                                            field("_meta", &mcp::ResourceLink::meta, "Metadata").object(),
                                            field("type", &mcp::ResourceLink::type, "resource_link").one_of(mcp::kLinkType)};
};
template <>
struct Schema<mcp::TextResource> {
  static constexpr std::string_view name = "TextResourceContents";
  static constexpr auto fields = std::tuple{field("uri", &mcp::TextResource::uri, "Address").min_length(1),
                                            field("mimeType", &mcp::TextResource::mime_type, "Media type"),
                                            field("_meta", &mcp::TextResource::meta, "Metadata").object(),
                                            field("text", &mcp::TextResource::text, "The text")};
};
template <>
struct Schema<mcp::BlobResource> {
  static constexpr std::string_view name = "BlobResourceContents";
  static constexpr auto fields = std::tuple{field("uri", &mcp::BlobResource::uri, "Address").min_length(1),
                                            field("mimeType", &mcp::BlobResource::mime_type, "Media type"),
                                            field("_meta", &mcp::BlobResource::meta, "Metadata").object(),
                                            field("blob", &mcp::BlobResource::blob, "Base64")};
};
template <>
struct Schema<mcp::EmbeddedResource> {
  static constexpr std::string_view name = "EmbeddedResource";
  static constexpr auto fields = std::tuple{field("type", &mcp::EmbeddedResource::type, "resource").one_of(mcp::kResourceType),
                                            field("resource", &mcp::EmbeddedResource::resource, "What it holds"),
                                            field("annotations", &mcp::EmbeddedResource::annotations, "For whom it is"),
                                            field("_meta", &mcp::EmbeddedResource::meta, "Metadata").object()};
};
template <>
struct Schema<mcp::CallToolResult> {
  static constexpr std::string_view name = "CallToolResultModel";
  static constexpr auto fields =
      std::tuple{field("_meta", &mcp::CallToolResult::meta, "Metadata").object(),
                 field("content", &mcp::CallToolResult::content, "Texts, pictures and other parts"),
                 field("structuredContent", &mcp::CallToolResult::structured, "The result as an object").object(),
                 field("isError", &mcp::CallToolResult::is_error, "The tool has failed").defaulted()};
};

}  // namespace caisson::routes
