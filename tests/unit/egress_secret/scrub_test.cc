// Answers without secrets, however they come in parts.
#include "launcher/egress/secret/scrub.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "launcher/egress/parse/base64.h"

namespace caisson::egress {
namespace {

const std::vector<std::string> kSecrets = {"s3cr3t/of+the*day", "another-one-1234", "aaaaaaaaaaaa"};

std::string scrubbed(const Forms& forms, std::string_view text, std::size_t part = std::string::npos) {
  std::string out;
  Scrubber scrubber(forms);
  for (std::size_t at = 0; at < text.size(); at += std::min(part, text.size() - at)) scrubber.take(text.substr(at, part), out);
  scrubber.end(out);
  return out;
}

std::string stars(std::size_t count) { return std::string(count, '*'); }

TEST(Scrub, ASecretIsTakenOutInPartsOfAnySize) {
  const Forms forms(kSecrets);
  const std::string text = "x" + kSecrets[0] + "y" + kSecrets[1] + kSecrets[1] + "s3cr3t/of+the*da";
  const std::string meant = "x" + stars(17) + "y" + stars(32) + "s3cr3t/of+the*da";
  for (std::size_t part = 1; part <= text.size(); ++part) EXPECT_EQ(scrubbed(forms, text, part), meant) << part;
}

TEST(Scrub, PercentAndBase64OfItAreTakenOut) {
  const Forms forms(kSecrets);
  EXPECT_EQ(scrubbed(forms, "?a=s3cr3t%2Fof%2Bthe%2Aday&"), "?a=" + stars(23) + "&");
  EXPECT_EQ(scrubbed(forms, "?a=s3cr3t%2fof%2bthe%2aday&"), "?a=" + stars(23) + "&");
  for (const std::string before : {"", "u", "us", "use", "user:"})
    for (const std::string after : {"", "!", "!!"}) {
      const std::string out = scrubbed(forms, base64(before + kSecrets[0] + after));
      // What is left depends on the bytes beside the secret, and tells less than one of its.
      EXPECT_GE(std::ranges::count(out, '*'), 22) << out;
    }
}

TEST(Scrub, WhatOrdinaryProgramsMakeOfItIsTakenOut) {
  const std::vector<std::string> secrets = {"a/b+c&d'e<f\"g*h"};
  const Forms forms(secrets);
  for (const std::string form : {
           "a/b%2Bc%26d%27e%3Cf%22g%2Ah",                    // urllib
           "a%2fb%2bc%26d'e%3cf%22g*h",                      // encodeURIComponent
           "a/b+c&d'e%3Cf%22g*h",                            // encodeURI
           "a\\/b+c&d'e<f\\\"g*h",                           // PHP
           "a/b+c\\u0026d'e\\u003cf\\\"g*h",                 // Go
           "a/b\\u002Bc\\u0026d\\u0027e\\u003Cf\\u0022g*h",  // .NET
           "a/b+c&amp;d&#39;e&lt;f&#34;g*h",
           "a/b+c&amp;d&#x27;e&lt;f&quot;g*h",  // HTML
           "612f622b63266427653c6622672a68",
           "612F622B63266427653C6622672A68",
       }) {
    EXPECT_EQ(scrubbed(forms, "x" + form + "y"), "x" + stars(form.size()) + "y");
  }
}

TEST(Scrub, OverlapsAreTakenOutWhole) {
  const Forms forms(kSecrets);
  EXPECT_EQ(scrubbed(forms, std::string(40, 'a') + "b"), stars(40) + "b");
  EXPECT_EQ(scrubbed(forms, std::string(11, 'a')), std::string(11, 'a'));
}

TEST(Scrub, WithoutSecretsNothingWaits) {
  const Forms none({});
  std::string out;
  Scrubber scrubber(none);
  scrubber.take("all of it", out);
  EXPECT_EQ(out, "all of it");
}

// The plain way: look everywhere, mask everything that was found.
TEST(Scrub, FindsWhatTheObviousSearchFinds) {
  std::mt19937 random(20);
  for (int round = 0; round < 2000; ++round) {
    const std::vector<std::string> secrets = {"abcabcabcabca", "bcabcabcabcabcab", "cabcabcabcabcabcabc"};
    std::string text;
    for (int i = 0; i < 60; ++i) text += random() % 40 == 0 ? 'x' : "abc"[(text.size() + (random() % 50 == 0)) % 3];
    std::string meant = text;
    for (const std::string& secret : secrets)
      for (std::size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at + 1))
        std::fill_n(meant.begin() + static_cast<std::ptrdiff_t>(at), secret.size(), '*');
    ASSERT_EQ(scrubbed(Forms(secrets), text, random() % 9 + 1), meant) << text;
  }
}

// A text that is nothing but matches, of a form that is as long as one may be.
TEST(Scrub, ManyMatchesAreOnePass) {
  const Forms forms(std::vector<std::string>{std::string(1024, 'a')});
  const std::string text(4 << 20, 'a');
  EXPECT_EQ(scrubbed(forms, text, 16384), stars(text.size()));
}

}  // namespace
}  // namespace caisson::egress
