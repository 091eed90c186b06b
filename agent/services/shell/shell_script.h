// The lines that the agent types into a session's bash: once to prepare it, then for each command. Each is printable ASCII of
// less than 4096 bytes, the limit of a terminal's input line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace caisson::services {

struct BootstrapParams {
  std::string nonce;
  std::string cwd;  // entered if it exists
  bool preserve_symlinks = false;
  bool read_rc = true;      // ~/.bashrc
  bool for_person = false;  // line editing, history and pagers for a person
  std::string user;         // in the prompt
};
[[nodiscard]] std::string bootstrap_lines(const BootstrapParams& params);

struct FeedParams {
  std::string nonce;
  std::string command;
  std::string exec_dir;  // "": stay
  bool strict = false;   // do not run the command when exec_dir cannot be entered
  bool preserve_symlinks = false;
};
[[nodiscard]] std::string feed_lines(const FeedParams& params);

// The program of a session's terminal.
[[nodiscard]] std::vector<std::string> shell_argv(bool for_person);
// "gem@sandbox:~/src$ ", as PS1 prints it.
[[nodiscard]] std::string prompt_text(std::string_view user, std::string_view home, std::string_view cwd);

}  // namespace caisson::services
