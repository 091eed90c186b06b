#include "agent/proxy/destination.h"

#include <gtest/gtest.h>

#include "agent/http/target.h"
#include "agent/proxy/request_head.h"

namespace caisson::proxy {
namespace {

http::Request request(const std::string& target, http::Pairs headers = {}) {
  auto decoded = http::decode_target(target);
  http::Request out;
  out.verb = "GET";
  out.target = target;
  out.path = decoded->path;
  out.segments = decoded->segments;
  out.query = decoded->query;
  out.headers = std::move(headers);
  return out;
}

// "port path", "none", or "error".
std::string found(const http::Request& head, const PreviewHosts& hosts) {
  const auto to = destination_of(head, hosts);
  if (!to) return "error";
  return *to ? std::to_string((*to)->port) + " " + (*to)->path : "none";
}

TEST(Destination, ThePathNamesAPortInOneSpelling) {
  const PreviewHosts none("none", false);
  EXPECT_EQ(found(request("/proxy/8091/a%2fb?c"), none), "8091 /a%2fb");
  EXPECT_EQ(found(request("/absproxy/8091/a"), none), "8091 /absproxy/8091/a");
  EXPECT_EQ(found(request("/proxy/08091/"), none), "error");
  EXPECT_EQ(found(request("/proxy/%38091/"), none), "error");
  EXPECT_EQ(found(request("/%70roxy/8091/"), none), "none");
}

TEST(Destination, WithoutListEveryNameWithAPortInFrontIsOne) {
  const PreviewHosts any("", false);
  EXPECT_EQ(found(request("/x", {{"host", "8091-a.example:80"}}), any), "8091 /x");
  EXPECT_EQ(found(request("/x", {{"host", "8091-1-2-3.example"}}), any), "8091 /x");
  EXPECT_EQ(found(request("/x", {{"host", "8091-i3b0c44298fc1c149af-1a2b3c4d.example"}}), any), "8091 /x") << "E2B's ids";
  for (const char* other : {"a-8091", "70000-a", "0-a", "08091-a", "99999999999-a", "8091-", "8091"})
    EXPECT_EQ(found(request("/x", {{"host", other}}), any), "none") << other;
}

TEST(Destination, AnAddressWithHyphensIsNoPort) {
  const PreviewHosts any("", false), listed("ns.pod.cluster.local", false);
  for (const char* name : {"10-1-2-3.ns.pod.cluster.local", "10-1-2-3.service.ns.svc.cluster.local:8080", "10-1-2-3.nip.io",
                           "10-1-2-3", "2001-db8--1.ns.pod.cluster.local", "2001-db8-0-0-0-0-0-1.ns.pod.cluster.local."})
    EXPECT_EQ(found(request("/x", {{"host", name}}), any), "none") << name;
  EXPECT_EQ(found(request("/x", {{"host", "10-1-2-3.ns.pod.cluster.local"}}), listed), "10 /x") << "the operator says so";
}

TEST(Destination, BelowAListedDomainDigitsThatAreNoPortAreAnError) {
  EXPECT_EQ(found(request("/x", {{"host", "70000-example.com"}}), PreviewHosts("example.com", false)), "error");
}

TEST(Destination, WithoutListAndKeyNoNameIsAPort) {
  EXPECT_EQ(found(request("/x", {{"host", "8091-a"}}), PreviewHosts("", true)), "none");
}

TEST(Destination, AListedDomainCoversItselfAndNamesBelow) {
  const PreviewHosts listed("Example.com, box", false);
  EXPECT_EQ(found(request("/x", {{"host", "8091-example.com"}}), listed), "8091 /x");
  EXPECT_EQ(found(request("/x", {{"host", "8091-id.EXAMPLE.com."}}), listed), "8091 /x");
  EXPECT_EQ(found(request("/x", {{"host", "8091-box"}}), listed), "8091 /x");
  EXPECT_EQ(found(request("/x", {{"host", "8091-badexample.com"}}), listed), "none");
  EXPECT_EQ(found(request("/x", {{"host", "8091-example.com.evil"}}), listed), "none");
}

TEST(RequestHead, CredentialsInTheQueryAreRecognizedDecoded) {
  EXPECT_EQ(query_for_app(request("/?a=1&&api%5Fkey=K&ticket=T&b=%2f&%74icket")), "?a=1&b=%2f");
  EXPECT_EQ(query_for_app(request("/?api_key=K")), "");
}

}  // namespace
}  // namespace caisson::proxy
