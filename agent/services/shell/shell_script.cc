#include "agent/services/shell/shell_script.h"

#include "agent/services/shell/shell_words.h"

namespace caisson::services {
namespace {

constexpr std::size_t kTypedPieceBytes = 3000;

// _caisson_k nonce, _caisson_s status of the last command, _caisson_c the command and _caisson_d its directory, _caisson_f
// set while they are being typed (those lines must not change $?), _caisson_o where markers go: bash keeps its own close-on-exec
// descriptor of the terminal at 255, which survives `exec >file`. _caisson_b begins a command, _caisson_e ends it (and puts the
// prompt hook back if the command replaced it), _caisson_p is that hook: it runs too when Ctrl-C threw the command away. Calls
// stand in { } 2>/dev/null, so that `set -x` does not show them, and before &&, so that `set -e` does not end the shell for them.
constexpr std::string_view kFunctions[] = {
    " _caisson_o=1; { builtin printf '' >&255; } 2>/dev/null && _caisson_o=255",
    " _caisson_m() { builtin printf '\\033]7717;%s;%s;%s;%s\\a' \"$1\" \"$_caisson_k\" \"$2\" \"$PWD\" >&\"$_caisson_o\"; }",
    " _caisson_p() { local s=$?; [[ $_caisson_f ]] || _caisson_s=$s; _caisson_m P \"$s\"; return \"$s\"; }",
    " _caisson_b() { local ok=1; _caisson_f=; if [[ -n $1 ]]; then builtin cd \"$3\" -- \"$1\" >/dev/null || ok=0; fi; "
    "if [[ $ok$2 == 01 ]]; then _caisson_c=:; fi; _caisson_m S \"$ok\"; return \"$_caisson_s\"; }",
    " _caisson_e() { _caisson_s=$?; [[ \"${PROMPT_COMMAND[*]}\" == *_caisson_p* ]] || "
    "PROMPT_COMMAND+=('{ _caisson_p; } 2>/dev/null'); return \"$_caisson_s\"; }",
    " PS0='\\e]7717;B;$_caisson_k;0;\\a'; PS2='> '; trap '_caisson_m X 0' EXIT",
};

}  // namespace

std::vector<std::string> shell_argv(bool for_person) {
  if (for_person) return {"bash", "--noprofile", "--norc", "-i"};
  return {"bash", "--noediting", "--noprofile", "--norc", "-i"};
}

std::string bootstrap_lines(const BootstrapParams& params) {
  std::string out;
  const auto line = [&out](std::string_view text) { out.append(text).append("\n"); };
  line(" unset HISTFILE PROMPT_COMMAND; set +o history +o histexpand");
  if (params.read_rc) line(" [[ -r ~/.bashrc ]] && . ~/.bashrc </dev/null");
  if (params.for_person) line(" HISTCONTROL=ignoreboth; set -o history; bind 'set enable-bracketed-paste off' 2>/dev/null");
  else line(" export PAGER=cat GIT_PAGER=cat");  // no person is there to leave a pager
  for (const std::string_view text : kFunctions) line(text);
  line(" PS1=" + ansi_quote(params.user) + "'@sandbox:\\w$ '");
  if (!params.cwd.empty()) {
    const std::string how = params.preserve_symlinks ? "-L" : "-P";
    line(" _caisson_c=");
    for (const std::string& piece : ansi_quote_pieces(params.cwd, kTypedPieceBytes)) line(" _caisson_c+=" + piece);
    line(" builtin cd " + how + " -- \"$_caisson_c\" >/dev/null 2>&1");
  }
  // The hook comes last: the first marker says that all of this is done.
  line(" _caisson_k=" + params.nonce +
       " _caisson_s=0 _caisson_c= _caisson_d= _caisson_f=; PROMPT_COMMAND+=('{ _caisson_p; } 2>/dev/null')");
  return out;
}

std::string feed_lines(const FeedParams& params) {
  std::string out = " _caisson_f=1 _caisson_d= _caisson_c=\n";
  for (const std::string& piece : ansi_quote_pieces(params.exec_dir, kTypedPieceBytes)) out += " _caisson_d+=" + piece + "\n";
  for (const std::string& piece : ansi_quote_pieces(params.command, kTypedPieceBytes)) out += " _caisson_c+=" + piece + "\n";
  out += " { _caisson_k=" + params.nonce + "; _caisson_b \"$_caisson_d\" " + (params.strict ? "1" : "0") +
         (params.preserve_symlinks ? " -L" : " -P") +
         "; } 2>/dev/null && :;builtin eval \"$_caisson_c\";{ _caisson_e; } 2>/dev/null && :\n";
  return out;
}

std::string prompt_text(std::string_view user, std::string_view home, std::string_view cwd) {
  std::string out = std::string(user) + "@sandbox:";
  if (!home.empty() && cwd.starts_with(home) && (cwd.size() == home.size() || cwd[home.size()] == '/'))
    out.append("~").append(cwd.substr(home.size()));
  else out.append(cwd);
  return out + "$ ";
}

}  // namespace caisson::services
