// What `caisson policy learn` takes from audit logs.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "launcher/cli/commands.h"
#include "launcher/cli/learn/names.h"

namespace caisson::cli::learn {

[[nodiscard]] Result<std::shared_ptr<const policy::Policy>> find_policy(const std::string& directory, const std::string& domain);
// log: a session, or a file. Lines that are no records are passed over: `caisson audit verify` is there for them.
[[nodiscard]] Status read_names(const Options& options, const std::string& log, Names& names);
// `caisson policy learn --records LOG`: a policy file with the names, and on standard error what it differs in. Without `domain`
// that of the log's session.
[[nodiscard]] Result<int> learn_from_records(const Options& options, const std::string& log, std::optional<std::string> domain,
                                             const std::optional<std::string>& output);

}  // namespace caisson::cli::learn
