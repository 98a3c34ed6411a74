# shellcheck shell=bash
# Builds images for another architecture than the machine's. The commands of a Dockerfile's RUN are programs of
# that architecture. They run under emulation: the kernel starts qemu for them (binfmt_misc).

# Maps Debian's name of an architecture to qemu's.
declare -A LAB_QEMU_ARCHITECTURE=([amd64]=x86_64 [arm64]=aarch64)
# mmdebstrap runs arch-test to check the emulation.
LAB_EMULATION_PACKAGES=(arch-test binfmt-support qemu-user-static)

# The architecture that images are built for: the machine's, unless use_architecture sets another.
image_architecture() { echo "${LAB_IMAGE_ARCHITECTURE:-$(dpkg --print-architecture)}"; }

# use_architecture NAME: the rest of the command works with images of this architecture. Each architecture has its own
# store, because the base image has the same name in all of them.
use_architecture() {
  [[ -n ${LAB_QEMU_ARCHITECTURE[$1]:-} ]] || die "images cannot be built for the architecture '$1'" \
    "Architectures: ${!LAB_QEMU_ARCHITECTURE[*]}"
  [[ $1 != "$(image_architecture)" ]] || return 0
  LAB_IMAGE_ARCHITECTURE=$1
  LAB_IMAGES_DIR=$LAB_IMAGES_DIR/$1
  ensure_emulation "qemu-${LAB_QEMU_ARCHITECTURE[$1]}"
}

ensure_emulation() {
  ensure_packages "${LAB_EMULATION_PACKAGES[@]}"
  emulated "$1" || step "register $1 with the kernel" update-binfmts --enable "$1" || true
  emulated "$1" || die "the kernel does not start $1 for programs of another architecture" \
    "The kernel needs binfmt_misc, and this process the right to register there (a container needs to be privileged)." \
    "Images of this machine's own architecture can be built without emulation."
}

# The kernel must hold the interpreter open (flag F), because an image does not contain qemu.
emulated() { grep -qs '^flags:.*F' "/proc/sys/fs/binfmt_misc/$1"; }
