# shellcheck shell=bash
# The legs of scripts/test. Each sets LEG_PASSED, LEG_FAILED and LEG_SKIPPED and adds them to the totals.
# shellcheck disable=SC2034

PASSED_ALL=0 FAILED_ALL=0 SKIPPED_ALL=0 EXTRA=()

# tally PASSED FAILED SKIPPED
tally() {
  LEG_PASSED=$1 LEG_FAILED=$2 LEG_SKIPPED=$3
  PASSED_ALL=$((PASSED_ALL + $1)) FAILED_ALL=$((FAILED_ALL + $2)) SKIPPED_ALL=$((SKIPPED_ALL + $3))
}

# What a leg needs beside what building and pytest need: sets of scripts/lib/packages.sh.
declare -A LEG_SETS=([api]='desktop npm' [browser]='desktop npm' [container]='run npm' [guest]=guest)

# sets_of LEG...: the sets of these legs, each once.
sets_of() {
  local leg
  # shellcheck disable=SC2086  # words on purpose
  { printf '%s\n' build test; for leg; do printf '%s\n' ${LEG_SETS[$leg]-}; done; } | awk 'NF && !seen[$0]++'
}

# install_sets SET...: together, or else one by one, so that a package that cannot be had here keeps no other away.
install_sets() {
  local set
  "$ROOT/scripts/setup" "${@/#/--}" && return
  for set; do
    ! is_root || "$ROOT/scripts/setup" "--$set" || warn "what scripts/setup --$set installs cannot be had here"
  done
  warn "not every package is installed: what needs them fails or is skipped, with its reason"
}

# A whole leg that cannot run here counts as one skip.
skip_leg() {
  say "    skipped: $1"
  tally 0 0 1
}

# ctest_leg LEG SELECTION...: the ctest tests of one selection, counted by their single GoogleTest cases.
ctest_leg() {
  local leg=$1 status=0 counts
  shift
  mkdir -p "$RESULTS/$leg"
  GTEST_OUTPUT="xml:$RESULTS/$leg/" ctest --test-dir "$ROOT/build/$(preset)" --output-on-failure --timeout 900 \
    --output-junit "$RESULTS/$leg.xml" --no-tests=ignore "$@" ${EXTRA[@]+"${EXTRA[@]}"} >&2 || status=$?
  counts=$(/usr/bin/python3 "$ROOT/scripts/lib/results.py" ctest "$RESULTS/$leg.xml" "$RESULTS/$leg")
  # shellcheck disable=SC2086  # three numbers
  tally $counts
  if [ "$status" != 0 ] && [ "$LEG_FAILED" = 0 ]; then tally 0 1 0; fi
}

leg_unit() { ctest_leg unit -j "$(jobs_count)"; }

leg_session() {
  is_root || { skip_leg "session tests build real sessions: they need root"; return 0; }
  pytest_leg session tests/session /usr/bin/python3
}

# pytest_leg LEG FOLDER [PYTHON]: by default with the SDK in a virtual environment of our own over Debian's packages. What is
# broken for every test, or hangs, must not cost hours: a leg ends at its 40th failure and after 75 minutes, and has failed.
pytest_leg() {
  local leg=$1 status=0 counts python
  python=${3:-$(test_python)}
  CAISSON_BUILD_DIR=$ROOT/build/$(preset) PYTHONDONTWRITEBYTECODE=1 timeout --foreground --signal INT --kill-after 60 4500 \
    "$python" -m pytest -q -ra "$ROOT/$2" --maxfail 40 --junitxml "$RESULTS/$leg.xml" -p no:cacheprovider \
    ${EXTRA[@]+"${EXTRA[@]}"} >&2 || status=$?
  if [ "$status" = 5 ]; then say "    no tests collected"; tally 0 0 0; return 0; fi
  counts=$(/usr/bin/python3 "$ROOT/scripts/lib/results.py" pytest "$RESULTS/$leg.xml")
  # shellcheck disable=SC2086  # three numbers
  tally $counts
  if [ "$status" != 0 ] && [ "$LEG_FAILED" = 0 ]; then tally 0 1 0; fi
}

# The interpreter for pytest: Debian's, with the official SDK (from the Python package index) where it can be had. Tests of
# the SDK skip themselves, with a reason, where it cannot.
test_python() {
  local venv=$ROOT/build/venv
  if [ ! -x "$venv/bin/python" ]; then
    /usr/bin/python3 -m venv --system-site-packages "$venv" >&2 || { echo /usr/bin/python3; return 0; }
  fi
  if ! "$venv/bin/python" -c 'import agent_sandbox, httpx, jsonschema, openapi_spec_validator, prometheus_client, pytest, sandbox_fusion, websockets' 2>/dev/null; then
    step "install the agent-sandbox SDK and what else the tests import" "$venv/bin/python" -m pip install -q -r "$ROOT/tests/requirements.txt" ||
      say "    it cannot be had here: its tests are skipped"
  fi
  echo "$venv/bin/python"
}

leg_api() {
  [ -d "$ROOT/tests/api" ] || { tally 0 0 0; return 0; }
  is_root || { skip_leg "the api tests start a native launcher: they need root"; return 0; }
  page_driver "$ROOT/build/$(preset)/launcher/tools/driver" || say "    its tests are skipped"
  markitdown "$ROOT/build/$(preset)/launcher/tools/markitdown" || say "    its tests are skipped"
  pytest_leg api tests/api
}

leg_browser() {
  is_root || { skip_leg "the browser tests start Chromium as another user: they need root"; return 0; }
  page_driver "$ROOT/build/$(preset)/launcher/tools/driver" || say "    its tests are skipped"
  pytest_leg browser tests/browser /usr/bin/python3
}

leg_hostile() {
  is_root || { skip_leg "the hostile tests build real sessions: they need root"; return 0; }
  # Beside the launcher that is tested, one whose steps can be made to fail.
  [ -n "${PART-}" ] || step "build the launcher with faults" build_tree "$(preset)" faulty-programs || { tally 0 1 0; return 0; }
  pytest_leg hostile tests/hostile /usr/bin/python3
}

# What was tried and what became of it, case by case, is left beside the JUnit file: escape.json and escape.txt.
leg_escape() {
  is_root || { skip_leg "the escape tests build real sessions: they need root"; return 0; }
  export CAISSON_ESCAPE_OUT=$RESULTS
  pytest_leg escape tests/escape /usr/bin/python3
  if [ -f "$RESULTS/escape.txt" ]; then
    sed '/^$/Q' "$RESULTS/escape.txt" | while read -r line; do say "    $line"; done
  fi
}

leg_container() {
  is_root || { skip_leg "the container tests start containers with their own ids: they need root"; return 0; }
  CAISSON_DOCKER_BIN=${CAISSON_DOCKER_BIN:-$(docker_programs)}
  export CAISSON_DOCKER_BIN
  pytest_leg container tests/container
}

# One boot for each kernel, all at once: an emulated machine is one busy core. EXTRA replaces what pytest runs in the guest.
leg_guest() {
  local why kernel counts passed=0 failed=0 skipped=0 tests kernels
  if why=$(guest_why_not); then skip_leg "$why"; return 0; fi
  guest_images || { skip_leg "the guest's images could not be made (log above): no mirror with its packages?"; return 0; }
  GUEST_BUILD=${CAISSON_BUILD_DIR:-$ROOT/build/$(preset)}
  mapfile -t kernels < <(guest_kernels)
  tests=("${GUEST_TESTS[@]}")
  [ ${#EXTRA[@]} = 0 ] || tests=("${EXTRA[@]}")
  for kernel in "${kernels[@]}"; do
    mkdir -p "$RESULTS/guest-$kernel"
    guest_boot "$kernel" "$RESULTS/guest-$kernel" "${tests[@]}" || touch "$RESULTS/guest-$kernel/broken" &
  done
  wait
  for kernel in "${kernels[@]}"; do
    say "    kernel $kernel: $(sed -n 's/^guest: //p' "$RESULTS/guest-$kernel/serial.log" | paste -sd ';')"
    counts=$(/usr/bin/python3 "$ROOT/scripts/lib/results.py" pytest "$RESULTS/guest-$kernel/results.xml")
    read -r LEG_PASSED LEG_FAILED LEG_SKIPPED <<<"$counts"
    if [ -e "$RESULTS/guest-$kernel/broken" ]; then
      say "    the guest's tests did not run to their end (limit of the whole machine: $GUEST_BOOT_S s)"
      [ "$LEG_FAILED" != 0 ] || LEG_FAILED=1
    fi
    if [ "$LEG_FAILED" != 0 ]; then tail -n 120 "$RESULTS/guest-$kernel/serial.log" >&2; fi
    passed=$((passed + LEG_PASSED)) failed=$((failed + LEG_FAILED)) skipped=$((skipped + LEG_SKIPPED))
  done
  tally "$passed" "$failed" "$skipped"
}

# cases_of TEST...: how many there are.
cases_of() { /usr/bin/python3 -m pytest --collect-only -q -p no:cacheprovider "$@" 2>/dev/null | grep -c :: || true; }

# say_what_full_adds LEG...: the cases of these legs that only `scripts/test full` runs.
say_what_full_adds() {
  local kernel more=''
  [ -z "${CAISSON_TEST_FULL-}${EXTRA[*]-}" ] || return 0
  if [[ " $* " = *" hostile "* ]]; then
    more+="; $(($(cd "$ROOT" && CAISSON_TEST_FULL=1 cases_of tests/hostile/test_protocol.py) - $(cd "$ROOT" && cases_of tests/hostile/test_protocol.py))) messages in other states (hostile)"
  fi
  if [[ " $* " = *" guest "* ]]; then
    for kernel in "${GUEST_KERNELS[@]}"; do
      ! guest_repeats "$kernel" || more+="; $(cd "$ROOT" && cases_of "${GUEST_TESTS[@]}") cases on kernel $kernel (guest)"
    done
  fi
  [ -z "$more" ] || say "scripts/test full, before a release, adds: ${more#; }"
}
