// Owners of OpenSSL's objects, each of which has a function of its own that frees it.
#pragma once

#include <memory>

namespace caisson::http {

template <auto free>
struct OpensslFree {
  template <class T>
  void operator()(T* object) const {
    free(object);
  }
};

template <class T, auto free>
using OpensslPtr = std::unique_ptr<T, OpensslFree<free>>;

}  // namespace caisson::http
