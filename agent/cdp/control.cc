#include "agent/cdp/control.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>

#include "agent/cdp/flags.h"
#include "launcher/common/base/sys.h"

namespace caisson::cdp {
namespace {

constexpr std::string_view kCommands = "hold release restart status end";  // in the order of Do
static_assert(count_words(kCommands) == static_cast<int>(Do::end) + 1);

Result<std::optional<std::vector<std::string>>> patterns(const json::Value& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || it->is_null()) return std::nullopt;
  const auto bad = [&] { return fail(Code::invalid_argument, std::string(key) + " is no list of up to 1000 patterns"); };
  if (!it->is_array() || it->size() > kMaxPatterns) return bad();
  std::vector<std::string> out;
  for (const json::Value& one : *it) {
    const auto* text = one.get_ptr<const std::string*>();
    if (text == nullptr || text->empty() || text->size() > kMaxPatternBytes) return bad();
    out.push_back(*text);
  }
  return out;
}

Result<Wishes> wishes_of(const json::Value& object) {
  Wishes out;
  TRY_ASSIGN(out.url_blocklist, patterns(object, "url_blocklist"));
  TRY_ASSIGN(out.url_allowlist, patterns(object, "url_allowlist"));
  TRY_ASSIGN(out.allow_file_selection_dialogs, json::get_bool(object, "allow_file_selection_dialogs"));
  TRY_ASSIGN(const auto locale, json::get_string(object, "locale"));
  TRY_ASSIGN(const auto url, json::get_string(object, "url"));
  if (locale && !is_locale(*locale)) return fail(Code::invalid_argument, "locale is no language tag");
  if (url && !is_first_url(*url)) return fail(Code::invalid_argument, "url is no address for the first page");
  out.locale = locale.value_or("");
  out.url = url.value_or("");
  return out;
}

}  // namespace

Result<Command> read_command(std::string_view line) {
  TRY_ASSIGN(const json::Value object,
             json::parse(line, {.max_bytes = Control::kMaxLineBytes, .max_depth = 3, .max_values = 8192}));
  if (!object.is_object()) return fail(Code::invalid_argument, "command is no object");
  TRY_ASSIGN(const auto name, json::get_string(object, "do"));
  constexpr std::string_view kOfRestart = "do url_blocklist url_allowlist allow_file_selection_dialogs locale url";
  for (const auto& [key, value] : object.items()) {
    bool known = key == "do";
    for (std::size_t i = 0; i < static_cast<std::size_t>(count_words(kOfRestart)); ++i)
      known |= name == "restart" && word(kOfRestart, i) == key;
    if (!known) return fail(Code::invalid_argument, "command has an unknown member " + quote(key, 64));
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(count_words(kCommands)); ++i) {
    if (name != word(kCommands, i)) continue;
    Command out{.what = static_cast<Do>(i), .wishes = {}};
    if (out.what != Do::restart) return out;
    TRY_ASSIGN(out.wishes, wishes_of(object));
    return out;
  }
  return fail(Code::invalid_argument, "command is not known: " + quote(name.value_or(""), 64));
}

Control::~Control() {
  stop_reading();
  if (waiting_) loop_.unwatch(out_);
}

Status Control::listen(std::function<void(Result<Command>)> command, std::function<void()> closed) {
  command_ = std::move(command);
  closed_ = std::move(closed);
  for (const int fd : {in_, out_}) TRY(sys::set_nonblocking(fd, true));
  TRY(loop_.watch(in_, EPOLLIN, [this](std::uint32_t) { read(); }));
  listening_ = true;
  return {};
}

void Control::stop_reading() {
  if (std::exchange(listening_, false)) loop_.unwatch(in_);
}

void Control::read() {
  char bytes[16 * 1024];
  const ssize_t n = ::read(in_, bytes, sizeof bytes);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    stop_reading();
    return closed_();
  }
  std::string_view came(bytes, static_cast<std::size_t>(n));
  while (listening_ && !came.empty()) {
    const auto end = came.find('\n');
    line_.append(came.substr(0, end));
    came.remove_prefix(end == std::string_view::npos ? came.size() : end + 1);
    if (line_.size() > kMaxLineBytes) {
      stop_reading();
      return closed_();
    }
    if (end != std::string_view::npos) command_(read_command(std::exchange(line_, "")));
  }
}

void Control::tell(const json::Value& event) {
  if (untold_.size() > kMaxUntoldBytes) return;
  untold_ += json::dump(event) + "\n";
  write();
}

void Control::write() {
  while (!untold_.empty()) {
    const ssize_t n = ::write(out_, untold_.data(), untold_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) untold_.clear();  // nobody will ever read
    if (n < 0) break;
    untold_.erase(0, static_cast<std::size_t>(n));
  }
  if (!untold_.empty() && !waiting_) {
    waiting_ = loop_.watch(out_, EPOLLOUT, [this](std::uint32_t) { write(); }).has_value();
  } else if (untold_.empty() && std::exchange(waiting_, false)) {
    loop_.unwatch(out_);
  }
}

}  // namespace caisson::cdp
