// Every member of Policy, one row each: how it lies in bytes (frozen.h) and in canonical JSON (in_force.h), how it is read,
// merged and laid under a preset (merge.cc, preset.cc), and how a request narrows it (narrow.cc) follow from its row. What only a
// reader of policy files or of explain needs stands in tables that do not compile without an entry for each row: fields.cc,
// summary.cc and common/tables/posture.h. Pure, for the launcher, too.
#pragma once

#include <concepts>
#include <type_traits>
#include <variant>

#include "launcher/common/base/word.h"
#include "launcher/common/policy/policy.h"

namespace caisson::policy {

// What makes one value of a field wider than another, so that a file that has it needs a `weaken` entry.
// made: in no file; joins: lists are added up; rules: egress, where more that is allowed is wider, and what is denied is added
// up.
enum class Widens { made, never, larger, smaller, added, removed, grants, joins, rules };

using Map = std::map<std::string, std::string>;
using Member =
    std::variant<std::string Policy::*, Words Policy::*, Map Policy::*, bool Policy::*, unsigned Policy::*, Tier Policy::*,
                 std::set<Mechanism> Policy::*, std::vector<Grant> Policy::*, Scope Policy::*, Network Policy::*,
                 std::vector<SyscallSet> Policy::*, std::uint64_t Limits::*, bool Audit::*, std::uint64_t Audit::*,
                 OnFull Audit::*, std::set<std::uint16_t> Policy::*, Map Environment::*, Words Environment::*, Words Syscalls::*>;
// Where a Narrowing has what a request asks for: the strictest value, more names, smaller limits, or grants.
using Asked = std::variant<std::monostate, bool Narrowing::*, Words Narrowing::*, Limited Narrowing::*,
                           std::optional<std::vector<Grant>> Narrowing::*>;

struct Row {
  std::string_view pointer;  // in files and in canonical JSON; empty: in neither
  Member member;
  Widens widens = Widens::never;
  Asked asked = {};
  std::uint64_t least = 0, most = 0;  // of a number; of a list, how many it may have
  std::string_view words = {};        // of a list's items; of a truth value, what false and true are called
  [[nodiscard]] constexpr std::string_view name() const { return pointer.substr(pointer.rfind('/') + 1); }
};

constexpr Row limit_row(std::string_view pointer, std::uint64_t Limits::* member, std::uint64_t least, std::uint64_t most) {
  return {pointer, member, Widens::larger, &Narrowing::limits, least, most};
}

inline constexpr Row kRows[] = {
    {"/domain", &Policy::domain, Widens::made},
    {"/preset", &Policy::preset, Widens::made},
    {"", &Policy::layers, Widens::made},
    {"", &Policy::digest, Widens::made},
    {"/sets", &Policy::sets, Widens::made},
    {"/description", &Policy::description},
    {"/why", &Policy::why},
    {"/weaken", &Policy::weaken},
    {"/min_tier", &Policy::min_tier, Widens::smaller},
    {"/require", &Policy::require, Widens::removed},
    {"/disable", &Policy::disable, Widens::added},
    {"/grants", &Policy::grants, Widens::grants, &Narrowing::grants, 0, kMaxGrants},
    {"/hide", &Policy::hide, Widens::removed},
    {"/protect", &Policy::protect, Widens::joins, &Narrowing::protect, 0, kMaxProtect},
    {"/protect_home", &Policy::protect_home, Widens::smaller, &Narrowing::protect_home},
    {"/files", &Policy::files},
    {"/links", &Policy::links},
    {"/devices", &Policy::devices, Widens::added, {}, 0, 0, "null zero full random urandom tty"},
    {"/home", &Policy::home, Widens::larger, &Narrowing::home_private},
    {"/home_path", &Policy::home_path},
    {"/tmp", &Policy::tmp, Widens::larger, &Narrowing::tmp_private},
    {"/exec_writable", &Policy::exec_writable, Widens::larger},
    {"/system_packages", &Policy::system_packages, Widens::larger, &Narrowing::system_none},
    {"/hostname", &Policy::hostname},
    {"/proc_shared_fallback", &Policy::proc_shared_fallback, Widens::larger},
    {"/network", &Policy::network, Widens::larger, &Narrowing::network_none},
    {"/egress", &Policy::egress, Widens::rules, {}, 0, 1024},
    {"/published_ports", &Policy::published_ports, Widens::added, {}, 0, 16},
    {"/api",
     &Policy::api,
     Widens::added,
     {},
     0,
     0,
     "sandbox bash shell file file-watch jupyter nodejs code browser mcp util skills"},
    limit_row("/limits/processes", &Limits::processes, 1, 65536),
    limit_row("/limits/memory_bytes", &Limits::memory_bytes, 16ULL << 20, 1ULL << 44),
    limit_row("/limits/cpu_percent", &Limits::cpu_percent, 1, 102400),
    limit_row("/limits/open_files", &Limits::open_files, 16, 1048576),
    limit_row("/limits/file_size_bytes", &Limits::file_size_bytes, 4096, 1ULL << 44),
    limit_row("/limits/cpu_seconds", &Limits::cpu_seconds, 1, 31536000),
    limit_row("/limits/tmp_bytes", &Limits::tmp_bytes, 65536, 1ULL << 40),
    limit_row("/limits/tmp_inodes", &Limits::tmp_inodes, 64, 1ULL << 24),
    limit_row("/limits/packages_bytes", &Limits::packages_bytes, 1ULL << 27, 1ULL << 40),
    limit_row("/limits/session_seconds", &Limits::session_seconds, 1, 31536000),
    limit_row("/limits/execs", &Limits::execs, 1, 1024),
    limit_row("/limits/io_read_bytes_per_second", &Limits::io_read_bytes_per_second, 65536, kNoIoLimit),
    limit_row("/limits/io_write_bytes_per_second", &Limits::io_write_bytes_per_second, 65536, kNoIoLimit),
    {"/env/set", &Environment::set},
    {"/env/client_deny", &Environment::client_deny, Widens::removed},
    {"/syscalls/allow", &Syscalls::allow, Widens::added},
    {"/syscalls/deny", &Syscalls::deny, Widens::removed},
    {"/audit/denials", &Audit::denials, Widens::smaller},
    {"/audit/paths", &Audit::paths, Widens::smaller, {}, 0, 0, "off observe"},
    {"/audit/max_bytes", &Audit::max_bytes, Widens::smaller, {}, 1 << 20, 1ULL << 40},
    {"/audit/keep_days", &Audit::keep_days, Widens::smaller, {}, 1, 36500},
    {"/audit/on_full", &Audit::on_full, Widens::larger},
    {"/umask", &Policy::umask, Widens::removed},
};

constexpr auto& value_of(auto& policy, auto Policy::* member) { return policy.*member; }
constexpr auto& value_of(auto& policy, auto Limits::* member) { return policy.limits.*member; }
constexpr auto& value_of(auto& policy, auto Audit::* member) { return policy.audit.*member; }
constexpr auto& value_of(auto& policy, auto Environment::* member) { return policy.env.*member; }
constexpr auto& value_of(auto& policy, auto Syscalls::* member) { return policy.syscalls.*member; }
// use(row, value) for every row.
void each_row(auto& policy, const auto& use) {
  for (const Row& row : kRows) std::visit([&](auto member) { use(row, value_of(policy, member)); }, row.member);
}

}  // namespace caisson::policy
