# shellcheck shell=bash
# Images for another architecture than the machine's. Their programs, those of a Dockerfile's RUN
# among them, run here under emulation: the kernel starts qemu for them (binfmt_misc).

# Debian's name of an architecture: qemu's.
declare -A LAB_QEMU_ARCHITECTURE=([amd64]=x86_64 [arm64]=aarch64)
# arch-test is what mmdebstrap asks whether the emulation works.
LAB_EMULATION_PACKAGES=(arch-test binfmt-support qemu-user-static)

# What images are built for: the machine's architecture, unless use_architecture says otherwise.
image_architecture() { echo "${LAB_IMAGE_ARCHITECTURE:-$(dpkg --print-architecture)}"; }

# use_architecture NAME: what follows is about images of this architecture. They have a store of
# their own, because the base image has the same name in each.
use_architecture() {
  [[ -n ${LAB_QEMU_ARCHITECTURE[$1]:-} ]] || die "images cannot be built for the architecture '$1'" \
    "There are: ${!LAB_QEMU_ARCHITECTURE[*]}"
  [[ $1 != "$(image_architecture)" ]] || return 0
  LAB_IMAGE_ARCHITECTURE=$1
  LAB_IMAGES_DIR=$LAB_IMAGES_DIR/$1
  ensure_emulation "qemu-${LAB_QEMU_ARCHITECTURE[$1]}"
}

ensure_emulation() {
  ensure_packages "${LAB_EMULATION_PACKAGES[@]}"
  emulated "$1" || step "register $1 with the kernel" update-binfmts --enable "$1" || true
  emulated "$1" || die "the kernel does not start $1 for the programs of another architecture" \
    "It takes binfmt_misc, and the right to register there (a container needs to be privileged)." \
    "Images of this machine's own architecture can be built without it."
}

# The interpreter must be held open by the kernel (flag F): there is none inside an image.
emulated() { grep -qs '^flags:.*F' "/proc/sys/fs/binfmt_misc/$1"; }
