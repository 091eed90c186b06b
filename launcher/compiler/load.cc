// Reads and checks a policy directory. Files come from an operator. A change to one can widen every session: as
// root, files that others may write are refused, and so are symbolic links, whose target may be somebody else's.
#include "launcher/compiler/load.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "launcher/common/base/hash.h"
#include "launcher/common/base/session_id.h"
#include "launcher/common/base/sys.h"
#include "launcher/compiler/canonical.h"
#include "launcher/compiler/egress.h"
#include "launcher/compiler/nearest.h"
#include "launcher/compiler/secrets.h"
#include "launcher/compiler/stages.h"
#include "launcher/egress/list/lists.h"

namespace caisson::policy {
namespace {

constexpr std::size_t kMaxFile = 256 * 1024;
constexpr std::size_t kMaxFiles = 64;

// Lines cost as much as the rest: they are counted only once something is known to be wrong.
enum class Lines { no, yes };

// Why its owner or mode is refused; empty: it is not.
std::string trust_fault(const struct stat& st, uid_t reader) {
  if (reader != 0) return {};  // an unprivileged launcher gives nobody more than they have
  if (st.st_uid != 0)
    return "belongs to uid " + std::to_string(st.st_uid) + ", not to root: its owner could widen every session (chown root)";
  if ((st.st_mode & 022) != 0) return "is writable by users other than root (chmod go-w)";
  return {};
}

Result<std::string> read_policy_file(int dir, const std::string& name) {
  auto fd = sys::openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (!fd && fd.error().sys == ELOOP)
    return fail(Code::invalid_argument, "is a symbolic link: policies are read from regular files only");
  if (!fd) return std::unexpected(std::move(fd).error());
  struct stat st{};
  if (::fstat(fd->get(), &st) != 0) return sys_error("stat");
  if (!S_ISREG(st.st_mode)) return fail(Code::invalid_argument, "is not a regular file");
  if (const auto fault = trust_fault(st, ::geteuid()); !fault.empty()) return fail(Code::permission_denied, fault);
  return sys::read_fd(fd->get(), kMaxFile);
}

// Parsed and valid by `fields`; otherwise nullopt, and the problems say why.
std::optional<Source> load_file(int dir, const std::string& name, const std::string& label, std::span<const Field> fields,
                                Lines lines, Problems& problems) {
  Source source{.file = label, .doc = {}, .lines = {}};
  auto text = read_policy_file(dir, name);
  if (!text) return problems.add(source, "", text.error().text()), std::nullopt;
  static constexpr json::Bounds kBounds{.max_bytes = kMaxFile, .max_depth = 16, .max_values = 32 * 1024};
  auto doc = lines == Lines::yes ? json::parse_with_lines(*text, kBounds, source.lines) : json::parse(*text, kBounds);
  if (!doc) {
    // The parser's text begins with "line N: ".
    std::string what = doc.error().what;
    int line = 1;
    if (const auto colon = what.find(": "); what.starts_with("line ") && colon != std::string::npos) {
      std::from_chars(what.data() + 5, what.data() + colon, line);
      what.erase(0, colon + 2);
    }
    source.lines = {{"", line}};
    return problems.add(source, "", what), std::nullopt;
  }
  source.doc = std::move(*doc);
  const std::size_t before = problems.count();
  validate(source, fields, problems);
  return problems.count() == before ? std::optional(std::move(source)) : std::nullopt;
}

// Names of the *.json in a directory, sorted.
Result<std::vector<std::string>> json_files(int dir) {
  Fd copy(::fcntl(dir, F_DUPFD_CLOEXEC, 3));
  DIR* entries = copy ? ::fdopendir(copy.get()) : nullptr;
  if (entries == nullptr) return sys_error("list directory");
  (void)copy.release();  // closedir closes it
  std::vector<std::string> out;
  while (const dirent* entry = ::readdir(entries))
    if (std::string_view name = entry->d_name; name.ends_with(".json") && name != "schema.json" && name[0] != '.')
      out.emplace_back(name);
  ::closedir(entries);
  std::ranges::sort(out);
  if (out.size() > kMaxFiles) return fail(Code::limit, "more than " + std::to_string(kMaxFiles) + " files");
  return out;
}

struct Directory {
  Fd fd;
  std::vector<std::string> names;
};

std::optional<Directory> open_directory(const std::string& path, Problems& problems) {
  const Source source{.file = path, .doc = {}, .lines = {}};
  auto fd = sys::open(path, O_RDONLY | O_DIRECTORY);
  if (!fd) return problems.add(source, "", fd.error().text()), std::nullopt;
  struct stat st{};
  std::string fault = ::fstat(fd->get(), &st) != 0 ? "cannot be examined" : trust_fault(st, ::geteuid());
  if (!fault.empty()) return problems.add(source, "", fault), std::nullopt;
  auto names = json_files(fd->get());
  if (!names) return problems.add(source, "", names.error().text()), std::nullopt;
  return Directory{std::move(*fd), std::move(*names)};
}

std::string stem(const std::string& file) { return file.substr(0, file.size() - 5); }

// As they are mounted; programs run there where they run in the home. What the policy says of a place, or of one in it or around
// it, is what its author wants of it: such a mount adds nothing.
void add_mounts(Policy& policy, const std::vector<Grant>& mounts) {
  if (policy.home != Scope::workspace) return;
  std::vector<std::string> said = policy.hide;
  for (const Grant& grant : policy.grants) said.insert(said.end(), {grant.path, grant.source});
  for (const auto* made : {&policy.files, &policy.links})
    for (const auto& [path, what] : *made) said.push_back(path);
  said.insert(said.end(), {policy.home_path, "/tmp"});
  for (const Grant& mount : mounts) {
    if (std::ranges::any_of(said, [&](const std::string& p) { return inside(p, mount.path) || inside(mount.path, p); })) continue;
    policy.grants.push_back(mount);
    policy.grants.back().execute = mount.execute && policy.exec_writable;
    policy.weaken["/grants" + mount.path] = mount.description;
  }
  std::ranges::sort(policy.grants, {}, &Grant::path);
}

std::vector<std::string> domains_of(const std::vector<std::string>& files) {
  std::vector<std::string> out;
  for (const std::string& file : files)
    if (file != "base.json") out.push_back(stem(file));
  return out;
}

// A file with everything that it extends.
struct Layer {
  std::optional<Source> source;    // as it stands
  json::Value merged;              // over its parents; null: it or one of them has a problem
  std::vector<std::string> files;  // base.json first
};

class Loader {
 public:
  Loader(const std::string& path, const Choice& choice, Lines lines) : path_(path), choice_(choice), lines_(lines) {}

  LoadResult load() {
    if ((directory_ = open_directory(path_, problems_))) read();
    result_.problems = problems_.take();
    if (!result_.problems.empty()) result_.policies.clear();
    return std::move(result_);
  }

 private:
  void read() {
    load_sets();
    if (const Layer* base = layer("base", nullptr); problems_.count() == 0) result_.base = finish(*base, "base");
    if (problems_.count() == 0 && !choice_.preset.empty()) load_preset();
    const bool ready = problems_.count() == 0;
    for (const std::string& domain : domains_of(directory_->names)) {
      if (!choice_.only.empty() && domain != choice_.only) continue;
      if (const auto fault = form_fault(Form::domain, domain)) problem(path_ + "/" + domain + ".json", fault->what);
      else if (const Layer* top = layer(domain, nullptr); ready && !top->merged.is_null())
        result_.policies[domain] = finish(*top, domain);
    }
    measure_ways_out();
    look_at_secrets();
    if (problems_.count() == 0 && result_.policies.empty())
      problem(path_,
              choice_.only.empty() ? "has no domain: the only *.json is base.json" : "has no domain " + quote(choice_.only, 64),
              nearest(choice_.only, domains_of(directory_->names)));
  }

  // Door and dialer have all of them.
  void measure_ways_out() {
    std::size_t bytes = 0;
    for (const auto& [domain, policy] : result_.policies)
      if (policy != nullptr && goes_out(policy->network)) bytes += domain.size() + policy->egress.size() + 16;
    if (bytes > egress::kMaxListsBytes)
      problem(path_, "has egress lists of " + std::to_string(bytes) + " bytes in all its domains together, and at most " +
                         std::to_string(egress::kMaxListsBytes) + " are possible: say fewer rules, or shorter reasons");
  }

  // What one domain's sessions use without having it, another's may not read.
  void look_at_secrets() {
    for (const auto& [domain, policy] : result_.policies)
      if (const std::string what = policy != nullptr ? shown_secret(*policy, result_.policies) : ""; !what.empty())
        problem(path_ + "/" + domain + ".json", what);
    if (!choice_.only.empty() || problems_.count() != 0) return;
    if (const std::string what = fault_of_credentials(result_.policies); !what.empty())
      problem(path_ + "/" + std::string(kCredentialsDomain) + ".json", what);
  }

  void problem(const std::string& file, const std::string& what, const std::string& meant = {}) {
    problems_.add({.file = file, .doc = {}, .lines = {}}, "", what, meant);
  }

  void load_sets() {
    const auto directory = open_directory(path_ + "/seccomp", problems_);
    if (!directory) return;
    for (const std::string& file : directory->names)
      if (const auto source = load_file(directory->fd.get(), file, path_ + "/seccomp/" + file, set_fields(), lines_, problems_))
        sets_[stem(file)] = build_set(*source, stem(file), problems_);
  }

  void load_preset() {
    const std::string folder = path_ + "/presets", file = choice_.preset + ".json";
    const auto directory = open_directory(folder, problems_);
    if (!directory) return;
    if (std::ranges::find(directory->names, file) == directory->names.end())
      return problem(folder, "has no preset " + quote(choice_.preset, 64), nearest(choice_.preset, domains_of(directory->names)));
    preset_ = load_file(directory->fd.get(), file, folder + "/" + file, policy_fields(), lines_, problems_);
    if (!preset_) return;
    check_file(*preset_, Kind::preset, problems_);
    if (preset_->doc.contains("extends"))
      problems_.add(*preset_, "/extends", "a preset extends nothing: it applies to every domain");
    else check_widening(with_defaults(layers_.at("base").merged), *preset_, "base", problems_);
  }

  // The layer of a file, read once. child: whose "extends" names it.
  const Layer* layer(const std::string& name, const Source* child) {
    if (const auto known = layers_.find(name); known != layers_.end()) {
      if (child != nullptr && open_.contains(name))
        problems_.add(*child, "/extends", "extends itself through " + quote(name, 64));
      return &known->second;
    }
    Layer& out = layers_[name];
    const std::string file = name + ".json";
    if (child != nullptr && std::ranges::find(directory_->names, file) == directory_->names.end()) {
      problems_.add(*child, "/extends", "there is no " + quote(file, 64), nearest(name, domains_of(directory_->names)));
      return &out;
    }
    const std::size_t before = problems_.count();
    out.source = load_file(directory_->fd.get(), file, path_ + "/" + file, policy_fields(), lines_, problems_);
    if (!out.source) return &out;
    check_file(*out.source, name == "base" ? Kind::base : Kind::domain, problems_);
    if (problems_.count() > before) return &out;
    open_.insert(name);
    name == "base" ? join(out, nullptr, file)
                   : join(out, layer(out.source->doc["extends"].get<std::string>(), &*out.source), file);
    open_.erase(name);
    if (problems_.count() > before) out.merged = nullptr;
    return &out;
  }

  void join(Layer& out, const Layer* parent, const std::string& file) {
    if (parent != nullptr && parent->merged.is_null()) return;
    if (parent != nullptr && parent->files.size() >= 4)
      return problems_.add(*out.source, "/extends", "is the fifth file of a chain; a chain has at most four");
    if (parent != nullptr) out.files = parent->files;
    // Even base.json must give the reason where it switches a mechanism off, opens a port, the API or a way out.
    static const json::Value kNothing = json::Value::object({{"disable", json::Value::array()},
                                                             {"published_ports", json::Value::array()},
                                                             {"api", json::Value::array()},
                                                             {"network", "loopback"}});
    check_widening(parent != nullptr ? with_defaults(parent->merged) : kNothing, *out.source,
                   parent != nullptr ? stem(parent->files.back()) : "base", problems_);
    out.merged = parent != nullptr ? merge(parent->merged, out.source->doc) : out.source->doc;
    out.files.push_back(file);
  }

  std::shared_ptr<Policy> make(const json::Value& doc, const Source& blamed, const std::string& domain, std::string preset) {
    auto policy = std::make_shared<Policy>(build(doc));
    policy->domain = domain;
    policy->preset = std::move(preset);
    bind_secrets(*policy, list_of(doc, "secrets"), choice_.run, choice_.authorities);
    check_policy(*policy, blamed, sets_, problems_);
    return policy;
  }

  // What only the whole shows, without the preset and with it.
  std::shared_ptr<const Policy> finish(const Layer& top, const std::string& domain) {
    const std::size_t before = problems_.count();
    const json::Value base = with_defaults(layers_.at("base").merged);
    json::Value doc = settle(base, top.merged);
    auto policy = make(doc, *top.source, domain, "");
    policy->layers = top.files;
    if (policy->network == Network::none && !policy->published_ports.empty())
      problems_.add(*top.source, "/published_ports",
                    "opens ports at which nothing can listen, because network is none: say \"published_ports\": []");
    if (policy->network == Network::none && !policy->api.empty())
      problems_.add(*top.source, "/api", "cannot be reached, because network is none: say \"api\": []");
    if (const json::Value* rules = domain != "base" && !goes_out(policy->network) ? at(top.source->doc, "/egress") : nullptr;
        rules != nullptr && allows_more(json::Value::array(), *rules))
      problems_.add(*top.source, "/egress",
                    "permits nothing, because network is " +
                        std::string(word(words(policy->network), static_cast<std::size_t>(policy->network))) +
                        ": say \"network\": \"allowlist\", or leave the rules that allow to the files that have it");
    if (domain != "base" && !goes_out(policy->network) && !list_of(top.source->doc, "secrets").empty())
      problems_.add(*top.source, "/secrets", "binds nothing, because the policy has no way out: say \"network\": \"allowlist\"");
    if (preset_ && problems_.count() == before) {
      policy = make(settle(base, apply_preset(base, std::move(doc), preset_->doc)), *preset_, domain, choice_.preset);
      policy->layers = top.files;
      policy->layers.push_back("presets/" + choice_.preset + ".json");
      if (policy->network == Network::none) policy->published_ports.clear(), policy->api.clear();
    }
    if (domain != "base") add_mounts(*policy, choice_.mounts);
    policy->digest = digest_of(*policy);
    return policy;
  }

  const std::string& path_;
  const Choice& choice_;
  const Lines lines_;
  Problems problems_;
  LoadResult result_;
  std::optional<Directory> directory_;
  Sets sets_;
  std::map<std::string, Layer> layers_;
  std::set<std::string> open_;  // whose parents are being read
  std::optional<Source> preset_;
};

}  // namespace

LoadResult load_directory(const std::string& path, const Choice& choice) {
  LoadResult result = Loader(path, choice, Lines::no).load();
  // A directory that changes meanwhile is judged by what the second reading finds.
  return result.problems.empty() ? result : Loader(path, choice, Lines::yes).load();
}

Result<SyscallSet> parse_set(const std::string& name, json::Value doc) {
  const Source source{.file = name, .doc = std::move(doc), .lines = {}};
  Problems problems;
  validate(source, set_fields(), problems);
  SyscallSet set;
  if (problems.count() == 0) set = build_set(source, name, problems);
  if (problems.count() != 0) return fail(Code::invalid_argument, problems.take().front().text());
  return set;
}

}  // namespace caisson::policy
