// Places: how many requests, WebSockets and streams each credential and each workspace has under way. Nothing can end those to
// make room for others, so neither may take every connection.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "agent/http/limits.h"
#include "agent/http/response.h"

namespace caisson::http {

class Exchange;

class Places {
 public:
  enum class Full { owner, workspace, previews };
  using Counts = std::map<std::string, std::size_t>;

  // Counts one in a map whose entries without any are removed.
  class One {
   public:
    One() = default;
    One(Counts& counts, const std::string& name) : counts_(&counts), at_(counts.try_emplace(name).first) { ++at_->second; }
    One(One&& from) noexcept : counts_(std::exchange(from.counts_, nullptr)), at_(from.at_) {}
    One& operator=(One&&) = delete;
    ~One() {
      if (counts_ != nullptr && --at_->second == 0) counts_->erase(at_);
    }

   private:
    Counts* counts_ = nullptr;
    Counts::iterator at_{};
  };
  struct Held {
    One owner, workspace, relayed;
    std::optional<Full> full;  // it has no place
  };

  // Until the request is over. One without an owner is not counted, nor one that waits for nothing.
  [[nodiscard]] Held take(const Exchange& exchange, const Limits& limits);

 private:
  Counts owners_, workspaces_, relayed_;
};

[[nodiscard]] Response no_place(Places::Full full);

}  // namespace caisson::http
