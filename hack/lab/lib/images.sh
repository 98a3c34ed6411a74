# shellcheck shell=bash
# Builds container images without a registry. The base image is bootstrapped from the machine's Debian sources.
# Ordinary Dockerfiles use it. Images are then loaded into the nodes' stores.

lab_buildah() {
  mkdir -p "$LAB_IMAGES_DIR"
  local policy=$LAB_IMAGES_DIR/policy.json
  [[ -e $policy ]] || echo '{"default": [{"type": "insecureAcceptAnything"}]}' >"$policy"
  local subcommand=$1
  shift
  case $subcommand in build | push | commit) set -- --signature-policy "$policy" "$@" ;; esac
  # In its own mount namespace, because an interrupted build would otherwise leave a mount behind.
  BUILDAH_ISOLATION=chroot unshare --mount --propagation private buildah --root "$LAB_IMAGES_DIR/storage" --runroot "$LAB_IMAGES_DIR/run" \
    --storage-driver overlay "$subcommand" "$@"
}

# image_id NAME: prints the ID of a built image, or nothing.
image_id() { lab_buildah inspect --type image --format '{{.FromImageID}}' "$1" 2>/dev/null || true; }

# Prints the machine's Debian sources as one list. It omits other distributors, because the image lacks their keys
# and certificates.
debian_sources() {
  local file
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [[ ! -e $file ]] || grep -E "^deb .*[[:space:]]$LAB_BASE_SUITE(-updates|-security)?[[:space:]]" "$file" || true
  done
  for file in /etc/apt/sources.list.d/*.sources; do
    [[ ! -e $file ]] || awk -v suite="$LAB_BASE_SUITE" '
      /^#/ { next }
      /^[[:space:]]*$/ { uri = suites = components = ""; next }
      /^URIs:/ { sub(/^URIs:[ ]*/, ""); uri = $0 }
      /^Suites:/ { sub(/^Suites:[ ]*/, ""); suites = $0 }
      /^Components:/ { sub(/^Components:[ ]*/, ""); components = $0 }
      uri != "" && suites != "" && components != "" {
        u = split(uri, us, " "); s = split(suites, ss, " ")
        for (i = 1; i <= u; i++) for (j = 1; j <= s; j++)
          if (ss[j] ~ "^" suite "(-updates|-security)?$") print "deb", us[i], ss[j], components
        uri = ""
      }' "$file"
  done
}

# Writes this machine's settings for its package registries. A build mounts them, so no image contains them.
build_configuration() {
  local directory=$LAB_IMAGES_DIR/configuration bundle=/etc/ssl/certs/ca-certificates.crt setting
  rm -rf "$directory"
  mkdir -p "$directory"/{sources.list.d,lab}
  debian_sources >"$directory/sources.list.d/machine.list"
  [[ ! -e $bundle ]] || cp "$bundle" "$directory/lab/ca-certificates.crt"
  {
    grep -rhiE '^[[:space:]]*Acquire::[^"]*"[^"]*";' /etc/apt/apt.conf.d /etc/apt/apt.conf 2>/dev/null || true
    echo 'Acquire::https::CAInfo "/run/lab/ca-certificates.crt";'
  } >"$directory/apt.conf"
  {
    echo '[global]'
    echo 'cert = /run/lab/ca-certificates.crt'
    for setting in INDEX_URL EXTRA_INDEX_URL TRUSTED_HOST TIMEOUT; do
      local variable=PIP_$setting name=${setting,,}
      if [[ -n ${!variable:-} ]]; then
        echo "${name//_/-} = ${!variable}"
      elif [[ -e /etc/pip.conf ]]; then
        grep -E "^${name//_/-}[[:space:]]*=" /etc/pip.conf || true
      fi
    done
  } >"$directory/pip.conf"
}

# shellcheck disable=SC2016 # $1 is the hook's own parameter
bootstrap_base() {
  local rootfs=$LAB_IMAGES_DIR/base-rootfs.tar status=0
  # Like the published image: no recommended packages, no documentation, no package lists. It has no sources,
  # because a build mounts the machine's.
  debian_sources | mmdebstrap --variant=minbase --architectures="$(image_architecture)" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-include=/usr/share/locale/locale.alias' \
    --aptopt='APT::Install-Recommends "false"' \
    --customize-hook='rm -f "$1/etc/apt/sources.list" "$1/etc/hostname" "$1/etc/apt/apt.conf.d/99mmdebstrap"' \
    "$LAB_BASE_SUITE" "$rootfs" - &&
    lab_buildah build --arch "$(image_architecture)" --layers --force-rm --pull-never -f "$LAB_HOME/images/base.Dockerfile" -t "$LAB_BASE_IMAGE" "$LAB_IMAGES_DIR" || status=$?
  rm -f "$rootfs"
  return "$status"
}

ensure_base_image() {
  [[ -z $(image_id "$LAB_BASE_IMAGE") ]] || return 0
  step "bootstrap ${LAB_BASE_IMAGE##*/}" bootstrap_base ||
    die "the base image $LAB_BASE_IMAGE cannot be built from the machine's Debian sources" \
      "Without it, databases and volumes do not work, and images of Debian programs cannot be built."
}

run_build() {
  local dockerfile=$1 name=$2 context=$3 architecture
  architecture=$(image_architecture)
  build_configuration
  local configuration=$LAB_IMAGES_DIR/configuration
  lab_buildah build --arch "$architecture" --layers --force-rm --pull-never --network host --build-arg "TARGETARCH=$architecture" \
    --volume "$configuration/sources.list.d:/etc/apt/sources.list.d:ro" \
    --volume "$configuration/apt.conf:/etc/apt/apt.conf:ro" \
    --volume "$configuration/pip.conf:/etc/pip.conf:ro" \
    --volume "$configuration/lab:/run/lab:ro" \
    -f "$dockerfile" -t "$name" "$context"
}

# build_image DOCKERFILE NAME [CONTEXT]: builds an image. Steps with unchanged inputs come from the layer cache.
build_image() {
  local dockerfile=$1 name=$2 context=${3:-.}
  [[ -r $dockerfile ]] || die "no readable Dockerfile $dockerfile"
  [[ -d $context ]] || die "the build context $context is not a directory"
  ! grep -qi "^FROM .*$LAB_BASE_IMAGE" "$dockerfile" || ensure_base_image
  step "build $name" run_build "$dockerfile" "$name" "$context" || die "the image $name cannot be built from $dockerfile"
}

# save_image NAME FILE: writes an image in the format of `docker load`, `ctr images import`, skopeo and crane.
save_image() {
  rm -f "$2.part"
  step "write ${2##*/}" lab_buildah push --quiet "$1" "docker-archive:$2.part:$1" && mv "$2.part" "$2"
}

# push_archives REFERENCE TLS ARCHIVE...: pushes the archives, one per architecture, as one image.
push_archives() {
  local reference=$1 tls=$2 archive list=localhost/frugality/push:$$ status=0
  shift 2
  lab_buildah manifest create "$list" || return
  for archive; do
    lab_buildah manifest add "$list" "docker-archive:$archive" || status=$?
  done
  ((status != 0)) ||
    lab_buildah manifest push --all --format v2s2 --tls-verify="$tls" "$list" "docker://$reference" || status=$?
  lab_buildah manifest rm "$list"
  return "$status"
}

push_image() {
  local tls=true reference
  if [[ ${1:-} == --insecure ]]; then
    tls=false
    shift
  fi
  (($# >= 2)) || die "push-image needs one or more archives, and the reference to push to"
  reference=${!#}
  set -- "${@:1:$#-1}"
  step "push $reference" push_archives "$reference" "$tls" "$@" || die "$reference cannot be pushed" \
    "If the registry needs a login, log in first: buildah login, or docker login." \
    "If the registry has no TLS or a self-signed certificate, use --insecure."
}

# node_has_image NODE NAME ID: succeeds if the node's store has an image with this name and ID.
node_has_image() {
  node_exec "$1" ctr --namespace k8s.io images list "name==$2" | grep -q "frugality.dev/image-id=$3"
}

import_image() { # node, name, ID, archive
  node_exec "$1" ctr --namespace k8s.io images import - <"$4" &&
    node_exec "$1" ctr --namespace k8s.io images label "$2" "frugality.dev/image-id=$3"
}

# load_image NAME NODE...: loads a built image into the stores of the nodes that lack it.
load_image() {
  local name=$1 id archive node missing=()
  shift
  id=$(image_id "$name")
  [[ -n $id ]] || die "no image $name has been built" "Build it first: $LAB_COMMAND build-image DOCKERFILE $name"
  for node in "$@"; do node_has_image "$node" "$name" "$id" || missing+=("$node"); done
  ((${#missing[@]})) || return 0
  archive=$LAB_IMAGES_DIR/archive-$$.tar
  step "export ${name##*/}" lab_buildah push --quiet "$name" "docker-archive:$archive:$name" || {
    rm -f "$archive"
    die "the image $name cannot be exported"
  }
  for node in "${missing[@]}"; do
    step "load ${name##*/} into $node" import_image "$node" "$name" "$id" "$archive" || {
      rm -f "$archive"
      die "the image $name cannot be loaded into $node"
    }
  done
  rm -f "$archive"
}

# One build or load at a time, because they share a store of layers and a configuration directory.
images_lock() {
  mkdir -p "$LAB_IMAGES_DIR"
  exec {LAB_IMAGES_LOCK}>"$LAB_IMAGES_DIR/.lock"
  flock -n "$LAB_IMAGES_LOCK" || {
    say "waiting for another build or load of images to end"
    flock "$LAB_IMAGES_LOCK"
  }
  # Removes files and containers of an interrupted command.
  rm -rf "$LAB_IMAGES_DIR"/archive-*.tar "$LAB_IMAGES_DIR"/base-rootfs.tar
  if [[ -n $(lab_buildah containers --quiet) ]]; then lab_buildah rm --all >/dev/null; fi
}
