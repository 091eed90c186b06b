// The table of the commands of `caisson`, and their help.
#include <string>
#include <vector>

#include "launcher/cli/commands.h"
#include "launcher/cli/policy_files.h"

namespace caisson::cli {
namespace {

constexpr std::span<const Flag> kNoFlags;
constexpr Flag kExplainFlags[] = {{"--diff", "", false}};
constexpr Flag kLearnFlags[] = {{"--policy", "-p", true}, {"--cwd", "-C", true},    {"--env", "-e", true},
                                {"--grant", "-g", true},  {"--output", "-o", true}, {"--session", "-s", true},
                                {"--seconds", "", true},  {"--verify", "", false},  {"--records", "", true}};
constexpr Flag kImportFlags[] = {{"--name", "", true}};
constexpr Flag kAskFlags[] = {{"--workspace", "-w", true}, {"--for", "", true}, {"--who", "", true}};
constexpr Flag kKillFlags[] = {{"--reason", "", true}};
constexpr Flag kReadFlags[] = {
    {"--event", "-e", true}, {"--since", "-s", true}, {"--full", "", false}, {"--lines", "-n", true}, {"--follow", "-f", false}};
constexpr Flag kStatsFlags[] = {{"--since", "-s", true}};
constexpr Flag kExportFlags[] = {{"--format", "-f", true}, {"--since", "-s", true}, {"--session", "", true}};

constexpr Command kCommands[] = {
    {"run", "run one command in a session of its own, without a server",
     R"(caisson [--json] run [--policy DOMAIN] [--grant PATH[:MODE]]... -- COMMAND [ARGUMENTS]

Builds one session from the policy (default: run), runs the command in it and removes the session. Needs no running launcher.
The command gets this program's standard input, output and error; if stdin and stdout are terminals, it gets a new one.
For root, the checked policy is kept in CAISSON_CACHE_DIR (default: /var/cache/caisson), where only root can write, and used
until one of its files changes. For other users it is checked each time, because their sessions could write to their cache.

  --policy, -p DOMAIN   the policy file to use
  --grant, -g PATH:MODE ro, rw, rx or rwx; adds a grant, or replaces the policy's grant of that path (repeatable)
  --cwd, -C DIR         working directory inside (default: the policy's home)
  --env, -e NAME=VALUE  a variable for the command, unless the policy denies it (repeatable)
  --report FILE         write the confinement report: every wall, how it was verified, what is missing

  caisson run -- bash -c 'id; ls /'
  caisson run --grant /srv/project:rw --cwd /srv/project -- python3 -m pytest

Exit codes: the command's, or 128 + its signal; 125 if the session could not be built or the command not started.
)",
     Syntax(kNoFlags, 0, 0, run_main), nullptr},
    {"probe", "show the tier that this kernel and container permit, and what would raise it",
     R"(caisson probe [--json]

Tries each mechanism of confinement in short-lived children. Prints the resulting tier, the reason why it is not higher, and
the flag of the container runtime that would raise it. Changes nothing. Run as non-root, it shows the tier that a non-root
launcher would reach, and the tier of `caisson run`, which may be higher because it keeps no sessions apart.

  caisson probe
  caisson probe --json | jq .tier

Exit codes: 0, whatever the tier.
)",
     Syntax(), probe_main},
    {"policy check", "report every problem of the policy files",
     R"(caisson policy check [DIR]

Reads DIR (default: --policies) as the launcher does: base.json, one file for each domain, seccomp/. Then applies every preset
to every domain and reads the expectations in tests/. Prints the digest of each domain, or all problems, each as
"file:line /pointer: problem; meant ...". The launcher refuses the same files.

  caisson policy check
  caisson policy check ./policies --json | jq '.problems[] | .file, .line'

Exit codes: 0 no problem; 21 problems.
)",
     Syntax(kNoFlags, 0, 1), policy_check},
    {"policy explain", "list what a domain's sessions read, write, run, reach and use",
     R"(caisson policy explain [--preset NAME] DOMAIN
       caisson policy explain --diff A B

Lists what a session of the domain reads, writes, runs, reaches and uses, and what is recorded of it, each with its reason,
after merging the files that the domain extends. Prints a posture score of at most 100 with each deduction and its field
(policies/README.md explains the points). --diff compares two policies in the same terms:

  DOMAIN            a domain of --policies, under --preset
  DOMAIN@PRESET     under another preset; DOMAIN@ under none
  DIR/DOMAIN        a domain of another directory, also with @PRESET
  DIR               all domains of a directory

  caisson policy explain bash
  caisson policy explain --preset finance bash --json | jq .score
  caisson policy explain --diff bash bash@finance
  caisson policy explain --diff /etc/caisson/policies ./policies

Exit codes: 0; 3 no such domain; 21 the policies have problems.
)",
     Syntax(kExplainFlags, 1, 2), policy_explain},
    {"policy learn", "propose the smallest policy under which a command still runs",
     R"(caisson policy learn [--policy DOMAIN] [--cwd DIR] [--env NAME=VALUE]... [--grant PATH:MODE]... [--verify]
                     [--output FILE] -- COMMAND [ARGUMENTS]
       caisson policy learn --session SESSION [--seconds N] [--output FILE]
       caisson policy learn --records SESSION|FILE [--policy DOMAIN] [--output FILE]

Root only. The first form really runs the command, once, in a session of the domain (default: run) that shows every path its
user could use outside, and follows it with ptrace. The second form follows a running session of the launcher until the time
is over or SIGINT arrives, and takes up what the session was refused. Both print a policy file that extends the domain: paths
that were used and not granted (files of one directory together; never /, /etc or a whole home), lower limits, and no network
if none was used. Standard error shows the difference and what could not be seen. Read the policy before you use it: it
grants what the command did, which may be more than it should do.

The third form reads an audit log: names that sessions of the domain asked for and no rule allowed, and in "monitor" those that
they connected to, become rules of `egress`, one for each name, with the reason. The second form does so, too. Addresses, what
a rule denies, and what raised an alarm are never proposed.

  --policy, -p DOMAIN   the domain to extend
  --cwd, --env, --grant as in caisson run
  --verify              run the command once more under the learnt policy, and print what it lost
  --output, -o FILE     write the policy to FILE, which must not exist, instead of standard output
  --seconds N           how long to follow a session

  caisson policy learn --cwd /srv/project -o ./policies/project.json -- make
  caisson policy learn --session s-0123456789abcdef --seconds 60 --json | jq .policy.grants

Exit codes: 0; 3 no such policy or session; 4 not root; 22 with --verify, if the learnt policy is not enough.
)",
     Syntax(kLearnFlags, 0, 4096), policy_learn},
    {"policy test", "try a policy's expectations in a real session",
     R"(caisson policy test [DOMAIN|FILE]...

Without arguments, reads every file of tests/ beside the policies. Each file names a domain, optionally a preset, and what
sessions can and cannot do:

  {"domain": "bash", "expect": [
    {"can": "read", "path": "/etc/passwd"},          {"cannot": "read", "path": "/etc/shadow"},
    {"can": "write", "path": "/home/gem/x"},         {"cannot": "see", "path": "/root"},
    {"can": "run", "argv": ["python3", "-c", "1"]},  {"cannot": "connect", "to": "1.1.1.1:53"},
    {"can": "listen", "at": "127.0.0.1:0"},          {"cannot": "call", "syscall": "mount", "errno": "EPERM"},
    {"cannot": "exceed", "limit": "open_files"}]}

Builds a session as `caisson run` does, with a private home and /tmp, and tries each expectation in a process of its own,
without a shell. "cannot" holds only if a wall refuses: a connection without an answer was sent, so it does not count. Needs
root, or a user who can make namespaces.

  caisson policy test
  caisson policy test bash ./more.json --json | jq '.results[] | select(.state != "ok")'

Exit codes: 0 all hold; 3 no such file; 6 some could not be tried; 21 the files have problems; 22 one does not hold.
)",
     Syntax(kNoFlags, 0, 100), policy_test},
    {"policy import", "convert a seccomp profile or sandbox-runtime settings",
     R"(caisson policy import seccomp [--name NAME] FILE
       caisson policy import srt FILE

seccomp: converts a profile of Docker, Podman or the OCI to a set. Save it as seccomp/NAME.json and name it in a policy's
/syscalls/allow. srt: converts settings of Anthropic's sandbox-runtime to a domain's file. Standard output is the file, which
passes `caisson policy check` in its place. Standard error lists what has no counterpart and was left out, or is stricter
here. --json prints one document with both. What cannot be expressed exactly is refused, never allowed.

      --name NAME   the set's name (default: imported)

  caisson policy import seccomp --name team ./profile.json > policies/seccomp/team.json
  caisson policy import srt ~/.srt-settings.json > policies/agent.json

Exit codes: 0; 2 the file is not such a profile; 21 the policies that it is made for have problems.
)",
     Syntax(kImportFlags, 2, 2), policy_import},
    {"ask ls", "list what sessions were refused and may be allowed, and what was",
     R"(caisson ask ls [--workspace WORKSPACE]

What sessions asked for outside and no rule of their policy names, where the policy says who may be asked (`egress_ask`); and
the grants in force. Nothing is allowed by being asked, and a question ends ten minutes after it was asked last. Root only.

  -w, --workspace WORKSPACE  (default: default)

  caisson ask ls
  caisson ask ls --json | jq '.asked[] | .id, .host'

Exit codes: 0; 3 no such workspace; 4 not root; 6 no launcher answers, or no session of the workspace has a way out.
)",
     Syntax(std::span(kAskFlags).first(1), 0, 0), ask_ls},
    {"ask allow", "allow what a session was refused",
     R"(caisson ask allow [--workspace WORKSPACE] [--for once|session|SECONDS|policy] [--who NAME] ID

From the next connection on, to that host and port alone, at public addresses alone, and never what a rule denies. The audit
log says who allowed it, and each connection which grant it used.

  --for once     one connection of that session, within ten minutes (this is the default)
  --for session  that session's connections, for a day at most
  --for SECONDS  those of all sessions of the domain in that workspace; at most 86400
  --for policy   allows nothing: prints the rule that the policy takes, for a review
  --who NAME     who decided, for the log

  caisson ask allow 3
  caisson ask allow --for 3600 --who alice 3
  caisson ask allow --for policy 3

Exit codes: 0; 3 nothing is asked under ID; 4 not root; 5 too many grants; 6 no launcher answers.
)",
     Syntax(kAskFlags, 1, 1), ask_allow},
    {"ask deny", "have something asked no more",
     R"(caisson ask deny [--workspace WORKSPACE] [--who NAME] ID

Sessions of the domain are refused that host and port as before, and nobody is asked of it until the workspace ends.

  caisson ask deny 3

Exit codes: 0; 3 nothing is asked under ID; 4 not root; 6 no launcher answers.
)",
     Syntax(kAskFlags, 1, 1), ask_deny},
    {"ask revoke", "take a grant back",
     R"(caisson ask revoke [--workspace WORKSPACE] [--who NAME] ID

From the next connection on. Connections that are open go on, as with a newer policy.

  caisson ask revoke 3

Exit codes: 0; 3 no grant ID is in force; 4 not root; 6 no launcher answers.
)",
     Syntax(kAskFlags, 1, 1), ask_revoke},
    {"secret set", "hand over a secret that is in no file",
     R"(caisson secret set [--workspace WORKSPACE] NAME < SECRET

Reads the secret from stdin: 12 to 1,024 printable characters. It is for each policy whose `secrets` has NAME with `handed`. It
stays in memory until the launcher's caisson-gate ends, and takes the place of one that was handed over before. Root only.

  -w, --workspace WORKSPACE  (default: default)

  vault read -field=token secret/issues | caisson secret set issues

Exit codes: 0; 2 stdin has no secret; 3 no policy has NAME, or no such workspace; 4 not root; 6 no launcher answers.
)",
     Syntax(std::span(kAskFlags).first(1), 1, 1), secret_set},
    {"secret revoke", "take such a secret back",
     R"(caisson secret revoke [--workspace WORKSPACE] NAME

Its placeholder is refused from the next request on, and connections that use it end. Root only.

  caisson secret revoke issues

Exit codes: 0; 3 no policy has NAME, or no such workspace; 4 not root; 6 no launcher answers.
)",
     Syntax(std::span(kAskFlags).first(1), 1, 1), secret_revoke},
    {"session ls", "list the sessions of the running launcher",
     R"(caisson session ls

Root only, in the launcher's container.

  caisson session ls
  caisson session ls --json | jq -r '.sessions[] | select(.domain == "bash") | .session'

Exit codes: 0; 4 not root; 6 no launcher answers.
)",
     Syntax(), session_ls},
    {"session kill", "end sessions and everything in them",
     R"(caisson session kill [--reason TEXT] SESSION...

Returns when no process, mount or control group of the sessions is left. The audit log records the reason.

  caisson session kill s-0123456789abcdef
  caisson session ls --json | jq -r '.sessions[].session' | xargs caisson session kill --reason maintenance

Exit codes: 0; 3 no such session (the sessions named before it have ended); 4 not root; 6 no launcher answers.
)",
     Syntax(kKillFlags, 1, 1000), session_kill},
    {"agent restart", "replace the API agent with the program on disk",
     R"(caisson agent restart

Ends the agent at once. A new agent takes over its sessions, shells, kernels, running commands and their output. Clients see a
closed connection and continue by id.

  caisson agent restart

Exit codes: 0; 4 not root; 6 no launcher answers.
)",
     Syntax(), agent_restart},
    {"session report", "show what confines one running session, wall by wall",
     R"(caisson session report SESSION

Shows each mechanism as enforced, unavailable (with the reason) or disabled by policy, how it was verified and how long that
took; what the session sees; and what is missing.

  caisson session report s-0123456789abcdef
  caisson session report s-0123456789abcdef --json | jq '.mechanisms[] | select(.state != "enforced")'

Exit codes: 0; 3 no such session; 4 not root; 6 no launcher answers.
)",
     Syntax(kNoFlags, 1, 1), session_report},
    {"audit show", "print the records of one log, one a line",
     R"(caisson audit show [--event EVENT]... [--since TIME] [--full] [SESSION|FILE]

Without a session, prints the launcher's own log. Text that sessions chose (arguments, labels, paths) is escaped, so that a
terminal can show it safely. --json prints one array of records.

  -e, --event EVENT   only this event (repeatable): exec_request, exec_exit, session_start, limit_hit, ...
  -s, --since TIME    only newer records: an age (90s, 15m, 2h, 7d) or a UTC time (2026-01-02, 2026-01-02T03:04)
      --full          do not shorten long values

  caisson audit show s-0123456789abcdef
  caisson audit show -e exec_request -e exec_exit --since 1h s-0123456789abcdef
  caisson audit show ./copy-of-a-log.ndjson --json | jq '.[].argv'

Exit codes: 0; 3 no such log; 4 not root; 20 a line is not a record.
)",
     Syntax(std::span(kReadFlags).first(3), 0, 1), audit_show},
    {"audit tail", "print the last records of a log, and follow it",
     R"(caisson audit tail [-n LINES] [-f] [--event EVENT]... [--since TIME] [--full] [SESSION|FILE]

Without a session, prints the launcher's own log. With -f it continues until the session ends or SIGINT arrives. --json
prints one record a line (NDJSON).

  -n, --lines LINES   the number of records to begin with (10)
  -f, --follow        print new records
  -e, -s, --full      as in audit show

  caisson audit tail -f
  caisson audit tail -f -n 0 -e exec_request --json s-0123456789abcdef | jq -c .argv

Exit codes: 0, also after SIGINT; 3 no such log; 4 not root; 20 a line is not a record.
)",
     Syntax(kReadFlags, 0, 1), audit_tail},
    {"audit verify", "prove that logs were not changed",
     R"(caisson audit verify [--complete] [--key KEY] [SESSION|FILE]...

Finds every byte and record that was changed, removed, added or moved, with line and offset. Without a session, checks all
logs, and that none is missing. The segments of a log are checked as one. Segments removed for room, records that went to the
launcher's standard error, and logs deleted for their age are accepted if a record in the chain says so, and are counted. The
end of a session's log is compared with the count and head in the launcher's log, if that is in the same directory: this also
finds records cut off the end, and a log that was rewritten as a whole.

  intact        the chain is whole up to the session's end
  open or cut   whole so far, but without an end: the session still runs, or the launcher was killed, or the end was cut
                off and the launcher's log is missing
  BROKEN        with the places

      --complete   treat "open or cut" as broken
  -k, --key KEY    also check the launcher's signature of each ended session's count and head. KEY is the public key: a file
                   with its JWK, or its x (caisson attest, GET /v1/attestation). A missing signature is then a failure

  caisson audit verify
  caisson audit verify --complete s-0123456789abcdef
  caisson audit verify --json | jq '.logs[] | select(.verdict == "broken")'

Exit codes: 0; 3 no such log; 4 not root; 20 a log is broken or missing.
)",
     Syntax(kVerifyFlags, 0, 1000), audit_verify},
    {"audit ls", "list the logs",
     R"(caisson audit ls

Lists the name, beginning, number of records and size of each log, and the reason for each session's end. Verifies nothing.

  caisson audit ls
  caisson audit ls --json | jq '.logs[] | select(.end == null) | .log'

Exit codes: 0; 3 no such directory; 4 not root.
)",
     Syntax(), audit_ls},
    {"audit stats", "count what the logs contain",
     R"(caisson audit stats [--since TIME] [SESSION|FILE]...

For each log and in total: records by event, refused calls by name, commands, exit codes and signals, limits hit, reasons for
the end of sessions, bytes, and records that were removed for room or went to the launcher's standard error. Verifies nothing.

  -s, --since TIME   only newer records, as in audit show

  caisson audit stats --since 1d
  caisson audit stats --json | jq .total.denials

Exit codes: 0; 3 no such log; 4 not root; 20 a line is not a record.
)",
     Syntax(kStatsFlags, 0, 1000), audit_stats},
    {"audit export", "print records for a log collector or a SIEM, one a line",
     R"(caisson audit export [--format ocsf|ndjson] [--since TIME] [--session SESSION]...

Exports all logs, or those of the named sessions; the launcher's own log is named "launcher". ndjson prints the records, each
with the name of its log. ocsf prints events of the Open Cybersecurity Schema Framework 1.3; the mapping is in
launcher/common/audit/README.md.

  -f, --format NAME  ocsf or ndjson (default: ndjson)
  -s, --since TIME   only newer records, as in audit show
      --session ID   only this log (repeatable)

  caisson audit export --format ocsf --since 1h | collector
  caisson audit export --session launcher --format ocsf | jq 'select(.class_uid == 2004)'

Exit codes: 0; 3 no such log; 4 not root; 20 a line is not a record.
)",
     Syntax(kExportFlags, 0, 0), audit_export},
    {"attest", "get or verify a signed statement of what is enforced",
     R"help(caisson attest [--nonce TEXT] [--session SESSION] [--token]
       caisson attest --verify FILE --key KEY [--nonce TEXT] [--max-age SECONDS]

The first form asks the running launcher (as root, in its container) for a statement about its boot or one session, signed with
its Ed25519 key: tier, policies, every mechanism and how it was verified, and what is not stopped. The second form needs no
launcher: it verifies a statement, and prints it only if the signature is valid.

  -n, --nonce TEXT       8 to 88 characters, chosen by you and used once; the statement repeats them, so it cannot be old
  -s, --session SESSION  the statement is about this session
      --token            print only the signed token (JWS, EAT claims)
      --verify FILE      a token, or the JSON that the API answered; "-" is standard input
  -k, --key KEY          the launcher's public key: a file with its JWK, or its x. Get it from the operator, not the answer
      --max-age SECONDS  refuse an older statement

  caisson attest --nonce "$(openssl rand -hex 16)"
  curl -H "X-AIO-API-Key: $K" "localhost:8080/v1/attestation?nonce=$N" | caisson attest --verify - --key key.jwk --nonce "$N"

Exit codes: 0; 3 no such session; 4 invalid signature, nonce or age, or not root; 6 no launcher answers; 9 not a token.
)help",
     Syntax(kNoFlags, 0, 0, attest_main), nullptr},
    {"version", "print the version of the program and of the protocol",
     R"(caisson version [--json]
)",
     Syntax(), version_main},
};

}  // namespace

std::span<const Command> all_commands() { return kCommands; }

int show_help(std::string_view command) {
  const std::vector<std::string> words{"help", std::string(command)};
  return dispatch(kCommands, words);
}

}  // namespace caisson::cli
