#include "launcher/gate/store.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <system_error>

#include "launcher/common/base/sys.h"

namespace caisson::gate {
namespace {

constexpr const char* kNew = ".new";  // what is not yet in place; left over, the next writer takes it away
constexpr std::size_t kMostBytes = 4U << 20;

bool is_link(int directory, const std::string& name, const std::string& target) {
  char now[PATH_MAX];
  const ssize_t size = ::readlinkat(directory, name.c_str(), now, sizeof now);
  return size >= 0 && target == std::string_view(now, static_cast<std::size_t>(size));
}

bool is_file(int directory, const std::string& name, const std::string& bytes) {
  const auto file = sys::openat(directory, name, O_RDONLY | O_NOFOLLOW);
  const auto now = file ? sys::read_fd(file->get(), kMostBytes) : fail(Code::not_found, name);
  return now && *now == bytes;
}

Status into_place(int directory, const std::string& name) {
  return ::renameat(directory, kNew, directory, name.c_str()) == 0 ? Status() : sys_error("rename to " + quote(name));
}

Status put_link(int directory, const std::string& name, const std::string& target) {
  if (is_link(directory, name, target) || ::symlinkat(target.c_str(), directory, name.c_str()) == 0) return {};
  if (errno != EEXIST || ::symlinkat(target.c_str(), directory, kNew) != 0) return sys_error("link " + quote(name));
  return into_place(directory, name);
}

Status put_file(int directory, const std::string& name, const std::string& bytes) {
  if (is_file(directory, name, bytes)) return {};
  TRY_ASSIGN(const Fd file, sys::openat(directory, kNew, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
  TRY(sys::write_all(file.get(), bytes));
  if (::fchmod(file.get(), 0644) != 0) return sys_error("chmod " + quote(name));  // whatever the umask is
  return into_place(directory, name);
}

std::string folder_of(const std::string& name) { return name.substr(0, std::min(name.find('/'), name.size())); }

Status make_folder(int directory, const std::string& name) {
  (void)::unlinkat(directory, name.c_str(), 0);  // EISDIR, but of a link that an earlier store had
  if (::mkdirat(directory, name.c_str(), 0755) != 0 && errno != EEXIST) return sys_error("mkdir " + quote(name));
  TRY_ASSIGN(const Fd folder, sys::openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  return ::fchmod(folder.get(), 0755) == 0 ? Status() : sys_error("chmod " + quote(name));
}

}  // namespace

void Store::add(const std::string& hash, std::string certificate) {
  for (int number = 0;; ++number) {
    std::string name = hash + '.' + std::to_string(number);
    if (links.contains(name) || files.contains(name)) continue;
    files.emplace(std::move(name), std::move(certificate));
    return;
  }
}

Status Store::put(const std::string& directory) const {
  TRY_ASSIGN(const Fd at, sys::open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  (void)::unlinkat(at.get(), kNew, 0);
  std::set<std::string> wanted;
  for (const auto& [name, target] : links) {
    wanted.insert(name);
    TRY(put_link(at.get(), name, target));
  }
  for (const auto& [name, bytes] : files) {
    const std::string folder = folder_of(name);
    wanted.insert(folder);
    if (folder != name) TRY(make_folder(at.get(), folder));
    TRY(put_file(at.get(), name, bytes));
  }
  std::vector<std::string> gone;
  std::error_code none;
  for (std::filesystem::directory_iterator it(directory, none), end; !none && it != end; it.increment(none))
    if (std::string name = it->path().filename(); !wanted.contains(name)) gone.push_back(std::move(name));
  for (const std::string& name : gone)
    if (::unlinkat(at.get(), name.c_str(), 0) != 0) return sys_error("remove " + quote(name));
  return {};
}

}  // namespace caisson::gate
