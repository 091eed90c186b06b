// A gzip file made piece by piece in memory (RFC 1952), so that the caller can serve others between two pieces.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace caisson::http {

class Gzip {
 public:
  // 1 (fast) to 9 (small).
  explicit Gzip(int level = 6);
  ~Gzip();
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  void append(std::string_view bytes);
  [[nodiscard]] std::string finish();  // afterwards a new file begins
  [[nodiscard]] std::size_t size() const { return out_.size(); }

 private:
  struct Stream;
  void turn(std::string_view bytes, int flush);
  std::unique_ptr<Stream> stream_;
  std::string out_;
};

}  // namespace caisson::http
