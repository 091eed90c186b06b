// Quoting for text that a bash reads. Every function returns printable ASCII without history or editing characters, which is safe
// on a terminal's input line, too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace caisson::services {

// $'...', with every character escaped except letters, digits and a few harmless ones.
[[nodiscard]] std::string ansi_quote(std::string_view text);
// The same, cut into words of at most max_bytes each, which the shell concatenates. At least one.
[[nodiscard]] std::vector<std::string> ansi_quote_pieces(std::string_view text, std::size_t max_bytes);
// '...', for scripts that are not typed.
[[nodiscard]] std::string single_quote(std::string_view text);

}  // namespace caisson::services
