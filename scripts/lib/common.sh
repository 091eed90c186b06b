# shellcheck shell=bash
# What every script shares: the repository's root, messages, steps that show how long they take, the host's Debian.
# Sourced, never run. Progress goes to stderr, results to stdout, so that --json output stays clean.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# What the scripts remember between runs: base image, working engine flags, logs. Safe to remove at any time.
# shellcheck disable=SC2034  # read by the scripts that source this file
STATE=$ROOT/build/scripts

say() { printf '%s\n' "$*" >&2; }
warn() { printf 'warning: %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
is_root() { [ "$(id -u)" = 0 ]; }

# step NAME COMMAND...: runs it with its output in a log; says the name, a sign of life every ten seconds, and the time
# it took. On failure the end of the log is shown and the status returned.
step() {
  local name=$1 log started=$SECONDS status=0 pid ticker
  shift
  mkdir -p "$STATE/logs"
  log=$STATE/logs/$(printf '%s' "$name" | tr -c 'a-zA-Z0-9\n' '-').log
  say "==> $name"
  "$@" >"$log" 2>&1 &
  pid=$!
  (
    trap 'kill "$nap" 2>/dev/null; exit 0' TERM
    while :; do
      sleep 10 & nap=$!
      wait "$nap"
      printf '    … %s: %s s · %s\n' "$name" $((SECONDS - started)) "$(progress_line "$log")" >&2
    done
  ) &
  ticker=$!
  wait "$pid" || status=$?
  kill "$ticker" 2>/dev/null || true
  wait "$ticker" 2>/dev/null || true
  if [ "$status" = 0 ]; then
    say "    done in $((SECONDS - started)) s"
  else
    tail -n 40 "$log" >&2
    say "    FAILED after $((SECONDS - started)) s (status $status; whole log: $log)"
  fi
  return "$status"
}

# The last line of a log that says how far it is, rather than a compiler's remarks.
progress_line() {
  { tail -n 80 "$1" | tr -d '\r' | grep -avE '^[[:space:]]|warning:|note:|^In file|: In |^$' | tail -n 1 | cut -c1-90; } || true
}

# The Debian release number ("12", "13"), or nothing where this is no Debian.
debian_version() {
  # shellcheck source=/dev/null
  (. /etc/os-release 2>/dev/null && [ "${ID:-}" = debian ] && printf '%s' "${VERSION_ID:-}") || true
}

# The CMake preset for the compiler of this host: clang-19 where it is (Debian 12), else GCC 14 (Debian 13).
preset() {
  if have clang++-19; then echo release
  elif have g++-14; then echo gcc
  else die "neither clang++-19 nor g++-14 is installed: run scripts/setup --build"; fi
}

jobs_count() { nproc 2>/dev/null || echo 2; }

# build_tree PRESET TARGET...: configures when needed and builds; the folder is build/PRESET.
build_tree() {
  local name=$1
  shift
  (cd "$ROOT" && cmake --preset "$name" >/dev/null && cmake --build "build/$name" -j "$(jobs_count)" ${1:+--target "$@"})
}
