# shellcheck shell=bash
# The container engine of this host: which one, which flags it needs here to start anything at all, and the base image
# that the build starts from. Sourced by scripts/run and tests/container.

# shellcheck disable=SC2034  # ENGINE, ENGINE_KIND and RUN_FLAGS are read by the scripts that source this file
IMAGE=${CAISSON_IMAGE:-caisson}
BASE_IMAGE=debian:trixie-slim
ENGINE=()       # the command, e.g. (podman)
ENGINE_KIND=    # podman | docker
RUN_FLAGS=()    # what every `run` needs on this host

# podman first: as root it gives each container its own user ids, so that container root is not the host's root (tier T3).
# A docker command alone says nothing (it may have no daemon behind it): `docker info` must answer.
pick_engine() {
  local wanted=${1:-}
  if [ "$wanted" != docker ] && have podman; then ENGINE_KIND=podman
  elif [ "$wanted" != podman ] && have docker && timeout 15 docker info >/dev/null 2>&1; then ENGINE_KIND=docker
  elif [ "$wanted" = docker ]; then die "docker does not answer (docker info)"
  elif is_root; then
    say "no container engine here: installing podman from Debian"
    "$ROOT/scripts/setup" --run || die "podman could not be installed"
    ENGINE_KIND=podman
  else
    die "neither podman nor a running docker is here. As root: scripts/setup --run. Without a container: scripts/run --native"
  fi
  ENGINE=("$ENGINE_KIND")
  "${ENGINE[@]}" info >/dev/null 2>&1 || die "'${ENGINE[*]} info' fails: $("${ENGINE[@]}" info 2>&1 | tail -n 1)"
}

# Finds flags with which a trivial container of image $1 starts. Where crun or the default limits are refused (hybrid cgroup
# hosts, roots without CAP_SYS_RESOURCE) runc with limits below the host's own does it. Remembered per boot.
find_run_flags() {
  local image=$1 memory=$STATE/run-flags boot candidate nofile nproc out
  boot=$(cat /proc/sys/kernel/random/boot_id)
  RUN_FLAGS=()
  # Health checks need systemd's timers in podman; the launcher's own /readyz is asked by scripts/run anyway.
  local quiet=()
  if [ "$ENGINE_KIND" = podman ] && [ ! -d /run/systemd/system ]; then quiet=(--no-healthcheck); fi
  if [ "$(head -n 1 "$memory" 2>/dev/null)" = "$boot $ENGINE_KIND" ]; then
    mapfile -t RUN_FLAGS < <(tail -n +2 "$memory")
    return 0
  fi
  nofile=$(smaller "$(ulimit -Hn)" 65536)
  nproc=$(ulimit -Hu)
  [ "$nproc" = unlimited ] || nproc=$((nproc / 2))
  nproc=$(smaller "$nproc" 32768)
  local limits="--ulimit nofile=$nofile:$nofile --ulimit nproc=$nproc:$nproc"
  for candidate in "" "--runtime runc" "$limits" "--runtime runc $limits"; do
    case $candidate in *runc*) have runc || [ -x /usr/sbin/runc ] || continue ;; esac
    # --runtime is an option of podman itself, of `docker run` in docker.
    split_runtime "$candidate"
    # shellcheck disable=SC2086  # words on purpose
    if out=$("${ENGINE[@]}" ${RUNTIME_FLAG:+$RUNTIME_FLAG} run --rm --pull=never ${quiet[@]+"${quiet[@]}"} $REST_FLAGS --entrypoint /bin/true "$image" 2>&1); then
      # shellcheck disable=SC2206
      RUN_FLAGS=(${quiet[@]+"${quiet[@]}"} $candidate)
      mkdir -p "$STATE"
      { echo "$boot $ENGINE_KIND"; [ ${#RUN_FLAGS[@]} = 0 ] || printf '%s\n' "${RUN_FLAGS[@]}"; } >"$memory"
      return 0
    fi
  done
  die "$ENGINE_KIND cannot start a container here: $(printf '%s' "$out" | tail -n 1)"
}

# Sets RUNTIME_FLAG (podman's global option) and REST_FLAGS from one flag string.
split_runtime() {
  RUNTIME_FLAG='' REST_FLAGS=$1
  if [ "$ENGINE_KIND" = podman ]; then
    case $1 in
      *"--runtime runc"*)
        RUNTIME_FLAG="--runtime $(PATH=$PATH:/usr/sbin:/sbin command -v runc)"
        REST_FLAGS=${1/--runtime runc/} ;;
    esac
  fi
}

# engine_do run|create ARGUMENTS...: with what this host needs.
engine_do() {
  local verb=$1
  shift
  split_runtime "${RUN_FLAGS[*]-}"
  # shellcheck disable=SC2086  # words on purpose
  "${ENGINE[@]}" ${RUNTIME_FLAG:+$RUNTIME_FLAG} "$verb" $REST_FLAGS "$@"
}

smaller() {
  if [ "$1" = unlimited ] || [ "$1" -gt "$2" ]; then echo "$2"; else echo "$1"; fi
}

image_exists() { "${ENGINE[@]}" image inspect "$1" >/dev/null 2>&1; }

# The name of an image of Debian 13 to build from: one that is here, else pulled (tried once), else made from Debian's mirror.
base_image() {
  local name
  for name in "localhost/$BASE_IMAGE" "$BASE_IMAGE"; do
    if image_exists "$name"; then BASE=$name; return 0; fi
  done
  if [ ! -e "$STATE/cannot-pull" ]; then
    say "==> pull $BASE_IMAGE (tried once, for at most 60 s)"
    mkdir -p "$STATE/logs"
    if timeout 60 "${ENGINE[@]}" pull -q "$BASE_IMAGE" >"$STATE/logs/pull.log" 2>&1; then BASE=$BASE_IMAGE; return 0; fi
    say "    it cannot be pulled here: making it from Debian's mirror"
    touch "$STATE/cannot-pull"
  fi
  is_root || die "no base image: it cannot be pulled, and making one from Debian's mirror needs root"
  have mmdebstrap || "$ROOT/scripts/setup" --run || die "mmdebstrap could not be installed"
  step "make $BASE_IMAGE from Debian's mirror (mmdebstrap)" make_base
  BASE=localhost/$BASE_IMAGE
}

make_base() {
  local tar
  tar=$(mktemp --suffix=.tar)
  # shellcheck disable=SC2064  # the name as it is now
  trap "rm -f '$tar'" EXIT
  mmdebstrap --variant=minbase --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' trixie "$tar"
  "${ENGINE[@]}" import "$tar" "localhost/$BASE_IMAGE"
}
