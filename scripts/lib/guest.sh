# shellcheck shell=bash
# Virtual machines for what this host's own kernel cannot show: pure cgroup v2, AppArmor, a real Docker engine, other Landlock
# ABIs. Emulated (TCG), so that no KVM is needed. Sourced by scripts/test.

GUEST_BOOT_S=${CAISSON_GUEST_BOOT_S:-2700}   # hard limit of one boot with all its tests

# guest_why_not: prints why no guest can run here; fails when one can.
guest_why_not() {
  local program
  for program in qemu-system-x86_64 mmdebstrap mke2fs busybox cpio xz; do
    PATH=$PATH:/usr/sbin:/sbin have "$program" || { echo "$program is not installed (scripts/setup --guest)"; return 0; }
  done
  [ "$(uname -m)" = x86_64 ] || { echo "the guests are x86_64"; return 0; }
  is_root || { echo "making the guest's root tree needs root"; return 0; }
  return 1
}

# What runs in each guest: its own tests, and of the sessions' what needs cgroup v2 or a system that may be written.
# shellcheck disable=SC2034  # read by legs.sh
GUEST_TESTS=(tests/guest tests/session/test_limits.py tests/session/test_system_packages.py)

# guest_repeats KERNEL: whether it says nothing new. What is so on the oldest kernel (whose Landlock can do least) and, in the other
# legs, on this host's is so on those between them.
guest_repeats() {
  [ -z "${CAISSON_TEST_FULL-}" ] && [ "$1" != "${GUEST_KERNELS[0]}" ] && printf '%s\n' "$1" "$(uname -r)" | sort -CV
}

# guest_kernels: those that are booted, one a line; with CAISSON_TEST_FULL or EXTRA all.
guest_kernels() {
  local kernel
  for kernel in "${GUEST_KERNELS[@]}"; do
    if [ ${#EXTRA[@]} != 0 ] || ! guest_repeats "$kernel"; then echo "$kernel"; fi
  done
}

# guest_boot KERNEL RESULTS ARGUMENTS...: boots, runs tests/guest/run-tests with the arguments, powers off. RESULTS is the folder
# that the guest writes into: results.xml, status (pytest's) and serial.log. Status 0 when all of pytest ran, whatever it found.
guest_boot() {
  local kernel=$1 results=$2 status=0
  shift 2
  mkdir -p "$results"
  rm -f "$results/status" "$results/results.xml"
  printf '%s\n' "$@" >"$results/arguments"
  # One thread for both processors: with two, one of them can still run the breakpoint that the kernel on the other has put into its
  # own code for a moment (text_poke), and the guest's kernel panics with "Oops: int3".
  timeout --foreground -k 5 "$GUEST_BOOT_S" qemu-system-x86_64 -machine q35 -accel tcg,thread=single -cpu max -smp 2 -m 3072 \
    -nodefaults -no-user-config -display none -serial stdio -no-reboot \
    -kernel "$GUEST_DIR/vmlinuz-$kernel" -initrd "$GUEST_DIR/initrd-$kernel" \
    -append "console=ttyS0 quiet panic=-1 no_timer_check random.trust_cpu=on caisson.guest=$kernel" \
    -drive "file=$GUEST_DIR/root.ext4,format=raw,if=virtio,snapshot=on" \
    -virtfs "local,path=$ROOT,mount_tag=repository,security_model=none,readonly=on,multidevs=remap" \
    -virtfs "local,path=$GUEST_BUILD,mount_tag=build,security_model=none,readonly=on,multidevs=remap" \
    -virtfs "local,path=$results,mount_tag=results,security_model=none,multidevs=remap" \
    </dev/null >"$results/serial.log" 2>&1 || status=$?
  sed -i 's/\r//g' "$results/serial.log"
  # 0: all passed, 1: some failed. Anything else, or nothing, is a run that broke off.
  [ "$status" = 0 ] && case $(cat "$results/status" 2>/dev/null) in 0 | 1) ;; *) return 1 ;; esac
}
