#include "launcher/seal/profile.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>

#include <services.h>
#include "launcher/common/base/json.h"
#include "launcher/compiler/load.h"
#include "launcher/compiler/text_formats.h"

namespace caisson::seal {
namespace {

constexpr std::string_view kMembers[] = {"calls", "data_bytes", "execute", "read", "write"};

std::unexpected<Error> wrong(std::string_view service, const std::string& what) {
  return fail(Code::invalid_argument, "profile of the service " + quote(service) + ": " + what);
}

Result<std::vector<std::string>> paths_in(std::string_view service, const json::Value& list, const std::string& name) {
  if (!list.is_array()) return wrong(service, quote(name) + " must be a list of paths");
  std::vector<std::string> out;
  for (const json::Value& item : list) {
    if (!item.is_string() || policy::path_fault(item.get_ref<const std::string&>()))
      return wrong(service, quote(name) + " has what is no absolute path without dots");
    out.push_back(item.get<std::string>());
  }
  return out;
}

// Threads of its own process: where there is one user id for all (T1), the launcher could be ended by any other.
policy::SyscallRule tgkill_itself() {
  return {"tgkill", {{policy::ArgRule{0, "masked_eq", static_cast<std::uint64_t>(::getpid()), 0xffffffff}}}, {}, ""};
}

}  // namespace

Result<Profile> parse_profile(std::string_view service, std::string_view text) {
  auto doc = json::parse(text, {.max_bytes = 256 * 1024, .max_depth = 16, .max_values = 32 * 1024});
  if (!doc) return wrong(service, doc.error().text());
  if (!doc->is_object()) return wrong(service, "must be an object");
  for (const auto& [name, value] : doc->items())
    if (std::ranges::find(kMembers, name) == std::end(kMembers)) return wrong(service, "unknown member " + quote(name));
  for (const std::string_view name : kMembers)
    if (!doc->contains(name)) return wrong(service, "no member " + quote(name));
  Profile out;
  TRY_ASSIGN(out.calls, policy::parse_set(std::string(service), (*doc)["calls"]));
  if (std::ranges::any_of(out.calls.allow, [](const policy::SyscallRule& rule) { return rule.name == "tgkill"; }))
    return wrong(service, "'calls' may not have a rule for tgkill: it gets its own");
  out.calls.allow.push_back(tgkill_itself());
  TRY_ASSIGN(out.execute, paths_in(service, (*doc)["execute"], "execute"));
  TRY_ASSIGN(out.read, paths_in(service, (*doc)["read"], "read"));
  TRY_ASSIGN(out.write, paths_in(service, (*doc)["write"], "write"));
  const json::Value& data = (*doc)["data_bytes"];
  constexpr std::uint64_t kLeast = 1 << 20, kMost = 1ULL << 40;
  if (!data.is_number_unsigned() || data.get<std::uint64_t>() < kLeast || data.get<std::uint64_t>() > kMost)
    return wrong(service, "'data_bytes' must be a number from 2^20 to 2^40");
  out.data_bytes = data.get<std::uint64_t>();
  return out;
}

Result<Profile> profile_of(std::string_view service) {
  for (const ServiceFile& file : kServiceFiles)
    if (file.name == service) return parse_profile(service, file.text);
  return fail(Code::not_found, "no service has the name " + quote(service));
}

}  // namespace caisson::seal
