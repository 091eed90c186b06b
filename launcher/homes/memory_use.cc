#include "launcher/homes/memory_use.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "launcher/common/base/filesystem_ids.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/tables/directory.h"
#include "launcher/homes/processes.h"

namespace caisson::homes {
namespace {

constexpr std::int64_t kMostUs = 1'000'000;  // of all groups: each has its part, and what those before it left
constexpr std::size_t kMostFiles = 100'000;  // of one group, by inode
constexpr std::size_t kMostTold = 24;        // the answer is bounded
constexpr std::uint64_t kWorthAsking = 32U << 20;

struct Group {
  std::string label;
  std::uint64_t limit = 0;
  std::vector<pid_t> roots;
};

struct Weight {
  std::uint64_t bytes = 0;
  bool whole = true;  // everything was seen
};

struct File {
  std::uint64_t bytes = 0;
  pid_t pid = 0;
  int fd = -1;
};
using Files = std::map<ino_t, File>;

std::string process(pid_t pid) { return "/proc/" + std::to_string(pid); }

// "Name:   123 kB", in bytes; 0 when it is not there.
std::uint64_t kib_field(const std::string& text, const char* name) {
  const auto at = text.find(name);
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + std::strlen(name), nullptr, 10) * 1024;
}

// Anonymous and shared memory of one process that is resident, whoever else has it; 0: it is gone.
std::uint64_t resident(pid_t pid) {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto statm = sys::read_file(process(pid) + "/statm", 256);
  unsigned long all = 0, shared = 0;
  if (!statm || std::sscanf(statm->c_str(), "%*u %lu %lu", &all, &shared) != 2) return 0;
  // "shared" holds mapped files, too, which are not the session's; asked for only where it could matter.
  const auto status = shared * page > kWorthAsking ? sys::read_file(process(pid) + "/status", 16384) : Result<std::string>("");
  return (all - std::min(all, shared)) * page + (status ? kib_field(*status, "RssShmem:") : 0);
}

// Without CAP_SYS_PTRACE and CAP_DAC_OVERRIDE only the process's own user may look, and the kernel asks for the filesystem ids,
// by which nobody can signal or trace us meanwhile.
template <class Look>
bool as_owner(pid_t pid, const Look& look) {
  struct stat owner{};
  if (::stat(process(pid).c_str(), &owner) != 0) return true;  // it is gone
  const FilesystemIds ids(owner.st_uid, owner.st_gid);
  return look();
}

// Its part of what it shares, and what it has alone.
bool add_mapped(pid_t pid, std::uint64_t& own, std::uint64_t& shared) {
  const auto read = [&] {
    const auto text = sys::read_file(process(pid) + "/smaps_rollup", 4096);
    if (!text || text->empty()) return ::access(process(pid).c_str(), F_OK) != 0 || sys::exiting(pid);
    own += kib_field(*text, "Pss_Anon:"), shared += kib_field(*text, "Pss_Shmem:");
    return true;
  };
  return read() || as_owner(pid, read);
}

// Of which filesystem the kernel makes files in memory.
dev_t memory() {
  const Fd one(::memfd_create("one", MFD_CLOEXEC));
  struct stat st{};
  return one && ::fstat(one.get(), &st) == 0 ? st.st_dev : 0;
}

// The files in memory that a process has open.
bool add_files(pid_t pid, std::int64_t until, Files& files) {
  static const dev_t device = memory();
  return as_owner(pid, [&] {
    auto fds = sys::open(process(pid) + "/fd", O_RDONLY | O_DIRECTORY);
    if (!fds) return fds.error().sys == ENOENT;
    const auto dir = sys::read_directory(std::move(*fds));
    if (!dir) return false;
    while (const char* name = sys::next_name(dir->get())) {
      if (sys::monotonic_us() > until || files.size() >= kMostFiles) return false;
      // Nothing else is asked for, for it may be on a disk that does not answer.
      std::array<char, 7> to{};
      struct stat st{};
      const int at = ::dirfd(dir->get());
      if (::readlinkat(at, name, to.data(), to.size()) == to.size() && std::memcmp(to.data(), "/memfd:", to.size()) == 0 &&
          ::fstatat(at, name, &st, 0) == 0 && st.st_dev == device)
        files[st.st_ino] = {static_cast<std::uint64_t>(st.st_blocks) * 512, pid, std::atoi(name)};
    }
    return true;
  });
}

// Of these, what is still there and where it was: it has been there ever since.
std::uint64_t kept(const Files& files) {
  std::map<pid_t, std::vector<const Files::value_type*>> of;
  for (const auto& one : files) of[one.second.pid].push_back(&one);
  std::uint64_t sum = 0;
  for (const auto& [pid, all] : of)
    (void)as_owner(pid, [&] {
      for (const auto* one : all) {
        struct stat st{};
        if (::stat((process(pid) + "/fd/" + std::to_string(one->second.fd)).c_str(), &st) == 0 && st.st_ino == one->first)
          sum += std::min(one->second.bytes, static_cast<std::uint64_t>(st.st_blocks) * 512);
      }
      return true;
    });
  return sum;
}

// Files first, then what is mapped, then the files once more: so all of it was there at once, when the second began.
Weight weigh_one(const Table& table, const std::vector<pid_t>& roots, std::int64_t until) {
  Weight weight;
  std::vector<pid_t> all = members(table, roots);
  // A first process is ours, lets nobody look, and has no files of theirs.
  std::erase_if(all, [&](pid_t pid) { return std::ranges::find(roots, pid) != roots.end(); });
  // Who opens many descriptors hides the rest of them from one look, not from all.
  if (!all.empty()) std::ranges::rotate(all, all.begin() + sys::monotonic_us() % static_cast<std::int64_t>(all.size()));
  const std::int64_t now = sys::monotonic_us(), half = now + (until - now) / 2;
  Files files;
  for (const pid_t pid : all) weight.whole = sys::monotonic_us() < half && add_files(pid, half, files) && weight.whole;
  // The largest first: they decide.
  std::vector<std::pair<std::uint64_t, pid_t>> order;
  for (const pid_t pid : all) order.emplace_back(resident(pid), pid);
  std::ranges::sort(order, std::ranges::greater{});
  std::uint64_t own = 0, shared = 0;
  for (const auto& [before, pid] : order) {
    // Reading waits for the process's memory map, which a fork holds, and that waits for a processor among all the others.
    std::uint64_t its = 0, part = 0;
    if (sys::monotonic_us() > until || !add_mapped(pid, its, part)) weight.whole = false;
    // A process that has ended since is left out: the processes read after it have been counted with what it shared.
    else if (resident(pid) != 0) own += its, shared += part;
  }
  // A mapped file is part of what is shared too: only the larger of the two figures counts, so that nothing counts twice.
  weight.bytes = own + std::max(shared, kept(files));
  // Nobody has more of its own than it has.
  if (!order.empty()) weight.bytes = std::max(weight.bytes, std::min(order[0].first, resident(order[0].second)));
  return weight;
}

Result<Group> group_of(const std::string& word) {
  Group group;
  const auto first = word.find('/'), second = word.find('/', first + 1);
  const char* end = word.data() + word.size();
  if (first == 0 || second == std::string::npos) return fail(Code::invalid_argument, "not LABEL/LIMIT/PID...: " + quote(word));
  group.label = word.substr(0, first);
  auto read = std::from_chars(word.data() + first + 1, end, group.limit);
  for (bool more = read.ec == std::errc() && read.ptr == word.data() + second; more; more = read.ptr != end && *read.ptr == ',') {
    pid_t pid = 0;
    read = std::from_chars(read.ptr + 1, end, pid);
    if (read.ec != std::errc() || pid <= 0) break;
    group.roots.push_back(pid);
  }
  if (group.roots.empty() || read.ec != std::errc() || read.ptr != end)
    return fail(Code::invalid_argument, "not LABEL/LIMIT/PID...: " + quote(word));
  return group;
}

}  // namespace

Result<json::Value> weigh(const std::vector<std::string>& words) {
  std::vector<Group> groups;
  for (const std::string& word : words) {
    TRY_ASSIGN(Group group, group_of(word));
    groups.push_back(std::move(group));
  }
  TRY_ASSIGN(const Table table, read_table());
  json::Value over = json::Value::array(), unread = json::Value::array();
  const std::int64_t begin = sys::monotonic_us();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Group& group = groups[i];
    const auto part = [&](std::size_t n) {
      return begin + kMostUs * static_cast<std::int64_t>(n) / static_cast<std::int64_t>(groups.size());
    };
    const Weight weight = weigh_one(table, group.roots, part(i + 1));
    if (!weight.whole && unread.size() < kMostTold) unread.push_back(group.label);
    if (weight.bytes <= group.limit || over.size() >= kMostTold) continue;
    const std::int64_t each = kMostUs / static_cast<std::int64_t>(group.roots.size());
    std::pair<std::uint64_t, pid_t> largest{0, group.roots[0]};
    for (const pid_t root : group.roots)
      if (group.roots.size() > 1) largest = std::max(largest, {weigh_one(table, {root}, sys::monotonic_us() + each).bytes, root});
    over.push_back({{"label", group.label}, {"bytes", weight.bytes}, {"largest", largest.second}});
  }
  return json::Value{{"over", std::move(over)}, {"unread", std::move(unread)}};
}

}  // namespace caisson::homes
