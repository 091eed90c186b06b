// Takes secrets out of what a server answers: as they are, in base64, in hexadecimal, percent-encoded, and as JSON and HTML write
// them. Each byte of one becomes '*', so that no length changes. One pass, however many secrets: an automaton of all their forms
// (Aho and Corasick 1975), whose state is all that is carried over from one part of an answer to the next.
//
// It is against servers that repeat what they were sent, in errors and debug pages. One that works together with the session can
// encode a secret in a way that nobody looks for: a secret is bound to hosts that may know it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::egress {

class Forms {
 public:
  explicit Forms(std::span<const std::string> secrets);
  [[nodiscard]] bool empty() const { return nodes_.size() == 1; }

 private:
  friend class Scrubber;
  using State = std::uint32_t;
  struct Node {
    std::uint32_t depth = 0;    // bytes that it stands for: of a form's beginning, the longest that the last bytes are
    std::uint32_t matched = 0;  // bytes of the longest form that ends here
    State suffix = 0;           // the state of the longest proper end of these bytes
  };
  void add(std::string_view form);
  void link();
  [[nodiscard]] State& next(State from, std::size_t letter) { return next_[from * letters_ + letter]; }
  [[nodiscard]] State after(State from, unsigned char byte) const { return next_[from * letters_ + letter_of_[byte]]; }

  std::array<std::uint16_t, 256> letter_of_{};  // 0: in no form
  std::size_t letters_ = 1;
  std::vector<Node> nodes_;
  std::vector<State> next_;  // of each node, by letter
};

class Scrubber {
 public:
  explicit Scrubber(const Forms& forms) : forms_(forms) {}
  // Appends to `out` what is certain of all that has come. What may be the beginning of a secret waits, less than a form's size.
  void take(std::string_view bytes, std::string& out);
  void end(std::string& out);  // and what waits

  [[nodiscard]] std::uint64_t found() const { return found_; }

 private:
  void mask(std::size_t size);

  const Forms& forms_;
  Forms::State state_ = 0;
  std::string held_;
  std::size_t masked_from_ = 0, masked_to_ = 0;  // of held_, what was masked last
  std::uint64_t found_ = 0;
};

}  // namespace caisson::egress
