# shellcheck shell=bash
# The flags of the outer container per tier. The launcher never believes flags: it probes what it was given, and
# `caisson probe` says the tier that it really has. Sourced by scripts/run and tests/container.
# shellcheck disable=SC2034  # TIER_FLAGS and TIER_WHY are read by the scripts that source this file

# What the launcher needs of capabilities: to give sessions other ids than its own, and to end them.
CAPABILITIES=(--cap-drop=ALL --cap-add=SETUID --cap-add=SETGID --cap-add=KILL)

# tier_flags TIER: sets TIER_FLAGS, or returns 1 with the reason in TIER_WHY when this host cannot have it.
tier_flags() {
  TIER_FLAGS=() TIER_WHY=''
  case $1 in
    T3) shipped_flags || return 1
        if [ "$ENGINE_KIND" = docker ]; then
          docker info -f '{{.SecurityOptions}}' 2>/dev/null | grep -q name=userns ||
            { TIER_WHY="docker runs without userns-remap"; return 1; }
          TIER_FLAGS+=(--security-opt systempaths=unconfined)
        else
          # unmask=ALL is safe only where container root is not the host's root: as root with its own id range,
          # rootless always.
          if is_root; then ensure_id_range || return 1; TIER_FLAGS+=(--userns=auto:size=70000); fi
          TIER_FLAGS+=(--security-opt unmask=ALL)
        fi ;;
    T2) shipped_flags || return 1 ;;
    T1) TIER_FLAGS=(--user 1000:1000 --cap-drop=ALL --security-opt no-new-privileges) ;;
    T0) ;;
    *) die "no tier '$1' (T0, T1, T2, T3)" ;;
  esac
}

# The profile and capabilities that T2 and T3 share.
shipped_flags() {
  TIER_FLAGS=("${CAPABILITIES[@]}" --security-opt "seccomp=$ROOT/image/seccomp.json")
  [ "$(cat /sys/module/apparmor/parameters/enabled 2>/dev/null)" = Y ] || return 0
  if [ "$ENGINE_KIND" = podman ] && ! is_root; then return 0; fi   # rootless podman applies no AppArmor profile
  if apparmor_loaded; then TIER_FLAGS+=(--security-opt apparmor=caisson); return 0; fi
  if is_root && have apparmor_parser && apparmor_parser -r "$ROOT/image/apparmor.profile" 2>/dev/null; then
    say "loaded the AppArmor profile 'caisson' (image/apparmor.profile)"
    TIER_FLAGS+=(--security-opt apparmor=caisson)
    return 0
  fi
  TIER_WHY="this host has AppArmor and its profile 'caisson' is not loaded: as root, apparmor_parser -r image/apparmor.profile"
  return 1
}

apparmor_loaded() { grep -qs '^caisson ' /sys/kernel/security/apparmor/profiles; }

# podman --userns=auto takes ids from the lines of the user `containers` in /etc/subuid and /etc/subgid.
ensure_id_range() {
  local file start
  if grep -qs '^containers:' /etc/subuid && grep -qs '^containers:' /etc/subgid; then return 0; fi
  start=$(cat /etc/subuid /etc/subgid 2>/dev/null | awk -F: 'BEGIN {m = 1000000000} $2 + $3 > m {m = $2 + $3} END {print m}')
  if [ "$start" -gt 4000000000 ]; then TIER_WHY="no free id range for containers in /etc/subuid"; return 1; fi
  for file in /etc/subuid /etc/subgid; do
    grep -qs '^containers:' "$file" || echo "containers:$start:10000000" >>"$file" ||
      { TIER_WHY="$file cannot be written"; return 1; }
  done
  say "added 'containers:$start:10000000' to /etc/subuid and /etc/subgid (ids for podman's --userns=auto)"
}
