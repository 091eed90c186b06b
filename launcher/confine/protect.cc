#include "launcher/confine/protect.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "launcher/base/sys.h"
#include "launcher/confine/raw.h"

namespace caisson::confine {
namespace {

constexpr std::size_t kMaxNotes = 2U << 20;

// Not root, it has after an exec what is ambient and no more: to mount, and to read what the session's user may open to itself.
[[noreturn]] void become_protector(const Protection& protection) {
  constexpr std::uint32_t kCaps = 1U << CAP_SYS_ADMIN | 1U << CAP_DAC_READ_SEARCH;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct caps[2] = {{kCaps, kCaps, kCaps}, {}};
  char name[] = "caisson-protect", what[] = "session";
  char *argv[] = {name, what, nullptr}, *envp[] = {nullptr};
  if (::syscall(SYS_capset, &header, caps) == 0 && ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0) == 0 &&
      ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0) == 0 && ::dup2(protection.notes.get(), 0) == 0 &&
      ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
    raw::execveat(protection.program.get(), "", argv, envp, AT_EMPTY_PATH);
  ::_exit(1);
}

}  // namespace

void protect_names(const ChildArgs& args, StepWriter& steps) {
  if (args.protection == nullptr || !args.protection->notes) return;
  const pid_t pid = faults::skip("protect_names") ? -1 : raw::fork_with(0);
  if (pid == 0) become_protector(*args.protection);
  if (!faults::skip("protect_names") && (pid < 0 || sys::reap(pid) != 0)) steps.failed(Step::protect, EIO);
  steps.done(Step::protect);
}

Result<Protection> Protection::prepare(const Plan& plan) {
  Protection out;
  if (plan.protect.empty()) return out;
  TRY_ASSIGN(out.program, sys::open(sys::program_path("caisson-protect"), O_PATH));
  out.notes = Fd(::memfd_create("protect", MFD_CLOEXEC));
  TRY(sys::write_all(out.notes.get(), plan.protect));
  return out;
}

Status Protection::read(std::size_t runs) {
  if (::lseek(notes.get(), 0, SEEK_SET) != 0) return sys_error("read what caisson-protect wrote");
  TRY_ASSIGN(const std::string text, sys::read_fd(notes.get(), kMaxNotes));
  told.clear();
  for (std::size_t from = 0, end = 0; from < text.size(); from = end + 1) {
    end = std::min(text.find('\0', from), text.size());
    told[text[from]].push_back(text.substr(from + 1, end - from - 1));
  }
  if (told.contains('e')) return fail(Code::unavailable, told['e'].back());
  return told['.'].size() == runs ? Status{} : fail(Code::internal, "caisson-protect did not come to its end (protect_names)");
}

nlohmann::json Protection::named() const {
  if (!told.contains('k')) return {{"count", 0}, {"paths", nlohmann::json::array()}};
  return {{"count", told.at('k').size()}, {"paths", told.contains('t') ? told.at('t') : std::vector<std::string>()}};
}

nlohmann::json Protection::auto_run() {
  if (const Status done = read(2); !done) return {{"unknown", done.error().text()}};
  return {{"count", std::stoull(told['#'].at(0))}, {"paths", told['+']}};
}

}  // namespace caisson::confine
