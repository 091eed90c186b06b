# shellcheck shell=bash
# `scripts/run --native`: the launcher directly on this host, as root. Everything it owns lies in two folders:
# NATIVE_DIR (binaries, policies, home, audit) and NATIVE_RUN (control socket, pid). Sourced by scripts/run.

NATIVE_DIR=/var/lib/caisson-native
NATIVE_RUN=/run/caisson-native

native_main() {
  local action=$1 url=$2
  case $action in
    build-only) native_build; return 0 ;;
    stop) is_root || die "--native needs root"; native_stop; say "stopped"; return 0 ;;
    logs) native_logs; return 0 ;;
    probe) "$NATIVE_DIR/bin/caisson" probe; return 0 ;;
  esac
  is_root || die "--native starts the launcher as root (it gives sessions their own ids and namespaces): run it with sudo"
  have curl || "$ROOT/scripts/setup" --run
  native_build
  native_bring_policies
  if native_alive; then
    if [ -z "$RESTART" ] && native_current; then
      say "==> already running (--restart replaces it)"
      [ -z "$POLICIES" ] || native_replace_policies
    else native_stop; native_start; fi
  else
    native_start
  fi
  wait_ready "$url" native_alive || { tail -n 30 "$NATIVE_DIR/launcher.log" >&2; die "Caisson did not become ready"; }
  report "$url" "$(native_logs | key_from_log)" "$(probed_tier "$NATIVE_DIR/bin/caisson")" "scripts/run --native --stop"
}

native_build() {
  case $(debian_version) in 12 | 13) "$ROOT/scripts/setup" --build ;; esac
  step "build with preset $(preset)" build_tree "$(preset)" launcher-programs caisson-agent session-tools
  page_driver "$ROOT/build/$(preset)/launcher/tools/driver" || say "    /v1/browser/page is not available without it"
  markitdown "$ROOT/build/$(preset)/launcher/tools/markitdown" || say "    /v1/util is not available without it"
}

# Whether what runs is what was just built.
native_current() {
  cmp -s "$ROOT/build/$(preset)/launcher/caisson-launcher" "$NATIVE_DIR/bin/caisson-launcher" &&
    cmp -s "$ROOT/build/$(preset)/agent/caisson-agent" "$NATIVE_DIR/bin/caisson-agent"
}

# Installed copies, not the build tree: the agent's uid must be able to reach its own binary, and /run is often noexec.
native_install() {
  local built
  built=$ROOT/build/$(preset)
  install -d -m 0755 "$NATIVE_DIR" "$NATIVE_DIR/bin"
  install -d -m 0700 "$NATIVE_DIR/audit" "$NATIVE_RUN"
  install -d -m 0755 -o 1000 -g 1000 "$NATIVE_DIR/home"
  install -m 0755 "$built"/launcher/caisson{,-*} "$built"/agent/caisson-{agent,courier} "$NATIVE_DIR/bin/"
  rm -rf "$NATIVE_DIR/bin/tools"
  cp -r "$built/launcher/tools" "$NATIVE_DIR/bin/"
  chmod -R a+rX,go-w "$NATIVE_DIR/bin/tools"
  exchange_policies "$NATIVE_DIR/incoming" "$NATIVE_DIR/policies" env
}

# What --policies names, or this tree's: checked before anything is stopped, exchanged when the launcher starts or is told.
native_bring_policies() {
  local POLICIES=${POLICIES:-$ROOT/policies}
  pack_policies
  rm -rf "$NATIVE_DIR/incoming"
  install -d -m 0755 "$NATIVE_DIR" "$NATIVE_DIR/incoming"
  tar -C "$NATIVE_DIR/incoming" -xf "$PACKED"
  "$ROOT/build/$(preset)/launcher/caisson" policy check "$NATIVE_DIR/incoming/own-policies" >&2 || die "nothing was started or changed"
}

native_replace_policies() {
  say "==> give the launcher the policies of $POLICIES"
  # shellcheck disable=SC2034  # take_policies reads them
  local inside=(env) hup=(kill -HUP "$(native_pid)")
  take_policies "$NATIVE_DIR/incoming" "$NATIVE_DIR/policies" native_logs
}

native_logs() { cat "$NATIVE_DIR/launcher.log"; }

native_start() {
  local name without=()
  native_install
  # The key stands in it: a new file that is root's alone from its first moment, whatever our umask and the one before it were.
  install -m 0600 /dev/null "$NATIVE_DIR/launcher.log"
  # No values on a command line: every user of this host could read a given key there.
  for name in $(compgen -e); do
    case " PATH HOME ${PASSED[*]} " in *" $name "*) ;; *) without+=(-u "$name") ;; esac
  done
  say "==> start the launcher on this host ($NATIVE_DIR)"
  # Its own POSIX session and no descriptor of ours: it outlives this script.
  HOME=/root env ${without[@]+"${without[@]}"} \
    setsid "$NATIVE_DIR/bin/caisson-launcher" --policies "$NATIVE_DIR/policies" --audit "$NATIVE_DIR/audit" \
    --run "$NATIVE_RUN" --home "$NATIVE_DIR/home" --bind "$BIND" --port "$PORT" </dev/null >"$NATIVE_DIR/launcher.log" 2>&1 &
  echo $! >"$NATIVE_RUN/pid"
}

native_pid() {
  local pid
  pid=$(cat "$NATIVE_RUN/pid" 2>/dev/null) || return 1
  case $(readlink "/proc/$pid/exe" 2>/dev/null) in "$NATIVE_DIR/bin/caisson-launcher"*) echo "$pid" ;; *) return 1 ;; esac
}

native_alive() { native_pid >/dev/null; }

native_stop() {
  local pid waited=0
  pid=$(native_pid) || return 0
  kill -TERM "$pid"
  while native_alive && [ $waited -lt 50 ]; do sleep 0.2; waited=$((waited + 1)); done
  if native_alive; then kill -KILL "$pid"; fi
  rm -f "$NATIVE_RUN/pid"
}
