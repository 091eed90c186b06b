# shellcheck shell=bash
# Starting, watching and stopping a served Caisson in a container, and what is said about it at the end.
# Sourced by scripts/run. Options arrive as variables: NAME PORT BIND TIER PLAIN HOME_VOLUME POLICIES JSON
# RESTART WAIT_S EXTRA_FLAGS.
# shellcheck disable=SC2153

container_state() { "${ENGINE[@]}" container inspect -f '{{.State.Status}}' "$NAME" 2>/dev/null || true; }
container_image() { "${ENGINE[@]}" container inspect -f '{{.Image}}' "$NAME" 2>/dev/null || true; }
image_id() { "${ENGINE[@]}" image inspect -f '{{.Id}}' "$IMAGE" 2>/dev/null || true; }
container_logs() { "${ENGINE[@]}" logs "$NAME" 2>&1; }
remove_container() { "${ENGINE[@]}" rm -f "$NAME" >/dev/null 2>&1 || true; }

# The settings that pass from the caller's environment into the container, when set.
PASSED=(SANDBOX_API_KEY CAISSON_AUTH CAISSON_PRESET WORKSPACE TZ MAX_SHELL_SESSIONS MAX_JUPYTER_SESSIONS CAISSON_KERNEL_POOL PYTHON_VERSION)

# start_container: tries the tiers from the highest; an engine that refuses a tier's flags is said, then the next.
start_container() {
  local tiers=(T3 T2 T0) tier out flags=() name
  [ -z "$TIER" ] || tiers=("$TIER")
  [ -z "$PLAIN" ] || tiers=(T0)
  flags=(--name "$NAME" --pull=never -p "$BIND:$PORT:8080")
  for name in "${PASSED[@]}"; do [ -z "${!name+set}" ] || flags+=(-e "$name"); done
  [ -z "$HOME_VOLUME" ] || flags+=(-v "$HOME_VOLUME:/home/gem")
  for tier in "${tiers[@]}"; do
    # A directory of this host keeps its owner, who does not exist among a container's own ids; a named volume does.
    if [ "$tier" = T3 ] && [ "${HOME_VOLUME#/}" != "$HOME_VOLUME" ]; then say "    T3: not with a directory as home"; continue; fi
    if ! tier_flags "$tier"; then say "    $tier: not here: $TIER_WHY"; continue; fi
    say "==> start container $NAME ($tier: ${TIER_FLAGS[*]:-no security flag})"
    remove_container
    if out=$(launch "${flags[@]}" ${TIER_FLAGS[@]+"${TIER_FLAGS[@]}"} ${EXTRA_FLAGS[@]+"${EXTRA_FLAGS[@]}"} "$IMAGE" 2>&1); then
      return 0
    fi
    say "    $tier: refused by $ENGINE_KIND: $(printf '%s' "$out" | grep -v '^time=' | tail -n 1)"
    remove_container
    case $out in *"address already in use"* | *"port is already allocated"*) die "port $PORT is in use: --port N picks another" ;; esac
  done
  die "the container could not be started"
}

# Beside the image's own, which stay: what is taken away from a set of policies shall not come back from the image.
OWN_POLICIES=/etc/caisson/own-policies

# launch ENGINE FLAGS... IMAGE: starts it, with the files of POLICIES, if any.
launch() {
  if [ -z "$POLICIES" ]; then engine_do run -d "$@"; return; fi
  engine_do create -e "CAISSON_POLICY_DIR=$OWN_POLICIES" "$@" && put_policies "$OWN_POLICIES" && "${ENGINE[@]}" start "$NAME"
}

# Copied, as root's own that nobody else writes: mounted they would have the owner that they have here, who in a container with
# its own user ids is nobody, and the launcher takes no policy from nobody.
put_policies() {
  tar -C "$POLICIES" --owner=0 --group=0 --mode=u=rwX,go=rX --transform="flags=r;s,^\.,${1##*/}," -cf - . |
    "${ENGINE[@]}" cp -a=false - "$NAME:${1%/*}"
}

# Gives POLICIES to the launcher that runs: checked, swapped, read. Sessions that run keep the policy that they began with.
replace_policies() {
  local inside=("${ENGINE[@]}" exec --user 0 "$NAME")
  say "==> give $NAME the policies of $POLICIES"
  [ "$("${inside[@]}" printenv CAISSON_POLICY_DIR)" = "$OWN_POLICIES" ] ||
    die "$NAME was started with the image's policies: --restart starts it with these, and ends its sessions"
  "${inside[@]}" rm -rf "$OWN_POLICIES.new"
  put_policies "$OWN_POLICIES.new"
  swap_policies "$OWN_POLICIES" "${inside[@]}"
  read_policies_again container_logs "${ENGINE[@]}" kill -s HUP "$NAME"
}

# swap_policies DIR COMMAND...: puts DIR.new in the place of DIR where nothing is wrong with it.
swap_policies() {
  local dir=$1
  shift
  "$@" caisson policy check "$dir.new" >&2 || die "the old policies stay"
  # shellcheck disable=SC2016  # the other shell's
  "$@" sh -c 'rm -rf "$0.old" && mv "$0" "$0.old" && mv "$0.new" "$0"' "$dir"
}

# read_policies_again LOGS COMMAND...: the command asks the launcher to; LOGS prints what it says to that.
read_policies_again() {
  local logs=$1 answer='policies reloaded|the policies have problems' asked
  shift
  asked=$("$logs" | grep -cE "$answer") || true
  "$@" >/dev/null
  for _ in $(seq 100); do
    [ "$("$logs" | grep -cE "$answer")" = "$asked" ] || break
    sleep 0.1
  done
  if [ "$("$logs" | grep -cE "$answer")" -gt "$asked" ] && "$logs" | grep -E "$answer" | tail -n 1 | grep -q reloaded; then
    say "    they are in force"
  else
    "$logs" | tail -n 30 >&2
    die "the old policies stay in force; those of $POLICIES would be read at the next start"
  fi
}

# wait_ready URL ALIVE_COMMAND...: until GET URL/readyz answers 200, the process is gone, or WAIT_S seconds passed.
wait_ready() {
  local url=$1 started=$SECONDS
  shift
  say "==> wait for $url/readyz"
  while ! curl -fsS -o /dev/null --max-time 2 "$url/readyz" 2>/dev/null; do
    "$@" || { say "    it ended:"; return 1; }
    if [ $((SECONDS - started)) -ge "$WAIT_S" ]; then say "    not ready after $WAIT_S s:"; return 1; fi
    sleep 0.2
  done
  say "    ready after $((SECONDS - started)) s"
}

container_alive() { [ "$(container_state)" = running ]; }

# The key is in the curl line that the launcher prints once when it generated it; a given key is never printed by it.
key_from_log() {
  if [ -n "${SANDBOX_API_KEY:-}" ]; then printf '%s' "$SANDBOX_API_KEY"; return 0; fi
  grep -oE 'X-AIO-API-Key: [A-Za-z0-9_.~+/=-]+' | tail -n 1 | cut -d' ' -f2 || true
}

# The tier as the launcher itself measured it, from `caisson probe --json` run by the given command prefix.
probed_tier() { "$@" probe --json 2>/dev/null | grep -oE '"tier" *: *"T[0-9]"' | head -n 1 | grep -oE 'T[0-9]' || true; }

# report URL KEY TIER STOP: the last words, for people or (--json) for programs.
report() {
  local url=$1 key=$2 tier=$3 stop=$4 header=''
  if [ -n "$JSON" ]; then
    printf '{"url":"%s","api_key":%s,"tier":"%s","stop":"%s"}\n' "$url" "${key:+\"}${key:-null}${key:+\"}" "$tier" "$stop"
    return 0
  fi
  [ -z "$key" ] || header="-H \"X-AIO-API-Key: $key\" "
  cat <<TEXT

Caisson serves at $url
API key   ${key:-none (CAISSON_AUTH=none: anyone who reaches the port may run commands)}
Tier      ${tier:-unknown} (caisson probe; scripts/run --probe says what would raise it)
Try       curl -s ${header}-H 'Content-Type: application/json' $url/v1/bash/exec -d '{"command":"id; pwd; ls /"}'
Stop      $stop
TEXT
}
