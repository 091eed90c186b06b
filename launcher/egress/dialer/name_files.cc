#include "launcher/egress/dialer/name_files.h"

#include "launcher/common/base/sys.h"

namespace caisson::egress {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;
constexpr std::string_view kBlank = " \t\r";

// The line's next word, which is taken off.
std::string_view word(std::string_view& line) {
  const std::size_t from = line.find_first_not_of(kBlank);
  if (from == std::string_view::npos) return line = {};
  const std::size_t to = std::min(line.find_first_of(kBlank, from), line.size());
  const std::string_view out = line.substr(from, to - from);
  line.remove_prefix(to);
  return out;
}

template <class F>
void each_line(std::string_view text, F f) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    f(line.substr(0, std::min(line.find_first_of("#;"), line.size())));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Not in the spellings that only clients use: the text of these files is the system's.
const Address* address_in(const Result<Host>& host) { return host ? std::get_if<Address>(&*host) : nullptr; }

}  // namespace

std::vector<Address> servers_in(std::string_view resolv_conf) {
  std::vector<Address> out;
  each_line(resolv_conf, [&out](std::string_view line) {
    if (word(line) != "nameserver" || out.size() == kMostServers) return;
    const auto host = read_host(word(line));
    if (const Address* address = address_in(host)) out.push_back(*address);
  });
  if (out.empty()) out.push_back({.bytes = {127, 0, 0, 1}});
  return out;
}

std::map<std::string, std::vector<Address>, std::less<>> hosts_in(std::string_view hosts) {
  std::map<std::string, std::vector<Address>, std::less<>> out;
  each_line(hosts, [&out](std::string_view line) {
    const auto first = read_host(word(line));
    const Address* address = address_in(first);
    if (address == nullptr) return;
    for (std::string_view next = word(line); !next.empty(); next = word(line)) {
      const auto name = read_host(next);
      if (name && std::holds_alternative<Name>(*name)) out[std::get<Name>(*name).text].push_back(*address);
    }
  });
  return out;
}

bool NameFiles::Watched::changed(std::string& text) {
  struct stat now{};
  if (::stat(path.c_str(), &now) != 0) now = {};
  const bool same = read && now.st_mtim.tv_sec == seen.st_mtim.tv_sec && now.st_mtim.tv_nsec == seen.st_mtim.tv_nsec &&
                    now.st_ino == seen.st_ino && now.st_size == seen.st_size;
  if (same) return false;
  read = true, seen = now;
  auto content = sys::read_file(path, kMostBytes);
  text = content ? std::move(*content) : std::string();
  return true;
}

const std::vector<Address>& NameFiles::servers() {
  if (std::string text; resolv_conf_.changed(text)) servers_ = servers_in(text);
  return servers_;
}

const std::vector<Address>* NameFiles::addresses_of(const Name& name) {
  if (std::string text; hosts_file_.changed(text)) hosts_ = hosts_in(text);
  const auto it = hosts_.find(name.text);
  return it == hosts_.end() ? nullptr : &it->second;
}

}  // namespace caisson::egress
