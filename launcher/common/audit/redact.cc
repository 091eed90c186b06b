#include "launcher/common/audit/redact.h"

#include <algorithm>
#include <utility>

#include "launcher/common/audit/log.h"

namespace caisson::audit {
namespace {

// Parts of names (lower case, '-' and '.' as '_') whose values are secrets ...
constexpr std::string_view kSecretParts[] = {"password", "passwd",        "passphrase", "secret",      "token",      "api_key",
                                             "apikey",   "access_key",    "accesskey",  "private_key", "privatekey", "credential",
                                             "auth_key", "authorization", "cookie",     "bearer"};
constexpr std::string_view kSecretEnds[] = {"_pwd", "_pass", "_key", "_pat", "_auth"};
// ... unless the name goes on to say that the value is something else.
constexpr std::string_view kHarmlessEnds[] = {"_file",  "_path", "_dir",  "_stdin", "_count",
                                              "_limit", "_type", "_name", "_id",    "_url"};

// Tokens known by their beginning, with the least length of what follows.
struct PrefixRow {
  std::string_view prefix;
  std::size_t least;
};
constexpr PrefixRow kPrefixes[] = {
    {"AKIA", 16},  {"ASIA", 16},        {"ghp_", 16},   {"gho_", 16},  {"ghu_", 16},     {"ghs_", 16},
    {"ghr_", 16},  {"github_pat_", 16}, {"glpat-", 16}, {"sk-", 16},   {"sk_live_", 10}, {"rk_live_", 10},
    {"xoxa-", 10}, {"xoxb-", 10},       {"xoxp-", 10},  {"xoxr-", 10}, {"xoxs-", 10},    {"AIza", 30},
    {"ya29.", 20}, {"hf_", 20},         {"npm_", 20},   {"pypi-", 30}, {"eyJ", 30},
};

// Short flags that carry a secret for one program only: "-p" alone may mean anything.
struct FlagRow {
  std::string_view program;
  std::string_view flag;
};
constexpr FlagRow kFlags[] = {
    {"sshpass", "-p"}, {"mysql", "-p"}, {"mysqldump", "-p"}, {"mysqladmin", "-p"}, {"mariadb", "-p"}, {"redis-cli", "-a"},
};
// Flags whose value is user:password; only what follows the colon goes.
constexpr std::string_view kUserFlags[] = {"-u", "--user", "-U", "--proxy-user"};
constexpr std::string_view kSchemes[] = {"Bearer ", "bearer ", "Basic ", "basic ", "Token ", "token ", "Digest ", "ApiKey "};

bool letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }
bool name_char(char c) { return letter_or_digit(c) || c == '_' || c == '-' || c == '.'; }
bool quote_char(char c) { return c == '\'' || c == '"'; }

std::string normal(std::string_view name) {
  while (!name.empty() && name.front() == '-') name.remove_prefix(1);
  std::string out;
  for (const char c : name) out += c == '-' || c == '.' ? '_' : c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

bool secret_name(std::string_view raw) {
  const std::string name = normal(raw);
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  if (name.starts_with("no_") || std::ranges::any_of(kHarmlessEnds, ends)) return false;
  return name == "pass" || std::ranges::any_of(kSecretEnds, ends) ||
         std::ranges::any_of(kSecretParts, [&](std::string_view part) { return name.contains(part); });
}

bool header_name(std::string_view raw) {
  const std::string name = normal(raw);
  return name.ends_with("authorization") || name.ends_with("cookie") || (name.starts_with("x_") && secret_name(name));
}

// One pass over one text. What a shell would run is kept even inside a secret's place: $(...), `...` and anything behind
// an unquoted separator stay readable, so that a command cannot hide from the log behind "TOKEN=". Linear in the
// text: no search looks beyond what is then consumed, since the launcher runs this on what a hostile client sends.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::string run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n' || c == ';' || c == '|' || c == '&') program_ = {};
      if (text_.substr(at_).starts_with("://")) url();
      else if (text_.substr(at_).starts_with("-----BEGIN ")) pem();
      else if (name_char(c)) word();
      else copy(1);
    }
    return std::move(out_);
  }

 private:
  void copy(std::size_t n) {
    n = std::min(n, text_.size() - at_);
    out_.append(text_, at_, n);
    at_ += n;
  }
  void redact(std::size_t end) {
    if (end > at_) out_.append(kRedacted);
    at_ = std::max(at_, end);
  }
  [[nodiscard]] std::size_t skip(std::size_t from, auto&& test) const {
    while (from < text_.size() && test(text_[from])) ++from;
    return from;
  }

  // user:password@ of a URL, or a long user alone (a token in its place).
  void url() {
    copy(3);
    const std::size_t end = skip(at_, [](char c) { return c > ' ' && c != '/' && c != '?' && c != '#' && !quote_char(c); });
    const std::string_view authority = text_.substr(at_, end - at_);
    const std::size_t host = authority.rfind('@');
    if (host == std::string_view::npos) return;
    const std::size_t colon = authority.find(':');
    if (colon >= host && host < 16) return;
    const std::size_t stop = at_ + host;
    if (colon < host) copy(colon + 1);
    redact(stop);
  }

  void pem() {
    const std::size_t line = std::min(text_.find("-----", at_ + 11), text_.size());
    const bool secret = text_.substr(at_, line - at_).contains("PRIVATE KEY");
    copy(line - at_ + 5);
    if (secret) redact(std::min(text_.find("-----END", at_), text_.size()));
  }

  void word() {
    const std::size_t end = skip(at_, name_char);
    const std::string_view word = text_.substr(at_, end - at_);
    for (const PrefixRow& row : kPrefixes)
      if (word.starts_with(row.prefix) && word.size() >= row.prefix.size() + row.least) return redact(end);
    for (const FlagRow& row : kFlags) {
      if (word == row.program) program_ = row.program;
      if (program_ != row.program || !word.starts_with(row.flag)) continue;
      copy(row.flag.size());
      return word.size() > row.flag.size() ? redact(value_end(at_, false)) : spaced_value(false);
    }
    const bool user = std::ranges::find(kUserFlags, word) != std::end(kUserFlags);
    const bool secret = word.size() >= 4 && secret_name(word);
    copy(word.size());
    if (!user && !secret) return;
    // The closing quote of a JSON key, possibly escaped, then the separator.
    const std::size_t close = skip(at_, [](char c) { return quote_char(c) || c == '\\'; });
    const std::size_t gap = skip(close, [](char c) { return c == ' '; });
    const std::size_t sign = gap < text_.size() && text_[gap] == ':' ? gap : close;
    if (secret && sign < text_.size() && (text_[sign] == '=' || text_[sign] == ':')) {
      const bool line = text_[sign] == ':' && close == at_ && header_name(word);
      copy(skip(sign, [](char c) { return c == '=' || c == ':' || c == '>'; }) - at_);
      return line ? header_value() : spaced_value(false);
    }
    if (user && at_ < text_.size() && text_[at_] == '=') copy(1);
    if (word.starts_with("-") && at_ < text_.size() && (text_[at_] == ' ' || user)) spaced_value(user);
  }

  // Where a value that begins at `from` ends: its closing quote, or white space or an operator of the shell.
  [[nodiscard]] std::size_t value_end(std::size_t from, bool line, char quote = 0) const {
    for (std::size_t i = from; i < text_.size(); ++i) {
      const char c = text_[i];
      if (quote != '\'' && (c == '`' || (c == '$' && text_.substr(i).starts_with("$(")))) return i;
      if (quote != 0 ? c == quote : quote_char(c) || c == '\n')
        return i > from && text_[i - 1] == '\\' && quote != '\'' ? i - 1 : i;
      if (quote == 0 && !line && std::string_view(" \t;&|()<>,}").contains(c)) return i;
    }
    return text_.size();
  }

  void header_value() {
    copy(skip(at_, [](char c) { return c == ' '; }) - at_);
    scheme();
    redact(value_end(at_, true));
  }

  void spaced_value(bool user) {
    copy(skip(at_, [](char c) { return c == ' ' || c == '\\'; }) - at_);
    char quote = 0;
    if (at_ < text_.size() && quote_char(text_[at_])) {
      quote = text_[at_];
      copy(1);
    }
    scheme();
    const std::size_t end = value_end(at_, false, quote);
    if (user) {
      const std::size_t colon = text_.substr(at_, end - at_).find(':');
      if (colon == std::string_view::npos) return;
      copy(colon + 1);
    }
    redact(end);
  }

  void scheme() {
    for (const std::string_view s : kSchemes)
      if (text_.substr(at_).starts_with(s)) return copy(s.size());
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string out_;
  std::string_view program_;
};

// "bash -c", "python3 -c", "perl -e", "eval", "env -S": what follows is a script.
bool script_follows(std::string_view before) {
  if (before == "eval" || before == "-S") return true;
  return before.size() >= 2 && before[0] == '-' && before[1] != '-' && (before.ends_with('c') || before.ends_with('e'));
}

bool flag_takes_secret(std::string_view program, std::string_view flag) {
  program.remove_prefix(std::min(program.rfind('/') + 1, program.size()));
  for (const FlagRow& row : kFlags)
    if (row.program == program && row.flag == flag) return true;
  return flag.starts_with('-') && std::ranges::all_of(flag, name_char) && secret_name(flag);
}

// One element of an argv that is data, not a script: all of NAME=value is the value, spaces included.
std::string redacted_element(std::string_view program, std::string_view element) {
  program.remove_prefix(std::min(program.rfind('/') + 1, program.size()));
  for (const FlagRow& row : kFlags)
    if (row.program == program && element.starts_with(row.flag) && element.size() > row.flag.size())
      return std::string(row.flag) + std::string(kRedacted);
  const std::size_t sign = element.find('=');
  const std::string_view name = element.substr(0, std::min(sign, element.size()));
  const bool code = element.find_first_of(";|&`\n") != std::string_view::npos || element.contains("$(");
  if (sign != std::string_view::npos && !code && std::ranges::all_of(name, name_char) && secret_name(name))
    return std::string(element.substr(0, sign + 1)) + std::string(kRedacted);
  return redacted_text(element);
}

}  // namespace

std::string redacted_text(std::string_view text) { return Scanner(text).run(); }

json::Value redacted_argv(const json::Value& argv) {
  if (!argv.is_array()) return argv;
  json::Value out = json::Value::array();
  std::string_view program, before;
  for (const json::Value& item : argv) {
    if (!item.is_string()) {
      out.push_back(item);
      continue;
    }
    const std::string_view element = item.get_ref<const std::string&>();
    const std::size_t colon = element.find(':');
    if (out.empty()) program = element;
    if (flag_takes_secret(program, before) && !element.starts_with("--")) out.push_back(kRedacted);
    else if (std::ranges::find(kUserFlags, before) != std::end(kUserFlags) && colon != std::string_view::npos)
      out.push_back(std::string(element.substr(0, colon + 1)) + std::string(kRedacted));
    else out.push_back(script_follows(before) ? redacted_text(element) : redacted_element(program, element));
    before = element;
  }
  return out;
}

}  // namespace caisson::audit
