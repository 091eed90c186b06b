# shellcheck shell=bash
# `scripts/run --policies DIR`: brings policy files to a launcher that starts, or to one that runs. Sourced by scripts/run. They are
# copied as root's own, which nobody else writes: mounted they would have the owner that they have here, who in a container with
# its own user ids is nobody, and the launcher takes no policy from nobody.
# shellcheck disable=SC2153  # NAME, POLICIES: options of scripts/run

# In the container, beside the image's own, which stay: what is taken away from a set of policies shall not come back from the image.
OWN_POLICIES=/etc/caisson/own-policies
INCOMING=/etc/caisson/incoming

# Packs what the launcher reads of POLICIES into PACKED, as one folder own-policies.
pack_policies() {
  PACKED=$STATE/policies.tar
  mkdir -p "$STATE"
  (
    cd "$POLICIES"
    shopt -s nullglob
    set -- . ./*.json
    for folder in seccomp presets tests; do [ ! -d "$folder" ] || set -- "$@" "./$folder" "./$folder"/*.json; done
    tar --no-recursion --hard-dereference --owner=0 --group=0 --mode=u=rwX,go=rX --transform='flags=r;s,^\.,own-policies,' -cf "$PACKED" "$@"
  ) || die "--policies: '$POLICIES' cannot be read"
}

# put_policies CONTAINER FOLDER
put_policies() { "${ENGINE[@]}" cp -a=false - "$1:$2" <"$PACKED"; }

# Looks for every problem that can be found without a launcher, in a container that does nothing else.
check_policies() {
  local id status=0
  say "==> check the policies of $POLICIES"
  id=$(engine_do create --pull=never ${CAISSON_PRESET:+-e CAISSON_PRESET} --entrypoint caisson "$IMAGE" policy check "$OWN_POLICIES")
  { put_policies "$id" /etc/caisson && "${ENGINE[@]}" start -a "$id"; } >&2 || status=$?
  "${ENGINE[@]}" rm -f "$id" >/dev/null
  [ "$status" = 0 ] || die "nothing was started or changed"
}

# Gives them to the launcher that runs in the container. Sessions that run keep the policy that they began with.
replace_policies() {
  local inside=("${ENGINE[@]}" exec --user 0 "$NAME") hup=()
  say "==> give $NAME the policies of $POLICIES"
  [ "$("${inside[@]}" printenv CAISSON_POLICY_DIR)" = "$OWN_POLICIES" ] ||
    die "$NAME was started with the image's policies: --restart starts it with these, and ends its sessions"
  # shellcheck disable=SC2016  # the other shell's
  "${inside[@]}" sh -c 'rm -rf "$0" && mkdir "$0"' "$INCOMING"
  put_policies "$NAME" "$INCOMING"
  hup=("${ENGINE[@]}" kill -s HUP "$NAME")
  take_policies "$INCOMING" "$OWN_POLICIES" container_logs
}

# take_policies INCOMING DIR LOGS: INCOMING/own-policies in the place of DIR, and the launcher told; what it refuses goes back. The
# caller's arrays: `inside` before commands beside the files, `hup` tells the launcher. LOGS prints what it says to that.
take_policies() {
  exchange_policies "$1" "$2" "${inside[@]}"
  read_policies_again "$3" "${hup[@]}" || { exchange_policies "$1" "$2" "${inside[@]}"; die "the old policies stay"; }
}

# exchange_policies INCOMING DIR COMMAND...: INCOMING/own-policies and DIR change places.
exchange_policies() {
  local incoming=$1 dir=$2
  shift 2
  # shellcheck disable=SC2016
  "$@" sh -c 'if [ -e "$1" ]; then mv "$1" "$0/before"; fi; mv "$0/own-policies" "$1"; if [ -e "$0/before" ]; then mv "$0/before" "$0/own-policies"; fi' \
    "$incoming" "$dir"
}

# read_policies_again LOGS COMMAND...: the command asks the launcher to; LOGS prints what it says to that. False when it refuses.
read_policies_again() {
  local logs=$1 before said
  shift
  before=$("$logs" | wc -l)
  "$@" >/dev/null
  for _ in $(seq 300); do
    sleep 0.1
    said=$("$logs" | tail -n "+$((before + 1))")
    case $said in
      *"caisson-launcher: policies reloaded"*) printf '%s\n' "$said" >&2; return 0 ;;
      *"caisson-launcher: the policies have problems"*) printf '%s\n' "$said" >&2; return 1 ;;
    esac
  done
  die "the launcher has not answered: its log says what is in force (scripts/run --logs)"
}
