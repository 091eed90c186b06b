// A gzip file made piece by piece in memory (RFC 1952), so that whoever packs much can do other work between the pieces.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace caisson::routes {

class Gzip {
 public:
  Gzip();
  ~Gzip();
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  void append(std::string_view bytes);
  [[nodiscard]] std::string finish();  // once

 private:
  struct Stream;
  void turn(std::string_view bytes, int flush);
  std::unique_ptr<Stream> stream_;
  std::string out_;
};

}  // namespace caisson::routes
