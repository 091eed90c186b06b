// Budget bounds the bytes that the agent holds for clients and workspaces: unfinished bodies, unread answers, kept output,
// waiting input. A Share holds bytes at the expense of its payers, a client's address and a workspace; each payer may hold a part
// of the whole. When the budget is full, the largest payer gives bytes back (the older half of its output, or a connection that
// stands still). Only when it cannot is the request for room refused. A payer therefore never loses bytes to one that holds more.
// Single-threaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace caisson::http {

enum class Room { granted, part_full, full };  // part_full: the asker itself holds as much as it may

class Budget : public std::enable_shared_from_this<Budget> {
 public:
  class Payer {
   public:
    Payer(std::shared_ptr<Budget> budget, std::size_t part);
    ~Payer();
    Payer(const Payer&) = delete;
    Payer& operator=(const Payer&) = delete;
    [[nodiscard]] std::size_t used() const { return used_; }
    // Called when `asker` needs room: shrinks shares of this payer, or returns false. Its owner resets it before the owner ends.
    std::function<bool(const Payer& asker)> give_back;
    std::uint64_t last_turn = 0;  // of the Lane

   private:
    friend class Budget;
    const std::shared_ptr<Budget> budget_;
    const std::size_t part_;
    std::size_t used_ = 0;
  };
  using PayerPtr = std::shared_ptr<Payer>;

  // The bytes held in one place. Without payers (the default) nothing is counted and every request is granted.
  class Share {
   public:
    Share() = default;
    explicit Share(std::vector<PayerPtr> payers) : payers_(std::move(payers)) {}
    Share(Share&& other) noexcept : payers_(std::move(other.payers_)), bytes_(std::exchange(other.bytes_, 0)) {}
    Share& operator=(Share&& other) noexcept;
    ~Share() { release(); }

    // Asks to hold this many bytes from now on. A refusal changes nothing. Shrinking is always granted.
    [[nodiscard]] Room resize(std::size_t bytes);
    void release();
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

   private:
    friend class Budget;
    std::vector<PayerPtr> payers_;  // the first payer's rank decides which payer gives back
    std::size_t bytes_ = 0;
  };

  // least: each payer is granted this much whatever the others hold, so that they cannot starve it.
  explicit Budget(std::size_t total, std::size_t least = 0) : total_(total), least_(least) {}
  [[nodiscard]] PayerPtr open(std::size_t part) { return std::make_shared<Payer>(shared_from_this(), part); }
  [[nodiscard]] std::size_t used() const { return used_; }
  [[nodiscard]] std::size_t total() const { return total_; }

 private:
  [[nodiscard]] static bool gave(Payer& payer, const Payer& asker);
  [[nodiscard]] Room grow(Share& share, std::size_t bytes);
  [[nodiscard]] bool make_room(const Payer& asker);

  const std::size_t total_, least_;
  std::size_t used_ = 0;
  std::vector<Payer*> payers_;
};

}  // namespace caisson::http
