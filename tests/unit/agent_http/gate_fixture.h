// A gate with one key, and requests to it.
#pragma once

#include <gtest/gtest.h>

#include "agent/auth/gate.h"
#include "agent/http/target.h"

namespace caisson::auth {

inline constexpr std::string_view kAreas[] = {"bash", "file"};

inline http::Request asking(std::string_view address, http::Pairs headers = {}, http::Method method = http::Method::get) {
  http::Request request;
  request.method = method;
  http::Target target = *http::decode_target(address);
  request.path = target.path;
  request.segments = target.segments;
  request.query = target.query;
  request.headers = std::move(headers);
  return request;
}

struct OneKeyGate : testing::Test {
  Gate gate{{.api_key = "secret"}, {std::begin(kAreas), std::end(kAreas)}};
  Gate::Now now{std::chrono::steady_clock::now(), 1'000'000};
  Principal owner = *gate.by_secret("192.0.2.1", "secret", now);

  static PathPrefix prefix(std::string_view text) { return *PathPrefix::parse(text); }
};

}  // namespace caisson::auth
