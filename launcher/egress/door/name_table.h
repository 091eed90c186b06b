// The addresses that a workspace's names have inside it: one of 198.18.0.0/15 (RFC 2544: no real network has these) for each name
// that was asked for. A connection to such an address is one to the name. An address belongs to its name until the name was not
// used for an hour, so that no client's old answer ever leads to another name.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "launcher/egress/list/host.h"

namespace caisson::egress {

[[nodiscard]] bool is_synthetic(const Address& address);

class NameTable {
 public:
  static constexpr std::size_t kMostNames = 65'536,
                               kMostBytes = 4 << 20;  // of all names' text: what a hostile workspace can make us hold
  static constexpr std::int64_t kKeepUs = 3'600'000'000;

  // The name's address, a new one if it has none. nullopt: the table is full of names that were used within the hour.
  [[nodiscard]] std::optional<Address> address_of(const Name& name, std::int64_t now_us);
  // The name of an address that was given out; using it keeps it.
  [[nodiscard]] std::optional<Name> name_of(const Address& address, std::int64_t now_us);
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string name;
    std::uint32_t index;
    std::int64_t used_us;
  };
  using Entries = std::list<Entry>;  // the one that was not used for longest first
  void use(Entries::iterator entry, std::int64_t now_us);
  [[nodiscard]] bool make_room(std::size_t bytes, std::int64_t now_us);

  Entries entries_;
  std::unordered_map<std::string_view, Entries::iterator> by_name_;  // the keys are the entries' text
  std::vector<Entries::iterator> by_index_;                          // entries_.end(): free
  std::vector<std::uint32_t> free_;
  std::size_t bytes_ = 0;
};

}  // namespace caisson::egress
