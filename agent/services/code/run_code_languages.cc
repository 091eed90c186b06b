#include "agent/services/code/run_code_languages.h"

#include <algorithm>
#include <cstring>

namespace caisson::services {
namespace {

constexpr std::string_view kTypes = "node --experimental-transform-types --no-warnings main.ts";
constexpr std::string_view kBundle = "esbuild main.ts --bundle --platform=node --log-level=warning --outfile=main.js";

constexpr ProgramLanguage kLanguages[] = {
    {"python", "main.py", "python3", "", "python3 main.py", "python3"},
    {"pytest", "main.py", "pytest", "", "pytest main.py", "python3-pytest"},
    {"nodejs", "main.js", "node", "", "node main.js", "nodejs", true},
    {"typescript", "main.ts", "tsx", "", "tsx main.ts", "", true},
    {"typescript", "main.ts", "node 22.7", "", kTypes, "", true},
    {"typescript", "main.ts", "esbuild", kBundle, "node main.js", "nodejs esbuild", true},
    {"bash", "main.sh", "bash", "", "bash main.sh", "bash"},
    {"c", "main.c", "gcc", "gcc -O1 main.c -o main -lm -pthread", "./main", "gcc"},
    {"cpp", "main.cpp", "g++", "g++ -std=c++17 -O1 main.cpp -o main -pthread", "./main", "g++"},
    {"go", "main.go", "go", "go build -o main main.go", "./main", "golang-go", true},
    {"java", "Main.java", "javac", "javac Main.java", "java -cp . -ea Main", "default-jdk-headless", true},
    {"rust", "main.rs", "rustc", "rustc main.rs -o main", "./main", "rustc"},
    {"perl", "main.pl", "perl", "", "perl main.pl", "perl"},
    {"php", "main.php", "php", "", "php main.php", "php-cli"},
    {"ruby", "main.rb", "ruby", "", "ruby main.rb", "ruby"},
    {"lua", "main.lua", "lua", "", "lua main.lua", "lua5.4"},
    {"R", "main.R", "Rscript", "", "Rscript main.R", "r-base-core"},
    {"julia", "main.jl", "julia", "", "julia main.jl", "julia", true},
};

std::string_view take_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

// Its path; "": it is not installed. Programs in the job's directory exist by then.
std::string program_path(std::string_view name, const ToolInventory& tools) {
  if (name.starts_with("./")) return std::string(name);
  if (name == "python3") return tools.python.empty() ? "" : tools.python.front().path;
  if (name == "node") return tools.node.empty() ? "" : tools.node.front().path;
  const auto known = tools.tools.find(std::string(name));
  return known == tools.tools.end() ? "" : known->second;
}

bool offered(const ProgramLanguage& language, const ToolInventory& tools) {
  std::string_view needs = language.needs, run = language.run;
  if (program_path(take_word(needs), tools).empty() || program_path(take_word(run), tools).empty()) return false;
  return needs.empty() || ::strverscmp(tools.node.front().version.c_str(), std::string(needs).c_str()) >= 0;
}

std::string offered_languages(const ToolInventory& tools) {
  std::string out;
  std::string_view last;
  for (const ProgramLanguage& language : kLanguages) {
    if (language.name == last || !offered(language, tools)) continue;
    out += (out.empty() ? "" : ", ") + std::string(language.name);
    last = language.name;
  }
  return out;
}

}  // namespace

std::span<const ProgramLanguage> program_languages() { return kLanguages; }

Result<const ProgramLanguage*> choose_language(std::string_view name, const ToolInventory& tools) {
  std::string_view packages;
  for (const ProgramLanguage& language : kLanguages) {
    if (language.name != name) continue;
    if (offered(language, tools)) return &language;
    packages = language.packages;
  }
  const std::string there = "; available: " + offered_languages(tools);
  if (packages.empty()) return fail(Code::not_found, "language " + quote(name) + " is not known" + there);
  return fail(Code::not_found, "language " + quote(name) + " is not installed here: Debian's " + std::string(packages) +
                                   " would do, in an image built with EXTRA_PACKAGES=\"" + std::string(packages) + "\"" + there);
}

std::vector<std::string> command_words(std::string_view line, const ToolInventory& tools) {
  std::vector<std::string> out;
  while (!line.empty()) out.emplace_back(take_word(line));
  if (std::string path = program_path(out[0], tools); !path.empty()) out[0] = std::move(path);
  return out;
}

}  // namespace caisson::services
