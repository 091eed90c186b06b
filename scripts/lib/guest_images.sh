# shellcheck shell=bash
# The guests' images: kernels, initramfs and root file system from Debian's packages, from wherever this machine gets its
# packages. Kept in build/guest, one folder for each recipe. Sourced by scripts/test.

GUEST_KERNELS=(6.1 6.12)
GUEST_PACKAGES=apparmor,ca-certificates,curl,docker.io,e2fsprogs,iproute2,iptables,kmod,libcap-ng0,libnl-3-200,libnl-route-3-200
GUEST_PACKAGES+=,libseccomp2,procps,python3,python3-pytest
# In the image that the guest's Docker runs: what the launcher and the agent link where they are not static.
GUEST_BASE_PACKAGES=libcap-ng0,libnl-3-200,libnl-route-3-200,libseccomp2,libstdc++6,openssl,passwd
# What lies below these is put into the image; a whole Debian kernel has three times as much.
GUEST_MODULES=(fs/9p/ fs/ext4/ fs/fscache/ fs/jbd2/ fs/mbcache. fs/netfs/ fs/overlayfs/ fs/quota/ net/ drivers/virtio/
  drivers/block/loop. drivers/block/virtio_blk. drivers/net/dummy. drivers/net/veth. lib/ crypto/ arch/x86/crypto/)
# What the first program loads to reach the root file system and the shares, in this order.
GUEST_BOOT_MODULES=(virtio_pci virtio_blk ext4 9pnet_virtio 9p overlay)

# Everything that the images are made by, and this host's Debian: the agent links its libraries.
guest_recipe() {
  (cd "$ROOT" && cat scripts/lib/guest_images.sh tests/guest/{kernel-sources,fetch-kernels,base-image,initramfs-init,guest-init} \
    /etc/debian_version | sha256sum | cut -c1-16)
}

# guest_images: leaves kernels, initramfs and root file system in GUEST_DIR; seconds when they are there already.
guest_images() {
  GUEST_DIR=$ROOT/build/guest/$(guest_recipe)
  [ ! -e "$GUEST_DIR/complete" ] || return 0
  rm -rf "$ROOT/build/guest"   # of an older recipe, or broken off
  mkdir -p "$GUEST_DIR"
  # A shell of its own: in the condition that this function is called in, `set -e` would not hold.
  # shellcheck disable=SC2016  # the inner shell's own $1 and $ROOT
  step "make the guest's images from Debian's packages" env ROOT="$ROOT" \
    bash -euo pipefail -c '. "$ROOT/scripts/lib/guest_images.sh"; guest_make "$1"' - "$GUEST_DIR" && touch "$GUEST_DIR/complete"
}

# shellcheck disable=SC2016  # the hooks' own $1
guest_make() {
  local dir tree suite kernel
  PATH=$PATH:/usr/sbin:/sbin
  dir=$1 tree=$1/tree
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  mkdir "$dir/debs"
  timeout 900 mmdebstrap --variant=minbase --include="$GUEST_PACKAGES" \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --setup-hook='sh "'"$ROOT"'/tests/guest/kernel-sources" "$1"' \
    --customize-hook='sh "'"$ROOT"'/tests/guest/fetch-kernels" "'"$dir/debs"'" '"${GUEST_KERNELS[*]}" \
    "$suite" "$tree"
  timeout 300 mmdebstrap --variant=essential --include="$GUEST_BASE_PACKAGES" \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='sh "'"$ROOT"'/tests/guest/base-image" "$1"' "$suite" "$tree/opt/base.tar"
  for kernel in "${GUEST_KERNELS[@]}"; do guest_kernel "$dir" "$kernel"; done
  install -m 0755 "$ROOT/tests/guest/guest-init" "$tree/sbin/guest-init"
  mkdir -p "$tree/mnt/repository" "$tree/mnt/build" "$tree/mnt/results"
  # Written to only through qemu's snapshot: every boot starts from the same bytes.
  mke2fs -q -t ext4 -O ^has_journal -E lazy_itable_init=1 -d "$tree" "$dir/root.ext4" 2500M
  rm -rf "$tree" "$dir/debs"
}

# guest_kernel DIR VERSION: vmlinuz and initramfs into DIR, the modules that are needed into its root tree.
guest_kernel() {
  local dir=$1 kernel=$2 unpacked=$1/kernel-$2 release part module name
  mkdir "$unpacked"
  dpkg-deb -x "$dir/debs/$kernel.deb" "$unpacked"
  release=$(ls "$unpacked/lib/modules")
  cp "$unpacked/boot/vmlinuz-$release" "$dir/vmlinuz-$kernel"
  for part in "${GUEST_MODULES[@]}"; do
    mkdir -p "$dir/tree/lib/modules/$release/kernel/${part%/*}"
    # What a folder holds, or a module, with or without .xz. Not every kernel has every folder.
    for module in "$unpacked/lib/modules/$release/kernel/$part"*; do
      [ ! -e "$module" ] || cp -r "$module" "$dir/tree/lib/modules/$release/kernel/${part%/*}/"
    done
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
    name=$((n++))-$(basename "$module" .xz)
    case $module in *.xz) xz -dc "$dir/tree$module" ;; *) cat "$dir/tree$module" ;; esac >"$early/modules/$name"
  done
  (cd "$early" && find . | cpio -o -H newc --quiet | gzip -1) >"$dir/initrd-$kernel"
  rm -rf "$early" "$unpacked"
}
