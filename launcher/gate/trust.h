// What sessions believe: the stores that they have in the place of the system's authorities (common/egress/trust.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/common/base/result.h"

namespace caisson::gate {

// Of the opener, as it says itself (Said::authority): the hash of its name, and its certificate in PEM.
struct Authority {
  std::string hash, certificate;
};
// nullopt: the text is malformed. A taken-over opener may say what it likes: its certificate goes into stores as it is, and is
// not parsed here.
[[nodiscard]] std::optional<Authority> read_authority(std::string_view text);

class Trust {
 public:
  void believe(Authority authority) { authority_ = std::move(authority); }
  [[nodiscard]] bool believes() const { return authority_.has_value(); }
  // Fills the store, a directory that is there, with the system's authorities and the operator's; `opened`: and with the
  // opener's, as soon as that is known. Nothing is done where nothing has changed since. What is wrong with a file is
  // told once; a store that cannot be written is tried again each time, and that told once.
  [[nodiscard]] Status write(const std::string& store, bool opened);

 private:
  struct Written {
    std::string of, error;
  };
  // wrong: of the last file that could not be used.
  [[nodiscard]] Status fill(const std::string& store, const Authority* opener, Status& wrong) const;

  std::optional<Authority> authority_;
  std::map<std::string, Written> written_;
};

// Lets other users pass the launcher's own directory to the store: where nothing is mounted, sessions read it there. What else is
// there they can open by its mode alone, which is the launcher's.
[[nodiscard]] Status show_trust(const std::string& store);

}  // namespace caisson::gate
