// Multipart forms: the same parts however the bytes are cut, and what is no form is refused.
#include "agent/http/multipart.h"

#include <gtest/gtest.h>

namespace caisson::http {
namespace {

// "name=data;" of each part, or the error.
std::string parts(std::string_view body, std::size_t step) {
  Multipart form("b");
  std::string out;
  for (std::size_t at = 0; at <= body.size(); at += step) {
    form.feed(body.substr(at, step));
    for (auto event = form.next(); !event || *event; event = form.next()) {
      if (!event) return event.error().what;
      if ((*event)->kind == Multipart::Kind::done) return out + "done";
      if ((*event)->kind == Multipart::Kind::begin) out += (*event)->name + (*event)->filename.value_or("") + "=";
      if ((*event)->kind == Multipart::Kind::data) out += (*event)->data;
      if ((*event)->kind == Multipart::Kind::end) out += ";";
    }
  }
  return out + "more";
}

constexpr std::string_view kForm =
    "preamble\r\n--b\r\nContent-Disposition: form-data; name=\"path\"\r\n\r\n/tmp/x\r\n"
    "--b\r\ncontent-type: text/plain\r\nCONTENT-DISPOSITION: form-data; name=file; filename=\"a \\\"q\\\".txt\"\r\n\r\n"
    "line\r\n--\r\n--not the boundary\r\n-\r\n--b\r\nContent-Disposition: form-data; name=\"empty\"\r\n\r\n\r\n--b--\r\n";

TEST(Multipart, GivesTheSamePartsHoweverItIsCut) {
  for (const std::size_t step : {std::size_t{1}, std::size_t{2}, std::size_t{13}, kForm.size()})
    EXPECT_EQ(parts(kForm, step), "path=/tmp/x;filea \"q\".txt=line\r\n--\r\n--not the boundary\r\n-;empty=;done") << step;
}

TEST(Multipart, ACutFormWantsMore) {
  EXPECT_EQ(parts("--b\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\nhalf", 5), "f=more");
}

TEST(Multipart, WhatIsNoFormIsRefused) {
  EXPECT_NE(parts("--b\r\nX: y\r\n\r\nx\r\n--b--", 99).find("without a name"), std::string::npos);
  EXPECT_NE(parts("--bx\r\n\r\n", 99).find("after a boundary"), std::string::npos);
  EXPECT_NE(parts("--b\r\n" + std::string(20'000, 'x'), 5000).find("too long"), std::string::npos);
  EXPECT_NE(parts(std::string(100'000, 'x'), 5000).find("no boundary"), std::string::npos);
}

TEST(Multipart, BoundaryComesFromTheContentType) {
  EXPECT_EQ(multipart_boundary("multipart/form-data; boundary=abc"), "abc");
  EXPECT_EQ(multipart_boundary("Multipart/Form-Data; charset=x; boundary=\"a b\""), "a b");
  EXPECT_FALSE(multipart_boundary("multipart/mixed; boundary=abc"));
  EXPECT_FALSE(multipart_boundary("multipart/form-data"));
  EXPECT_FALSE(multipart_boundary("multipart/form-data; boundary=" + std::string(80, 'x')));
}

}  // namespace
}  // namespace caisson::http
