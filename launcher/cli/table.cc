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
                                {"--seconds", "", true},  {"--verify", "", false}};
constexpr Flag kImportFlags[] = {{"--name", "", true}};
constexpr Flag kKillFlags[] = {{"--reason", "", true}};
constexpr Flag kReadFlags[] = {
    {"--event", "-e", true}, {"--since", "-s", true}, {"--full", "", false}, {"--lines", "-n", true}, {"--follow", "-f", false}};
constexpr Flag kStatsFlags[] = {{"--since", "-s", true}};
constexpr Flag kExportFlags[] = {{"--format", "-f", true}, {"--since", "-s", true}, {"--session", "", true}};

constexpr Command kCommands[] = {
    {"run", "run one command in a session of its own, without a server",
     R"(caisson [--json] run [--policy DOMAIN] [--grant PATH[:MODE]]... -- COMMAND [ARGUMENTS]

Builds one session after the policy (default: run), runs the command in it and removes it. Needs no running launcher.
Standard input, output and error are the command's own; where stdin and stdout are terminals it gets one of its own.
For root the checked policy is kept in CAISSON_CACHE_DIR (default: /var/cache/caisson), where nobody else could write, and used
only while no file of it has changed. For others it is made anew each time: their sessions could write what they can.

  --policy, -p DOMAIN   the policy file to use
  --grant, -g PATH:MODE ro, rw, rx or rwx; adds to the policy's grants, or replaces the one of that path (repeatable)
  --cwd, -C DIR         working directory inside (default: the policy's home)
  --env, -e NAME=VALUE  a variable for the command, unless the policy denies it (repeatable)
  --report FILE         writes the confinement report: every wall, how it was verified, what is missing

  caisson run -- bash -c 'id; ls /'
  caisson run --grant /srv/project:rw --cwd /srv/project -- python3 -m pytest

Exit codes: the command's own, or 128 + its signal; 125 when the session could not be built or the command not started.
)",
     Syntax(kNoFlags, 0, 0, run_main), nullptr},
    {"probe", "what this kernel and container permit: the tier, and what would raise it",
     R"(caisson probe [--json]

Tries each mechanism of confinement in short-lived children and says which tier results, why not a higher one, and
which flag of the container runtime would raise it. Changes nothing. Who is not root is told of a launcher that is not, and
beside it the tier of `caisson run`, which has no sessions of others to keep off.

  caisson probe
  caisson probe --json | jq .tier

Exit codes: 0 whatever the tier is.
)",
     Syntax(), probe_main},
    {"policy check", "find every problem of the policy files at once",
     R"(caisson policy check [DIR]

Reads DIR (default: --policies) as the launcher does: base.json, one file a domain, seccomp/; then every file of presets/ over
every domain, and the expectations in tests/. Prints the digest of each domain or all problems, each as "file:line /pointer:
what is wrong; meant ...". The launcher refuses what this refuses.

  caisson policy check
  caisson policy check ./policies --json | jq '.problems[] | .file, .line'

Exit codes: 0 all well, 21 problems.
)",
     Syntax(kNoFlags, 0, 1), policy_check},
    {"policy explain", "what a domain's sessions read, write, run, reach and use",
     R"(caisson policy explain [--preset NAME] DOMAIN
       caisson policy explain --diff A B

What a session of the domain reads, writes, runs, reaches and uses, what is recorded of it, each with its reason, with
everything merged that the file extends; and a posture score of 100, with every point that is taken off and the field that
costs it (policies/README.md has the whole list). --diff says in the same terms how two differ:

  DOMAIN            of --policies, under --preset
  DOMAIN@PRESET     under that preset; DOMAIN@ under none
  DIR/DOMAIN        of another directory, also with @PRESET
  DIR               all domains of a directory

  caisson policy explain bash
  caisson policy explain --preset finance bash --json | jq .score
  caisson policy explain --diff bash bash@finance
  caisson policy explain --diff /etc/caisson/policies ./policies

Exit codes: 0; 3 no such domain; 21 the policies have problems.
)",
     Syntax(kExplainFlags, 1, 2), policy_explain},
    {"policy learn", "the smallest policy under which a command still runs",
     R"(caisson policy learn [--policy DOMAIN] [--cwd DIR] [--env NAME=VALUE]... [--grant PATH:MODE]... [--verify]
                     [--output FILE] -- COMMAND [ARGUMENTS]
       caisson policy learn --session SESSION [--seconds N] [--output FILE]

Root only. The first form runs the command for real, once, in a session of the domain (default: run) that sees every path which
owner and mode let its user use, and follows it with ptrace. The second form follows a living session of the launcher, until
the seconds are over or SIGINT comes, and takes up what it was refused. Both print a policy file that extends the domain: the
paths that were used and are not granted yet (files of one directory together, never /, /etc or a home as a whole), lower
limits, no network where none was used; and, on standard error, the difference and what could not be seen. Read it before
you use it: it grants what the command did, not what it should do.

  --policy, -p DOMAIN   what is extended
  --cwd, --env, --grant as in caisson run
  --verify              runs the command once more, under the learnt policy, and says what it lost
  --output, -o FILE     writes the policy there instead of to standard output; FILE must not exist
  --seconds N           how long to look at a session

  caisson policy learn --cwd /srv/project -o ./policies/project.json -- make
  caisson policy learn --session s-0123456789abcdef --seconds 60 --json | jq .policy.grants

Exit codes: 0; 3 no such policy or session; 4 not root; 22 with --verify: the learnt policy is not enough.
)",
     Syntax(kLearnFlags, 0, 4096), policy_learn},
    {"policy test", "try a policy's expectations in a real session",
     R"(caisson policy test [DOMAIN|FILE]...

Without arguments: every file of tests/ beside the policies. Each names a domain, perhaps a preset, and what its sessions can
and cannot do:

  {"domain": "bash", "expect": [
    {"can": "read", "path": "/etc/passwd"},          {"cannot": "read", "path": "/etc/shadow"},
    {"can": "write", "path": "/home/gem/x"},         {"cannot": "see", "path": "/root"},
    {"can": "run", "argv": ["python3", "-c", "1"]},  {"cannot": "connect", "to": "1.1.1.1:53"},
    {"can": "listen", "at": "127.0.0.1:0"},          {"cannot": "call", "syscall": "mount", "errno": "EPERM"},
    {"cannot": "exceed", "limit": "open_files"}]}

A session is built as `caisson run` builds it, with home and /tmp of its own, and each expectation is tried in it by a process
of its own, without any shell. "cannot" holds when the walls refuse, and not when something else fails: a connection that is not
answered was sent. Root, or a user who may make namespaces.

  caisson policy test
  caisson policy test bash ./more.json --json | jq '.results[] | select(.state != "ok")'

Exit codes: 0 all hold; 3 no such expectations; 6 some could not be tried; 21 the files have problems; 22 one does not hold.
)",
     Syntax(kNoFlags, 0, 100), policy_test},
    {"policy import", "a policy from a seccomp profile or sandbox-runtime settings",
     R"(caisson policy import seccomp [--name NAME] FILE
       caisson policy import srt FILE

seccomp: a profile of Docker, Podman or the OCI becomes a set, to be saved as seccomp/NAME.json and named in a policy's
/syscalls/allow. srt: settings of Anthropic's sandbox-runtime become a domain's file. Standard output is the file, and passes
`caisson policy check` in its place; standard error says what has no counterpart and was left out, or is stricter here. With
--json one document with both. What cannot be said exactly is refused, never allowed.

      --name NAME   the set's name (imported)

  caisson policy import seccomp --name team ./profile.json > policies/seccomp/team.json
  caisson policy import srt ~/.srt-settings.json > policies/agent.json

Exit codes: 0; 2 the file is no such profile; 21 the policies it is made for have problems.
)",
     Syntax(kImportFlags, 2, 2), policy_import},
    {"session ls", "sessions of the running launcher",
     R"(caisson session ls

Root only, in the launcher's container.

  caisson session ls
  caisson session ls --json | jq -r '.sessions[] | select(.domain == "bash") | .session'

Exit codes: 0; 4 not root; 6 no launcher answers.
)",
     Syntax(), session_ls},
    {"session kill", "end sessions and everything in them",
     R"(caisson session kill [--reason TEXT] SESSION...

Returns when no process, mount or control group of the sessions is left. The reason goes into the audit log.

  caisson session kill s-0123456789abcdef
  caisson session ls --json | jq -r '.sessions[].session' | xargs caisson session kill --reason maintenance

Exit codes: 0; 3 no such session (those named before it are ended); 4 not root; 6 no launcher answers.
)",
     Syntax(kKillFlags, 1, 1000), session_kill},
    {"agent restart", "replace the API agent by the program on disk",
     R"(caisson agent restart

The agent ends at once and another one takes up what it served: sessions, shells, running commands and their output. Clients
see a closed connection and go on by id. Kernels, code and nodejs sessions end.

  caisson agent restart

Exit codes: 0; 4 not root; 6 no launcher answers.
)",
     Syntax(), agent_restart},
    {"session report", "what confines one running session, wall by wall",
     R"(caisson session report SESSION

Each mechanism as enforced, unavailable (with the reason) or disabled by policy, with what was verified and how long it
took; what the session sees; what is missing.

  caisson session report s-0123456789abcdef
  caisson session report s-0123456789abcdef --json | jq '.mechanisms[] | select(.state != "enforced")'

Exit codes: 0; 3 no such session; 4 not root; 6 no launcher answers.
)",
     Syntax(kNoFlags, 1, 1), session_report},
    {"audit show", "records of one log, a line each",
     R"(caisson audit show [--event EVENT]... [--since TIME] [--full] [SESSION|FILE]

Without a session: the launcher's own log. What sessions chose (arguments, labels, paths) is printed escaped, so a log is
safe to look at. With --json one array of records.

  -e, --event EVENT   only these events (repeatable): exec_request, exec_exit, session_start, limit_hit, ...
  -s, --since TIME    only records since: an age (90s, 15m, 2h, 7d) or a UTC time (2026-01-02, 2026-01-02T03:04)
      --full          long values whole

  caisson audit show s-0123456789abcdef
  caisson audit show -e exec_request -e exec_exit --since 1h s-0123456789abcdef
  caisson audit show ./copy-of-a-log.ndjson --json | jq '.[].argv'

Exit codes: 0; 3 no such log; 4 not root; 20 lines are no records.
)",
     Syntax(std::span(kReadFlags).first(3), 0, 1), audit_show},
    {"audit tail", "the last records of a log, and those to come",
     R"(caisson audit tail [-n LINES] [-f] [--event EVENT]... [--since TIME] [--full] [SESSION|FILE]

Without a session: the launcher's own log. With -f it goes on until the session ends or SIGINT comes. With --json one
record a line (NDJSON).

  -n, --lines LINES   how many to begin with (10)
  -f, --follow        print what is appended
  -e, -s, --full      as in audit show

  caisson audit tail -f
  caisson audit tail -f -n 0 -e exec_request --json s-0123456789abcdef | jq -c .argv

Exit codes: 0, also after SIGINT; 3 no such log; 4 not root; 20 lines are no records.
)",
     Syntax(kReadFlags, 0, 1), audit_tail},
    {"audit verify", "prove that logs are as they were written",
     R"(caisson audit verify [--complete] [--key KEY] [SESSION|FILE]...

Without a session: all logs, and that none is missing. Segments of one log are checked as one; a segment that was removed for
room, records that went to the launcher's standard error and logs that were deleted for their age are accepted where a record
in the chain says so, and counted. Finds every byte and record that was changed, removed, added or
moved, with line and offset. A session's end is checked against count and head in the launcher's own log, if that lies
in the same directory: this finds records cut off the end, too, and a log rewritten as a whole.

  intact        the chain is whole up to the session's end
  open or cut   whole so far, but no end: the session still runs, or the launcher was killed, or the end was cut off
                and the launcher's log is not there to tell
  BROKEN        with the places

      --complete   "open or cut" counts as broken
  -k, --key KEY    also that the launcher signed each ended session's count and head: its public key as JWK in a file, or
                   the x of it (caisson attest, GET /v1/attestation); a root without a signature fails then

  caisson audit verify
  caisson audit verify --complete s-0123456789abcdef
  caisson audit verify --json | jq '.logs[] | select(.verdict == "broken")'

Exit codes: 0; 3 no such log; 4 not root; 20 a log is broken or missing.
)",
     Syntax(kVerifyFlags, 0, 1000), audit_verify},
    {"audit ls", "the logs there are",
     R"(caisson audit ls

Name, begin, number of records, size and, for sessions, why they ended. Verifies nothing.

  caisson audit ls
  caisson audit ls --json | jq '.logs[] | select(.end == null) | .log'

Exit codes: 0; 3 no such directory; 4 not root.
)",
     Syntax(), audit_ls},
    {"audit stats", "what logs add up to",
     R"(caisson audit stats [--since TIME] [SESSION|FILE]...

Of each log and of all: records by event, refused calls by name, commands, exit codes and signals, limits hit, why sessions
ended, bytes, and how many records were removed for room or went to the launcher's standard error. Verifies nothing.

  -s, --since TIME   only records since: as in audit show

  caisson audit stats --since 1d
  caisson audit stats --json | jq .total.denials

Exit codes: 0; 3 no such log; 4 not root; 20 lines are no records.
)",
     Syntax(kStatsFlags, 0, 1000), audit_stats},
    {"audit export", "records for a log collector or a SIEM, one a line",
     R"(caisson audit export [--format ocsf|ndjson] [--since TIME] [--session SESSION]...

All logs, or those of the sessions named, the launcher's own among them as "launcher". ndjson: the records, each with its log's
name. ocsf: events of the Open Cybersecurity Schema Framework 1.3; the mapping is in launcher/audit/README.md.

  -f, --format NAME  ocsf or ndjson (ndjson)
  -s, --since TIME   only records since: as in audit show
      --session ID   only this log (repeatable)

  caisson audit export --format ocsf --since 1h | collector
  caisson audit export --session launcher --format ocsf | jq 'select(.class_uid == 2004)'

Exit codes: 0; 3 no such log; 4 not root; 20 lines are no records.
)",
     Syntax(kExportFlags, 0, 0), audit_export},
    {"attest", "a signed statement of what is enforced, and its verification",
     R"help(caisson attest [--nonce TEXT] [--session SESSION] [--token]
       caisson attest --verify FILE --key KEY [--nonce TEXT] [--max-age SECONDS]

The first form asks the running launcher (root, in its container) for a statement of its boot or of one session, signed with
its Ed25519 key: tier, policies, every mechanism with how it was verified, and what is not stopped. The second form needs no
launcher: it checks a statement that somebody was given, and prints it only if the signature holds.

  -n, --nonce TEXT       8 to 88 characters, your own and used once: the statement repeats it, so it cannot be an old one
  -s, --session SESSION  of this session
      --token            print the signed token alone (JWS, EAT claims)
      --verify FILE      a token, or the JSON that the API answered; "-" is standard input
  -k, --key KEY          the launcher's public key: a file with its JWK, or its x. From the operator, not from the answer
      --max-age SECONDS  refuse an older one

  caisson attest --nonce "$(openssl rand -hex 16)"
  curl -H "X-AIO-API-Key: $K" "localhost:8080/v1/attestation?nonce=$N" | caisson attest --verify - --key key.jwk --nonce "$N"

Exit codes: 0; 3 no such session; 4 the signature, nonce or age does not hold, or not root; 6 no launcher answers; 9 no token.
)help",
     Syntax(kNoFlags, 0, 0, attest_main), nullptr},
    {"version", "version of the program and of the protocol",
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
