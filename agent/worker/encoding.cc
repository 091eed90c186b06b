#include "agent/worker/encoding.h"

#include <sys/mman.h>
#include <unistd.h>

#include "agent/worker/child.h"

namespace caisson::worker {
namespace {

constexpr double kDecodeSeconds = 20;
constexpr std::size_t kMostSaid = 64u << 20;
constexpr std::size_t kMostEncodingName = 64;

// Length in bytes of the UTF-8 character that begins there; 0 if the bytes are not UTF-8.
std::size_t character_at(std::string_view bytes, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U; };
  const unsigned first = byte(at), second = byte(at + 1);
  const std::size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool beyond = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return overlong || beyond ? 0 : size;
}

// The answer of text_encoding.py: its first line, and the bytes after it. nullopt: the program failed or was killed.
struct Said {
  std::string word, body;
};
Done<std::optional<Said>> ask(std::vector<std::string> asked, std::string_view bytes, const Request& request) {
  const Fd input(::memfd_create("text", MFD_CLOEXEC));
  if (!input) return failed(errno, "memfd");
  TRY(write_all_at(input, "memfd", bytes, 0));
  ChildRequest child;
  child.argv = {"python3", "-I", own_directory() + "text_encoding.py"};
  child.argv.insert(child.argv.end(), asked.begin(), asked.end());
  child.input = &input;
  child.seconds = kDecodeSeconds;
  child.line_bytes = kMostSaid;
  std::string all;
  const auto line = [&all](std::string_view text) {
    all.append(text).append("\n");
    return all.size() <= kMostSaid;
  };
  TRY_ASSIGN(const ChildEnd end, run_child(child, request, line));
  const std::size_t first = all.find('\n');
  const bool whole = !end.stopped && end.exit_code == 0 && first + 1 < all.size() && all.ends_with(".\n");
  if (!whole) return std::nullopt;
  return Said{all.substr(0, first), all.substr(first + 1, all.size() - first - 3)};
}

}  // namespace

bool mostly_utf8(std::string_view bytes) {
  std::size_t right = 0, wrong = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t size = character_at(bytes, at);
    (size == 0 ? wrong : right) += size != 1 ? 1 : 0;
    at += std::max<std::size_t>(size, 1);
  }
  return wrong == 0 || right > wrong;
}

Done<Decoded> decode_text(std::string bytes, const std::string& known, const Request& request) {
  std::vector<std::string> asked = {"decode"};
  if (!known.empty()) asked.push_back(known);
  TRY_ASSIGN(auto said, ask(std::move(asked), bytes, request));
  if (!said || said->word.empty() || said->word.size() > kMostEncodingName) return Decoded{"", std::move(bytes)};
  return Decoded{std::move(said->word), std::move(said->body)};
}

Done<std::string> encode_text(std::string text, const std::string& encoding, const std::string& path, const Request& request) {
  if (encoding.empty()) return text;
  TRY_ASSIGN(auto said, ask({"encode", encoding}, text, request));
  if (said && said->word == "ok") return std::move(said->body);
  const std::string why = said && said->word == "no" ? "it has no character `" + said->body + "`" : "it cannot be encoded";
  return refused("invalid_target", path,
                 "No edit was performed. The file " + path + " is " + encoding + ", and " + why +
                     ". Use other characters, or make the file UTF-8 first.");
}

}  // namespace caisson::worker
