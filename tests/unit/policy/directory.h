// A temporary policy directory for tests: a small good base.json, one domain, one set, and what a test puts over them.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "launcher/common/base/json.h"
#include "launcher/compiler/load.h"

namespace caisson::policy {

inline std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class Directory {
 public:
  Directory() {
    char name[] = "/tmp/caisson-policy-XXXXXX";
    path_ = ::mkdtemp(name);
    std::filesystem::create_directory(path_ + "/seccomp");
    write("base.json", R"({
  "grants": [{"path": "/usr", "execute": true}, {"path": "/data", "access": "read-write"}],
  "hide": ["/usr/lib/caisson"],
  "devices": ["null"],
  "syscalls": {"allow": ["io"]}
})");
    write("d.json", R"({"extends": "base"})");
    write("seccomp/io.json", R"({"name": "io", "why": "for the tests", "allow": [{"names": ["read", "write", "ioctl"]}]})");
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  void write(const std::string& name, const std::string& text) {
    std::ofstream(path_ + "/" + name) << text;
    ::chmod((path_ + "/" + name).c_str(), 0644);
  }
  void remove(const std::string& name) { std::filesystem::remove(path_ + "/" + name); }
  [[nodiscard]] const std::string& path() const { return path_; }

  // Problem texts, without the directory's random name.
  [[nodiscard]] std::vector<std::string> problems() const {
    std::vector<std::string> out;
    for (const Problem& problem : load_directory(path_).problems) {
      std::string text = problem.text();
      if (const auto at = text.find(path_ + "/"); at != std::string::npos) text.erase(at, path_.size() + 1);
      out.push_back(text);
    }
    return out;
  }
  // The problems when d.json holds `fields` besides "extends".
  std::vector<std::string> with(const std::string& fields) {
    write("d.json", "{\"extends\": \"base\",\n" + fields + "}");
    return problems();
  }
  // The policy of a directory that must be good.
  std::shared_ptr<const Policy> policy(const std::string& domain = "d") {
    auto loaded = load_directory(path_);
    for (const Problem& problem : loaded.problems) ADD_FAILURE() << problem.text();
    auto it = loaded.policies.find(domain);
    return it == loaded.policies.end() ? std::make_shared<const Policy>() : it->second;
  }

 private:
  std::string path_;
};

using Texts = std::vector<std::string>;

}  // namespace caisson::policy
