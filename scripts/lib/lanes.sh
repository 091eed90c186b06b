# shellcheck shell=bash
# Legs side by side. Sourced by scripts/test after legs.sh.
#
# A part is a leg, or work that a leg needs: a process of its own (scripts/test --part NAME) in a session of its own, so that all of it
# can be ended by one number. Its output goes to a log, which is printed whole when the part ends. What fills no processor (most tests
# wait) runs beside what does.

# Parts of a lane run one after the other. In one lane is what shares a kernel object: session, hostile, escape and container give
# their sessions the same user ids, by which the kernel counts processes and pipes, and by which T0 ends them.
LANES=("session hostile escape container" "api browser" "image unit guest")
# These see no process and no mount of another's, and none of theirs outlives them.
BOXED=" session hostile escape api browser "
# For these nobody waits from the start.
LAST=" image unit "

# What the legs but `unit` run; its tests are built beside them.
# shellcheck disable=SC2034  # read by scripts/test
PROGRAMS=(launcher-programs caisson-agent session-tools escape faulty-programs websocket-echo)

# lanes_of LEG...: for each lane what of it is wanted, one a line.
lanes_of() {
  local lane part wanted=" $* " parts
  [[ $wanted != *" container "* ]] || wanted+="image "
  for lane in "${LANES[@]}"; do
    parts=
    for part in $lane; do [[ $wanted != *" $part "* ]] || parts+="$part "; done
    [ -z "$parts" ] || echo "$parts"
  done
}

# side_by_side LEG...: whether several lanes have work, and can be kept apart here.
side_by_side() {
  is_root && [ "$(lanes_of "$@" | wc -l)" -gt 1 ] && [ $# -gt 1 ] && unshare --pid --fork --kill-child --mount-proc true 2>/dev/null
}

# run_lanes LEG...: runs them and adds up what they counted.
run_lanes() {
  local lane leg counts
  LANES_RUNNING=() TICKER=''
  RUNNING=$RESULTS/running
  mkdir -p "$RUNNING" "$STATE/logs"
  trap 'stop_parts; exit 130' INT
  trap 'stop_parts; exit 143' TERM HUP
  while read -r lane; do
    # shellcheck disable=SC2086  # words on purpose
    run_lane $lane &
    LANES_RUNNING+=($!)
  done < <(lanes_of "$@")
  tell_progress &
  TICKER=$!
  wait "${LANES_RUNNING[@]}" || true
  kill "$TICKER"
  wait "$TICKER" 2>/dev/null || true
  trap - INT TERM HUP
  say "==> the legs"
  for leg; do
    read -r -a counts <"$RESULTS/$leg.counts" || counts=(0 1 0)
    tally "${counts[@]}"
    cat "$RUNNING/$leg.line" >&2 || say "    $leg: it did not run"
  done
}

run_lane() {
  local part
  trap - INT TERM HUP
  for part; do
    [ -e "$RUNNING/stop" ] || run_part "$part"
  done
}

run_part() {
  local part=$1 log=$STATE/logs/leg-$1.log started=$SECONDS status=0 counts argv=()
  [[ $LAST != *" $part "* ]] || argv+=(nice -n 10)
  [[ $BOXED != *" $part "* ]] || argv+=(unshare --pid --fork --kill-child --mount-proc)
  say "==> $part begins"
  # The interrupt is not ignored, because pytest needs it to clear away. The session's leader itself writes its number and only then asks
  # whether all is to end: stop_parts() says so before it reads the numbers, so that one of the two sees the other.
  # shellcheck disable=SC2016  # for the shell inside
  env --default-signal=INT setsid bash -c 'echo $$ >"$1"; [ ! -e "$2" ] || exit 143; shift 2; exec "$@"' _ \
    "$RUNNING/$part.session" "$RUNNING/stop" ${argv[@]+"${argv[@]}"} "$ROOT/scripts/test" --part "$part" ${EXTRA[@]+-- "${EXTRA[@]}"} >"$log" 2>&1 &
  wait $! || status=$?
  rm -f "$RUNNING/$part.session"
  if [[ " ${LEGS[*]} " = *" $part "* ]]; then
    [ -e "$RESULTS/$part.counts" ] || echo 0 1 0 >"$RESULTS/$part.counts"
    read -r -a counts <"$RESULTS/$part.counts"
    echo "    $part: ${counts[0]} passed, ${counts[1]} failed, ${counts[2]} skipped in $((SECONDS - started)) s" >"$RUNNING/$part.line"
  else
    echo "    $part: status $status after $((SECONDS - started)) s" >"$RUNNING/$part.line"
  fi
  (
    flock 9
    say "==> $part"
    cat "$log" "$RUNNING/$part.line" >&2
  ) 9>"$RUNNING/print"
}

# Every 30 seconds, how far each part is.
tell_progress() {
  local file part nap said share
  trap 'kill "$nap" 2>/dev/null; exit 0' TERM
  trap - INT HUP
  while :; do
    sleep 30 & nap=$!
    wait "$nap"
    said=
    for file in "$RUNNING"/*.session; do
      [ -e "$file" ] || continue
      part=$(basename "$file" .session)
      share=$(grep -aoE '\[ *[0-9]+%\]$' "$STATE/logs/leg-$part.log" | tail -n 1 | tr -d '[] ') || true  # as pytest says it
      said+=" · $part: ${share:-$(progress_line "$STATE/logs/leg-$part.log" | cut -c1-60)}"
    done
    # The share of the last minute in which something waited for a processor or for the disk tells a slow machine from a slow test.
    printf '    … %s s%s%s\n' "$SECONDS" "$said" "$(waited cpu)$(waited io)" >&2
  done
}

# waited RESOURCE: as the kernel measures it (PSI, Linux 4.20), where it does.
waited() { sed -n "s/^some .*avg60=\([0-9]*\).*/ · $1 waited for: \1%/p" "/proc/pressure/$1" 2>/dev/null || true; }

# What a script starts in the background ignores the interrupt: ends all that descends from the process.
end_children() {
  local child
  for child in $(pgrep -P "$1"); do
    end_children "$child"
    kill "$child" 2>/dev/null || true
  done
}

# Ends every part: pytest is interrupted and clears away what it started; what still runs after that is ended, then killed.
stop_parts() {
  local sessions
  trap '' INT TERM HUP
  touch "$RUNNING/stop"
  [ -z "$TICKER" ] || kill "$TICKER" 2>/dev/null || true
  sessions=$(cat "$RUNNING"/*.session 2>/dev/null | paste -sd,)
  [ -n "$sessions" ] || { wait; return 0; }
  say "==> ending what runs"
  pkill -INT -s "$sessions" || true
  for _ in $(seq 300); do pgrep -s "$sessions" -f -- '-m pytest' >/dev/null || break; sleep 0.1; done
  pkill -TERM -s "$sessions" || true
  for _ in $(seq 100); do pgrep -s "$sessions" >/dev/null || break; sleep 0.1; done
  pkill -KILL -s "$sessions" || true
  wait
}

# The part itself.
run_one_part() {
  case $1 in
    image)
      "$ROOT/scripts/run" --build-only || true  # the tests try it again, and say what is wrong
      touch "$RESULTS/image.done" ;;
    unit) if step "build the tests" build_tree "$(preset)"; then leg_unit; else tally 0 1 0; fi ;;
    container)
      until [ -e "$RESULTS/image.done" ]; do sleep 1; done
      leg_container ;;
    *) "leg_$1" ;;
  esac
  times >"$RESULTS/$1.times"  # here, because a subshell has no children yet
  say "    the part itself took $SECONDS s; its children (containers and daemons are not among them) had processors for" \
    "$(sed -n '2s/ / as user and /p' "$RESULTS/$1.times") as system; the rest is the end of its namespace"
  [ -z "${LEG_PASSED-}" ] || echo "$LEG_PASSED $LEG_FAILED $LEG_SKIPPED" >"$RESULTS/$1.counts"
}
