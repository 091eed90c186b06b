# shellcheck shell=bash
# Virtual machines for what this host's own kernel cannot show: pure cgroup v2, AppArmor, a real Docker engine, other Landlock
# ABIs. Kernels and the root tree are Debian's packages, from wherever this machine gets its packages; emulated (TCG), so that
# no KVM is needed. Images are kept in build/guest, one folder for each recipe. Sourced by scripts/lib/legs.sh.

GUEST_KERNELS=(6.1 6.12)
GUEST_BOOT_S=${CAISSON_GUEST_BOOT_S:-600}   # hard limit of one boot with all its tests
GUEST_PACKAGES=apparmor,ca-certificates,curl,docker.io,iproute2,iptables,kmod,libcap-ng0,libnl-3-200,libnl-route-3-200
GUEST_PACKAGES+=,libseccomp2,procps,python3,python3-pytest
# What lies below these is put into the image; a whole Debian kernel has three times as much.
GUEST_MODULES=(fs/9p fs/ext4 fs/fscache fs/jbd2 fs/mbcache.ko fs/netfs fs/overlayfs net drivers/virtio drivers/block/virtio_blk.ko
  drivers/net/dummy.ko drivers/net/veth.ko lib crypto arch/x86/crypto)
# What the first program loads to reach the root file system and the shares, in this order.
GUEST_BOOT_MODULES=(virtio_pci virtio_blk ext4 9pnet_virtio 9p overlay)

# guest_why_not: prints why no guest can run here; fails when one can.
guest_why_not() {
  local program
  for program in qemu-system-x86_64 mmdebstrap mke2fs busybox cpio; do
    PATH=$PATH:/usr/sbin:/sbin have "$program" || { echo "$program is not installed (scripts/setup --test)"; return 0; }
  done
  [ "$(uname -m)" = x86_64 ] || { echo "the guests are x86_64"; return 0; }
  is_root || { echo "making the guest's root tree needs root"; return 0; }
  return 1
}

# The images depend on this file, on the first programs that run, and on this host's Debian: the agent links its libraries.
guest_recipe() { cat "$ROOT/scripts/lib/guest.sh" "$ROOT/tests/guest/initramfs-init" /etc/debian_version | sha256sum | cut -c1-16; }

# guest_images: leaves kernels, initramfs and root file system in GUEST_DIR; seconds when they are there already.
guest_images() {
  GUEST_DIR=$ROOT/build/guest/$(guest_recipe)
  [ ! -e "$GUEST_DIR/complete" ] || return 0
  rm -rf "$ROOT/build/guest"   # of an older recipe, or broken off
  mkdir -p "$GUEST_DIR"
  step "make the guest's images from Debian's packages" guest_make "$GUEST_DIR" && touch "$GUEST_DIR/complete"
}

guest_make() (
  set -euo pipefail
  PATH=$PATH:/usr/sbin:/sbin
  dir=$1 tree=$1/tree
  mkdir "$dir/debs"
  mmdebstrap --variant=minbase --include="$GUEST_PACKAGES" \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --setup-hook='sh "'"$ROOT"'/tests/guest/kernel-sources" "$1"' \
    --customize-hook='sh "'"$ROOT"'/tests/guest/fetch-kernels" "'"$dir/debs"'" '"${GUEST_KERNELS[*]}" \
    "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$tree"
  for kernel in "${GUEST_KERNELS[@]}"; do guest_kernel "$dir" "$kernel"; done
  install -m 0755 "$ROOT/tests/guest/guest-init" "$tree/sbin/guest-init"
  mkdir -p "$tree/mnt/repository" "$tree/mnt/build" "$tree/mnt/results"
  # Written to only through qemu's snapshot: every boot starts from the same bytes.
  mke2fs -q -t ext4 -O ^has_journal -E lazy_itable_init=1 -d "$tree" "$dir/root.ext4" 2500M
  rm -rf "$tree" "$dir/debs"
)

# guest_kernel DIR VERSION: vmlinuz and initramfs into DIR, the modules that are needed into its root tree.
guest_kernel() {
  local dir=$1 kernel=$2 unpacked=$1/kernel-$2 release part module
  mkdir "$unpacked"
  dpkg-deb -x "$dir/debs/$kernel.deb" "$unpacked"
  release=$(ls "$unpacked/lib/modules")
  cp "$unpacked/boot/vmlinuz-$release" "$dir/vmlinuz-$kernel"
  for part in "${GUEST_MODULES[@]}"; do
    part=kernel/$part
    [ -e "$unpacked/lib/modules/$release/$part" ] || continue
    mkdir -p "$dir/tree/lib/modules/$release/$(dirname "$part")"
    cp -r "$unpacked/lib/modules/$release/$part" "$dir/tree/lib/modules/$release/$part"
  done
  cp "$unpacked/lib/modules/$release"/modules.{order,builtin,builtin.modinfo} "$dir/tree/lib/modules/$release/"
  chroot "$dir/tree" depmod "$release"
  local early=$dir/initramfs-$kernel
  mkdir -p "$early"/{bin,dev,proc,sys,root,modules}
  cp "$(command -v busybox)" "$early/bin/busybox"
  install -m 0755 "$ROOT/tests/guest/initramfs-init" "$early/init"
  # Every module with what it needs before it, numbered in the order to load.
  local n=100
  for module in "${GUEST_BOOT_MODULES[@]}"; do
    chroot "$dir/tree" modprobe -S "$release" --show-depends "$module" 2>/dev/null | sed -n 's/^insmod \([^ ]*\).*/\1/p'
  done | awk '!seen[$0]++' | while read -r module; do
    cp "$dir/tree$module" "$early/modules/$((n++))-$(basename "$module")"
  done
  (cd "$early" && find . | cpio -o -H newc --quiet | gzip -1) >"$dir/initrd-$kernel"
  rm -rf "$early" "$unpacked"
}

# guest_boot KERNEL RESULTS ARGUMENTS...: boots, runs tests/guest/run-tests with the arguments, powers off. RESULTS is the folder
# that the guest writes into. Status 0 when the guest reached its end; its whole serial output is in RESULTS/serial.log.
guest_boot() {
  local kernel=$1 results=$2 status=0
  shift 2
  mkdir -p "$results"
  rm -f "$results/status"
  printf '%s\n' "$@" >"$results/arguments"
  timeout -k 5 "$GUEST_BOOT_S" qemu-system-x86_64 -machine q35,accel=tcg -cpu max -smp 2 -m 3072 \
    -nodefaults -no-user-config -display none -serial stdio -no-reboot \
    -kernel "$GUEST_DIR/vmlinuz-$kernel" -initrd "$GUEST_DIR/initrd-$kernel" \
    -append "console=ttyS0 quiet panic=-1 random.trust_cpu=on caisson.guest=$kernel" \
    -drive "file=$GUEST_DIR/root.ext4,format=raw,if=virtio,snapshot=on" \
    -virtfs "local,path=$ROOT,mount_tag=repository,security_model=none,readonly=on,multidevs=remap" \
    -virtfs "local,path=$GUEST_BUILD,mount_tag=build,security_model=none,readonly=on,multidevs=remap" \
    -virtfs "local,path=$results,mount_tag=results,security_model=none,multidevs=remap" \
    </dev/null 2>&1 | tr -d '\r' | tee "$results/serial.log" || status=$?
  if [ "$(cat "$results/status" 2>/dev/null)" != done ]; then
    echo "the guest with kernel $kernel did not reach its end (limit: $GUEST_BOOT_S s)"
    return 1
  fi
}
