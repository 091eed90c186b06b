// Reads and checks a policy directory. Files come from an operator, and whoever can change one can widen every session: as
// root, files that others may write are refused, and so are symbolic links, whose target may be somebody else's.
#include "launcher/policy/load.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "launcher/base/hash.h"
#include "launcher/base/sys.h"
#include "launcher/policy/stages.h"

namespace caisson::policy {
namespace {

constexpr std::size_t kMaxFile = 256 * 1024;
constexpr std::size_t kMaxFiles = 64;

// Lines cost as much as the rest: they are counted only once something is known to be wrong.
enum class Lines { no, yes };

// What is wrong with who owns it; empty: nothing.
std::string trust_fault(const struct stat& st, uid_t reader) {
  if (reader != 0) return {};  // an unprivileged launcher gives nobody more than they have
  if (st.st_uid != 0)
    return "belongs to uid " + std::to_string(st.st_uid) + ", not to root, who could then be made to allow anything (chown root)";
  if ((st.st_mode & 022) != 0) return "can be written by others than root (chmod go-w)";
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
  auto doc = json::parse(*text, {.max_bytes = kMaxFile, .max_depth = 16, .max_values = 32 * 1024},
                         lines == Lines::yes ? &source.lines : nullptr);
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

Sets load_sets(const std::string& path, Lines lines, Problems& problems) {
  Sets sets;
  const auto directory = open_directory(path, problems);
  if (!directory) return sets;
  for (const std::string& file : directory->names) {
    const std::string name = file.substr(0, file.size() - 5);
    if (const auto source = load_file(directory->fd.get(), file, path + "/" + file, set_fields(), lines, problems))
      sets[name] = build_set(*source, name, problems);
  }
  return sets;
}

std::vector<std::string> domains_of(const std::vector<std::string>& files) {
  std::vector<std::string> out;
  for (const std::string& file : files)
    if (file != "base.json") out.push_back(file.substr(0, file.size() - 5));
  return out;
}

// One file after validation: the remaining stages.
std::shared_ptr<const Policy> finish(const Source& source, const Source* base, const std::string& domain, const Sets& sets,
                                     Problems& problems) {
  const std::size_t before = problems.count();
  check_file(source, base == nullptr, problems);
  if (problems.count() > before) return nullptr;
  // Even base.json must give the reason where it switches a mechanism off.
  check_widening(base != nullptr ? with_defaults(base->doc) : json::Value::object({{"disable", json::Value::array()}}), source,
                 problems);
  auto policy = std::make_shared<Policy>(build(base != nullptr ? merge(base->doc, source.doc) : source.doc));
  policy->domain = domain;
  check_policy(*policy, source, sets, problems);
  if (base != nullptr) policy->digest = sha256_hex(json::dump(to_json(*policy)));
  return problems.count() == before ? policy : nullptr;
}

LoadResult load(const std::string& path, const std::string& only, Lines lines) {
  Problems problems;
  LoadResult result;
  if (const auto directory = open_directory(path, problems)) {
    const Sets sets = load_sets(path + "/seccomp", lines, problems);
    const bool sets_are_good = problems.count() == 0;
    const int fd = directory->fd.get();
    const auto base = load_file(fd, "base.json", path + "/base.json", policy_fields(), lines, problems);
    const bool base_is_good = base && sets_are_good && finish(*base, nullptr, "base", sets, problems) != nullptr;
    for (const std::string& file : directory->names) {
      const std::string domain = file.substr(0, file.size() - 5), label = path + "/" + file;
      if (domain == "base" || (!only.empty() && domain != only)) continue;
      const auto source = load_file(fd, file, label, policy_fields(), lines, problems);
      if (const auto fault = form_fault(Form::domain, domain))
        problems.add({.file = label, .doc = {}, .lines = {}}, "", fault->what);
      else if (source && base_is_good) result.policies[domain] = finish(*source, &*base, domain, sets, problems);
    }
    if (problems.count() == 0 && result.policies.empty())
      problems.add({.file = path, .doc = {}, .lines = {}}, "",
                   only.empty() ? "holds no domain: no *.json but base.json" : "holds no domain " + quote(only, 64),
                   nearest(only, domains_of(directory->names)));
  }
  result.problems = problems.take();
  if (!result.problems.empty()) result.policies.clear();
  return result;
}

}  // namespace

LoadResult load_directory(const std::string& path, const std::string& only) {
  LoadResult result = load(path, only, Lines::no);
  // A directory that changes meanwhile is judged by what the second reading finds.
  return result.problems.empty() ? result : load(path, only, Lines::yes);
}

}  // namespace caisson::policy
