# shellcheck shell=bash
# Starting, watching and stopping a served Caisson in a container, and what is said about it at the end.
# Sourced by scripts/run after policies.sh. Options arrive as variables: NAME PORT BIND TIER PLAIN HOME_VOLUME POLICIES JSON
# RESTART WAIT_S EXTRA_FLAGS.
# shellcheck disable=SC2153

container_state() { "${ENGINE[@]}" container inspect -f '{{.State.Status}}' "$NAME" 2>/dev/null || true; }
container_image() { "${ENGINE[@]}" container inspect -f '{{.Image}}' "$NAME" 2>/dev/null || true; }
image_id() { "${ENGINE[@]}" image inspect -f '{{.Id}}' "$IMAGE" 2>/dev/null || true; }
container_scheme() {
  case $("${ENGINE[@]}" container inspect -f '{{.Config.Env}}' "$NAME" 2>/dev/null) in *CAISSON_TLS_KEY=/*) echo https ;; *) echo http ;; esac
}
container_logs() { "${ENGINE[@]}" logs "$NAME" 2>&1; }

# podman may still be cleaning up a container that has just ended, and refuses to remove it (EBUSY): try again.
remove_container() {
  local said end=$((SECONDS + 10))
  while ! said=$("${ENGINE[@]}" rm -f "$NAME" 2>&1); do
    case $said in *[Nn]"o such container"*) return 0 ;; esac
    [ $SECONDS -lt $end ] || die "container $NAME cannot be removed: $said"
    sleep 0.2
  done
}

# The settings that pass from the caller's environment into the container, when set: some of the launcher's, the agent's (but USER,
# which names the caller, and keys that the caller may have for other programs: -- -e OPENAI_API_KEY passes one on), and the courier's
# (but those of this host's certificates and names).
AGENT_VARIABLES=$(sed -n 's/^ *"\([A-Z_ ]*\)";\{0,1\}$/\1/p' "$(dirname "${BASH_SOURCE[0]}")/../../launcher/common/ipc/agent_settings.h" |
  sed -E 's/\<(USER|ARK_API_KEY|OPENAI_API_KEY|SSL_CERT_FILE|SSL_CERT_DIR|RES_OPTIONS)\>//g')
# shellcheck disable=SC2206  # words on purpose
PASSED=(SANDBOX_API_KEY CAISSON_AUTH CAISSON_PRESET CAISSON_MOUNTS WORKSPACE $AGENT_VARIABLES)

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

# launch ENGINE FLAGS... IMAGE: starts it, with the files of POLICIES, if any.
launch() {
  if [ -z "$POLICIES" ]; then engine_do run -d "$@"; return; fi
  engine_do create -e "CAISSON_POLICY_DIR=$OWN_POLICIES" "$@" && put_policies "$NAME" /etc/caisson && "${ENGINE[@]}" start "$NAME"
}

# wait_ready URL ALIVE_COMMAND...: until GET URL/readyz answers 200, the process is gone, or WAIT_S seconds passed. The certificate
# (-k) need not be for the address that this machine reaches it by: no secret is sent.
wait_ready() {
  local url=$1 started=$SECONDS
  shift
  say "==> wait for $url/readyz"
  while ! curl -fsSk -o /dev/null --max-time 2 "$url/readyz" 2>/dev/null; do
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
