#include "agent/services/coding/coding.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "agent/services/coding/codex_config.h"
#include "agent/services/coding/opencode_config.h"
#include "launcher/common/base/hash.h"

namespace caisson::services {
namespace {

// Paths are relative: they start at the home.
constexpr std::string_view kCodexConfig = ".codex/config.toml";
constexpr std::string_view kCodexCatalog = ".codex/caisson-models.json";
constexpr std::string_view kOpenCodeConfig = ".config/opencode/opencode.json";
constexpr std::string_view kMark =
    " Caisson wrote this of the variables of its container, and does so again unless it is edited: ";

std::string first_line(const std::string& comment, std::string_view content) {
  return comment + std::string(kMark) + std::to_string(content.size()) + " " + sha256_hex(content);
}

// The text behind the content that was written here; nullopt: somebody changed that content.
std::optional<std::string_view> appended_to(const std::string& comment, std::string_view text) {
  const std::string begin = comment + std::string(kMark);
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || !text.starts_with(begin)) return std::nullopt;
  std::size_t size = 0;
  const char* const number = text.data() + begin.size();
  if (std::from_chars(number, text.data() + end, size).ec != std::errc() || size > text.size() - end - 1) return std::nullopt;
  const std::string_view content = text.substr(end + 1, size);
  if (text.substr(0, end) != first_line(comment, content)) return std::nullopt;
  return text.substr(end + 1 + size);
}

// Codex itself adds which folders its user trusts, which stays. By lines: a file of the home is not parsed here.
bool is_trust_alone(std::string_view appended) {
  while (!appended.empty()) {
    const std::size_t end = std::min(appended.find('\n'), appended.size());
    const std::string_view line = appended.substr(0, end);
    if (!line.empty() && !line.starts_with("[projects.") && !line.starts_with("trust_level = ")) return false;
    appended.remove_prefix(std::min(end + 1, appended.size()));
  }
  return true;
}

Error not_written(const std::string& path, const FileFailure& why) {
  const std::string reason = why.number != 0 ? std::strerror(why.number) : why.text.empty() ? why.kind : why.text;
  return {Code::io, "~/" + path + " cannot be written: " + reason};
}

}  // namespace

Coding::Coding(bridge::LauncherClient& launcher, const Config& config, FileService& files)
    : launcher_(launcher), files_(files), settings_(config.coding), workspace_(config.workspace) {}

const CodingSettings& Coding::settings() const {
  static const CodingSettings none;
  return settings_ && workspace_ == "default" ? *settings_ : none;
}

task<void> Coding::write(std::string path, std::string content) {
  json::Value head{{"path", path}};
  const FileReply reply = co_await files_.call(frames::FileOp::write, std::move(head), std::move(content));
  if (!reply) co_return std::unexpected(not_written(path, reply.error()));
  co_return Status{};
}

task<void> Coding::write_unless_edited(std::string path, std::string comment, std::string content) {
  json::Value head{{"path", path}};
  const FileReply there = co_await files_.call(frames::FileOp::read, std::move(head));
  if (!there && there.error().number != ENOENT) co_return std::unexpected(not_written(path, there.error()));
  const auto appended = there ? appended_to(comment, there->body) : std::string_view();
  while (content.ends_with('\n')) content.pop_back();
  const bool twice = appended && appended->contains("[projects.") && content.contains("[projects");  // TOML has a table once
  if (!appended || !is_trust_alone(*appended) || twice) co_return Status{};
  std::string text = first_line(comment, content) + "\n" + content + std::string(appended->empty() ? "\n" : *appended);
  if (there && there->body == text) co_return Status{};
  co_return co_await write(std::move(path), std::move(text));
}

task<void> Coding::prepare(std::string name, std::string version) {
  if (name == "opencode") {
    std::string config = opencode_config(settings().opencode);
    co_return co_await write_unless_edited(std::string(kOpenCodeConfig), "//", std::move(config));
  }
  const CodingSettings::Codex& codex = settings().codex;
  std::string catalog;
  if (!codex.catalog.empty()) {
    catalog = launcher_.greeting().home + "/" + std::string(kCodexCatalog);
    CO_TRY(co_await write(std::string(kCodexCatalog), codex.catalog));
  }
  std::string config = codex_config(codex, version, catalog);
  co_return co_await write_unless_edited(std::string(kCodexConfig), "#", std::move(config));
}

}  // namespace caisson::services
