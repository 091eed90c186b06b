#include "launcher/egress/secret/scrub.h"

#include <algorithm>
#include <optional>

#include "launcher/egress/parse/base64.h"

namespace caisson::egress {
namespace {

constexpr std::string_view kUpper = "0123456789ABCDEF", kLower = "0123456789abcdef";

bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

// Each byte in hexadecimal with this before it, but for those that stay: letters and digits, and `kept`.
std::string escaped(std::string_view text, std::string_view before, std::string_view digits,
                    std::optional<std::string_view> kept) {
  std::string out;
  for (const char c : text) {
    if (kept && (is_alphanumeric(c) || kept->contains(c))) out += c;
    else (out += before).append({digits[static_cast<unsigned char>(c) >> 4], digits[c & 15]});
  }
  return out;
}

// As HTML has it; apostrophe and quotation mark as this program or that writes them.
std::string in_html(std::string_view text, std::string_view apostrophe, std::string_view quotation) {
  std::string out;
  for (const char c : text) {
    const std::string_view named = c == '&'    ? "&amp;"
                                   : c == '<'  ? "&lt;"
                                   : c == '>'  ? "&gt;"
                                   : c == '\'' ? apostrophe
                                   : c == '"'  ? quotation
                                               : "";
    named.empty() ? out += c : out += named;
  }
  return out;
}

// As a string of JSON has it.
std::string in_json(std::string_view text, bool slash, std::string_view as_code, std::string_view digits) {
  std::string out;
  for (const char c : text) {
    if (as_code.contains(c)) out += escaped({&c, 1}, "\\u00", digits, std::nullopt);
    else if (c == '"' || c == '\\' || (slash && c == '/')) (out += '\\') += c;
    else out += c;
  }
  return out;
}

// The digits that depend on the text alone, with `before` bytes in front of it and whatever behind: whoever encodes more than the
// secret writes these.
std::string inner_base64(std::string_view text, std::size_t before) {
  const std::string all = base64(std::string(before, 'x').append(text));
  const std::size_t first = (before * 8 + 5) / 6, bits = (before + text.size()) * 8;
  return all.substr(first, bits / 6 - first);
}

std::string url_safe(std::string text) {
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

std::vector<std::string> forms_of(std::string_view secret) {
  std::vector<std::string> out{std::string(secret)};
  for (const std::string_view digits : {kUpper, kLower}) {
    out.push_back(escaped(secret, "%", digits, std::nullopt));
    out.push_back(escaped(secret, "", digits, std::nullopt));
    // RFC 3986; urllib's quote(); encodeURIComponent(); encodeURI().
    for (const std::string_view kept : {"-_.~", "-_.~/", "-_.~!'()*", "-_.~!'()*;,/?:@&=+$#"})
      out.push_back(escaped(secret, "%", digits, kept));
    // What programs of Python and JavaScript, of Go, and of .NET write as codes.
    for (const std::string_view as_code : {"", "<>&", "<>&'\"+`"})
      for (const bool slash : {false, true}) out.push_back(in_json(secret, slash, as_code, digits));
  }
  for (const std::string_view apostrophe : {"'", "&#39;", "&#x27;", "&apos;"})
    for (const std::string_view quotation : {"\"", "&#34;", "&quot;"}) out.push_back(in_html(secret, apostrophe, quotation));
  for (const std::size_t before : {0U, 1U, 2U}) {
    out.push_back(inner_base64(secret, before));
    out.push_back(url_safe(out.back()));
  }
  return out;
}

}  // namespace

Forms::Forms(std::span<const std::string> secrets) {
  std::vector<std::string> all;
  for (const std::string& secret : secrets)
    for (std::string& form : forms_of(secret)) all.push_back(std::move(form));
  for (const std::string& form : all)
    for (const char c : form)
      if (std::uint16_t& letter = letter_of_[static_cast<unsigned char>(c)]; letter == 0)
        letter = static_cast<std::uint16_t>(letters_++);
  nodes_.emplace_back();
  next_.resize(letters_);
  for (const std::string& form : all) add(form);
  link();
}

void Forms::add(std::string_view form) {
  State at = 0;
  for (const char c : form) {
    const std::size_t letter = letter_of_[static_cast<unsigned char>(c)];
    if (next(at, letter) == 0) {
      next(at, letter) = static_cast<State>(nodes_.size());
      nodes_.push_back({.depth = nodes_[at].depth + 1});
      next_.resize(nodes_.size() * letters_);
    }
    at = next(at, letter);
  }
  if (at != 0) nodes_[at].matched = nodes_[at].depth;
}

// Breadth first, so that the state of a shorter end is linked before it is used.
void Forms::link() {
  std::vector<State> order;
  for (std::size_t letter = 0; letter < letters_; ++letter)
    if (const State child = next(0, letter); child != 0) order.push_back(child);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const State at = order[i];
    const State suffix = nodes_[at].suffix;
    nodes_[at].matched = std::max(nodes_[at].matched, nodes_[suffix].matched);
    for (std::size_t letter = 0; letter < letters_; ++letter) {
      State& child = next(at, letter);
      if (child == 0) {
        child = next(suffix, letter);
        continue;
      }
      nodes_[child].suffix = next(suffix, letter);
      order.push_back(child);
    }
  }
}

void Scrubber::take(std::string_view bytes, std::string& out) {
  if (forms_.empty()) return out += bytes, void();
  for (const char c : bytes) {
    held_ += c;
    state_ = forms_.after(state_, static_cast<unsigned char>(c));
    if (const std::size_t size = forms_.nodes_[state_].matched; size > 0) mask(size);
  }
  const std::size_t certain = held_.size() - forms_.nodes_[state_].depth;
  out.append(held_, 0, certain);
  held_.erase(0, certain);
  masked_from_ -= std::min(masked_from_, certain);
  masked_to_ -= std::min(masked_to_, certain);
}

// What was masked already is not written again, but for a longer form that began before it: linear, but for as many times as
// there are lengths of forms.
void Scrubber::mask(std::size_t size) {
  const std::size_t end = held_.size(), begin = end - size;
  const bool goes_on = begin >= masked_from_ && begin <= masked_to_;
  const std::size_t from = goes_on ? masked_to_ : begin;
  std::fill(held_.begin() + static_cast<std::ptrdiff_t>(from), held_.end(), '*');
  if (!goes_on) masked_from_ = begin;
  masked_to_ = end;
  ++found_;
}

void Scrubber::end(std::string& out) {
  out += held_;
  held_.clear();
  state_ = 0, masked_from_ = 0, masked_to_ = 0;
}

}  // namespace caisson::egress
