// Counted: adds one to a counter as long as it lives, however the coroutine that holds it ends.
#pragma once

namespace caisson::services {

template <class N>
class Counted {
 public:
  explicit Counted(N& counter) : counter_(counter) { ++counter_; }
  ~Counted() { --counter_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  N& counter_;
};

}  // namespace caisson::services
