// Settings of Anthropic's sandbox-runtime (policy_import.h). There reading is allowed unless it is denied and writing denied
// unless it is allowed; here nothing is visible that is not granted.
#include <algorithm>
#include <set>
#include <variant>

#include "launcher/cli/policy_import.h"
#include "launcher/common/policy/in_force.h"
#include "launcher/compiler/text_formats.h"
#include "launcher/egress/list/host.h"

namespace caisson::cli {
namespace {

class SrtImport {
 public:
  SrtImport(const json::Value& settings, const policy::Policy& base) : settings_(settings), base_(base) {}

  Result<Imported> run() {
    static const std::set<std::string> kSections{"filesystem", "network"};
    for (const auto& [key, value] : settings_.items())
      if (!kSections.contains(key)) say(quote(key, 64) + " has no counterpart");
    for (const std::string& key : kSections)
      if (settings_.contains(key) && !settings_[key].is_object())
        return fail(Code::invalid_argument, "'" + key + "' is not an object");
    TRY(filesystem(settings_.value("filesystem", json::Value::object())));
    TRY(network(settings_.value("network", json::Value::object())));
    json::Value& d = out_.document;
    d["description"] = "Imported from settings of sandbox-runtime.";
    d["extends"] = "base";
    for (const policy::Grant& g : grants_) {
      json::Value grant{{"path", g.path},
                        {"access", g.access == policy::Access::read ? "read" : "read-write"},
                        {"required", false},
                        {"description", g.description}};
      const policy::Grant* given = policy::ruling_grant(base_.grants, g.path);
      if (given == nullptr || (g.access == policy::Access::read_write && given->access == policy::Access::read))
        d["weaken"].push_back({{"field", "/grants" + g.path}, {"why", g.description + " of the imported settings"}});
      d["grants"].push_back(std::move(grant));
    }
    if (!hide_.empty()) {
      std::vector<std::string> all = base_.hide;
      for (const std::string& path : hide_)
        if (std::ranges::find(all, path) == all.end()) all.push_back(path);
      d["hide"] = all;
      d["why"]["/hide"] = "denyRead of the imported settings, and what base hides.";
    }
    return std::move(out_);
  }

 private:
  void say(std::string line) { out_.report.push_back(std::move(line)); }

  Result<std::vector<std::string>> list(const json::Value& section, const std::string& key) {
    std::vector<std::string> out;
    const auto it = section.find(key);
    if (it == section.end()) return out;
    if (!it->is_array() || it->size() > 200)
      return fail(Code::invalid_argument, "'" + key + "' must be a list of at most 200 strings");
    for (const json::Value& item : *it) {
      if (!item.is_string()) return fail(Code::invalid_argument, "'" + key + "' must be a list of strings");
      out.push_back(item.get<std::string>());
    }
    return out;
  }

  // The path inside a session, or "" when it has none, which is said.
  std::string path_of(const std::string& key, const std::string& text) {
    std::string path = text;
    if (path == "." || path == "./" || path == "~") path = base_.home_path;
    else if (path.starts_with("./") || path.starts_with("~/")) path = base_.home_path + path.substr(1);
    if (path.find_first_of("*?[]{}") != std::string::npos)
      return say(key + " " + quote(text) + ": patterns have no counterpart, a grant names one path"), "";
    if (!path.starts_with('/')) return say(key + " " + quote(text) + ": relative to a directory that is not known here"), "";
    if (path.size() > 1 && path.ends_with('/')) path.pop_back();
    if (const auto fault = policy::form_fault(policy::Form::path, path)) return say(key + ": " + fault->what), "";
    return path;
  }
  bool own(const std::string& path) const { return policy::inside(path, base_.home_path) || policy::inside(path, "/tmp"); }
  static bool reserved(const std::string& path) { return policy::inside(path, "/proc") || policy::inside(path, "/dev"); }

  Status filesystem(const json::Value& section) {
    static const std::set<std::string> kKnown{"allowWrite", "denyWrite", "denyRead", "allowRead"};
    for (const auto& [key, value] : section.items())
      if (!kKnown.contains(key)) say("filesystem." + key + " has no counterpart");
    say("reading: there everything is readable that is not denied; here only what base grants, home, /tmp and the grants below");
    TRY_ASSIGN(const auto write, list(section, "allowWrite"));
    TRY_ASSIGN(const auto read, list(section, "allowRead"));
    TRY_ASSIGN(const auto no_write, list(section, "denyWrite"));
    TRY_ASSIGN(const auto no_read, list(section, "denyRead"));
    for (const std::string& text : write) allow("allowWrite", text, policy::Access::read_write);
    for (const std::string& text : read) allow("allowRead", text, policy::Access::read);
    for (const std::string& text : no_write) deny_write(text);
    for (const std::string& text : no_read) deny_read(text);
    return {};
  }

  void allow(const std::string& key, const std::string& text, policy::Access access) {
    const std::string path = path_of(key, text);
    if (path.empty()) return;
    if (own(path)) return say(key + " " + quote(text) + ": home and /tmp are a session's own and writable already");
    if (reserved(path))
      return say(key + " " + quote(text) + ": the launcher makes /proc and /dev itself, nothing can be granted there");
    const policy::Grant* given = policy::ruling_grant(base_.grants, path);
    if (access == policy::Access::read && given != nullptr) return;  // base has it
    if (std::ranges::any_of(base_.files, [&](const auto& f) { return policy::inside(f.first, path); }) ||
        std::ranges::any_of(base_.links,
                            [&](const auto& l) { return policy::inside(l.first, path) || policy::inside(path, l.first); }))
      return say(key + " " + quote(text) + ": base makes files or links there of its own, a grant would change them");
    if (std::ranges::find(grants_, path, &policy::Grant::path) != grants_.end()) return;
    grants_.push_back({.path = path, .source = path, .access = access, .execute = false, .required = false, .description = key});
    if (access == policy::Access::read_write)
      say(key + " " + quote(text) + ": granted without execution; set \"execute\" where programs in it shall run");
  }

  void deny_write(const std::string& text) {
    const std::string path = path_of("denyWrite", text);
    if (path.empty()) return;
    if (own(path)) return say("denyWrite " + quote(text) + ": home and /tmp are writable as a whole, a part cannot be taken out");
    const policy::Grant* outer = policy::ruling_grant(grants_, path);
    if (outer == nullptr || outer->access == policy::Access::read) return;  // not writable anyway
    if (outer->path == path) {
      std::ranges::find(grants_, path, &policy::Grant::path)->access = policy::Access::read;
      return;
    }
    grants_.push_back({.path = path,
                       .source = path,
                       .access = policy::Access::read,
                       .execute = false,
                       .required = false,
                       .description = "denyWrite"});
    say("denyWrite " + quote(text) + ": a read-only grant inside a writable one needs tier T2");
  }

  void deny_read(const std::string& text) {
    const std::string path = path_of("denyRead", text);
    if (path.empty()) return;
    if (own(path)) return say("denyRead " + quote(text) + ": in the home or /tmp nothing can be hidden: keep it out of them");
    const bool visible = policy::ruling_grant(grants_, path) != nullptr || policy::ruling_grant(base_.grants, path) != nullptr;
    if (visible) hide_.push_back(path);
    else say("denyRead " + quote(text) + ": is in no grant, so it is not even visible");
  }

  Status network(const json::Value& section) {
    TRY_ASSIGN(const auto local, json::get_bool(section, "allowLocalBinding"));
    TRY_ASSIGN(const auto allowed, list(section, "allowedDomains"));
    TRY_ASSIGN(const auto denied, list(section, "deniedDomains"));
    for (const auto& [key, value] : section.items())
      if (key != "allowLocalBinding" && key != "allowedDomains" && key != "deniedDomains")
        say("network." + key + " has no counterpart");
    for (const std::string& domain : allowed) rule("allowedDomains", domain, false);
    const bool out = !rules_.empty();
    for (const std::string& domain : denied) rule("deniedDomains", domain, true);
    json::Value& d = out_.document;
    d["network"] = out ? "allowlist" : local.value_or(false) ? "loopback" : "none";
    if (!out) {
      if (!rules_.empty()) say("network.deniedDomains: sessions reach nothing outside, so there are no names to deny");
      d["why"]["/network"] =
          local.value_or(false) ? "allowLocalBinding of the imported settings." : "The imported settings bind nothing locally.";
      return {};
    }
    d["egress"] = rules_;
    d["weaken"].push_back({{"field", "/network"}, {"why", "allowedDomains of the imported settings"}});
    say("network.allowedDomains: there at every port and address; here at 80 and 443, and at public addresses, "
        "unless \"ports\" and \"private\" say more");
    return {};
  }

  // What is written in another spelling is the same host: rules have one form of each.
  void rule(const std::string& key, const std::string& text, bool deny) {
    const bool below = text.starts_with("*.");
    const auto host = egress::read_host(below ? std::string_view(text).substr(2) : std::string_view(text));
    const bool address = host && std::holds_alternative<egress::Address>(*host);
    if (!host || (below && address))
      return say("network." + key + " " + quote(text) + ": is neither a name, nor *. in front of one, nor an address");
    const std::string place = (below ? "*." : "") + egress::host_text(*host);
    if (place == "localhost" || place.ends_with(".localhost"))
      return say("network." + key + " " + quote(text) + ": a session's loopback is its workspace's, and never outside");
    if (address && !deny)
      return say("network." + key + " " + quote(text) + ": is an address: such a rule names its ports, which are not known here");
    json::Value made = {{"host", place}, {"why", key + " of the imported settings"}};
    if (deny) made["deny"] = true;
    if (std::ranges::find(rules_, made) == rules_.end()) rules_.push_back(std::move(made));
  }

  const json::Value& settings_;
  const policy::Policy& base_;
  Imported out_;
  std::vector<policy::Grant> grants_;
  std::vector<std::string> hide_;
  json::Value rules_ = json::Value::array();
};

}  // namespace

Result<Imported> import_srt(const json::Value& settings, const policy::Policy& base) {
  if (!settings.is_object()) return fail(Code::invalid_argument, "settings are an object");
  return SrtImport(settings, base).run();
}

}  // namespace caisson::cli
