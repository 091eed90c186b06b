// Stands in for libFuzzer where the compiler has none: the seeds, then seeded mutations of them, for a fixed time.
//   fuzz_ipc [-max_total_time=SECONDS] [-seed=N] SEED_DIRECTORY
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);

namespace {

using Random = std::mt19937_64;

void mutate(std::string& text, const std::vector<std::string>& seeds, Random& random) {
  const auto below = [&random](std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random() % n); };
  const std::string& other = seeds[below(seeds.size())];
  switch (below(7)) {
    case 0:
      if (!text.empty()) text[below(text.size())] ^= static_cast<char>(1 << below(8));
      break;
    case 1:
      text.insert(below(text.size() + 1), 1, static_cast<char>(below(256)));
      break;
    case 2:
      text.erase(below(text.size() + 1), 1 + below(8));
      break;
    case 3:
      text.resize(below(text.size() + 1));
      break;
    case 4:
      text.insert(below(text.size() + 1), other.substr(below(other.size()), 1 + below(40)));
      break;
    case 5:
      text += '\x1e' + other;
      break;
    default:
      for (const std::size_t at = below(text.size() + 1), n = 1 + below(40); text.size() < 70000 && at < text.size() && n > 1;) {
        text.insert(at, text.substr(at, n));
        if (below(4) != 0) break;
      }
  }
}

}  // namespace

int main(int argc, char** argv) {
  long seconds = 20;
  unsigned long long seed = 1;
  std::vector<std::string> seeds;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "-max_total_time=", 16) == 0) seconds = std::atol(argv[i] + 16);
    else if (std::strncmp(argv[i], "-seed=", 6) == 0) seed = std::strtoull(argv[i] + 6, nullptr, 10);
    else if (argv[i][0] != '-' && std::filesystem::is_directory(argv[i]))
      for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
        std::ifstream file(entry.path(), std::ios::binary);
        seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
      }
  }
  if (seeds.empty()) return std::fputs("no seeds\n", stderr), 2;
  const auto run = [](const std::string& text) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const unsigned char*>(text.data()), text.size());
  };
  for (const std::string& text : seeds) run(text);
  Random random(seed);
  unsigned long long runs = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  for (; std::chrono::steady_clock::now() < end; ++runs) {
    std::string text = seeds[random() % seeds.size()];
    for (std::size_t i = 1 + random() % 6; i > 0; --i) mutate(text, seeds, random);
    run(text);
  }
  std::printf("%llu runs of %zu seeds\n", runs, seeds.size());
  return 0;
}
