# shellcheck shell=bash
# Builds the images that the cluster itself runs, once, from the parts.

# Prints the full name of a system image.
system_image_name() {
  case $1 in
    pause) echo "$LAB_PAUSE_IMAGE" ;;
    base) echo "$LAB_BASE_IMAGE" ;;
    postgresql) echo "$LAB_DATABASE_IMAGE" ;;
    *) printf 'localhost/frugality/%s:%s\n' "$1" "$(part_version "$1" | sed 's/^v//')" ;;
  esac
}

# Prints the nodes that get an image. pi-1 gets only images that a benchmark's pods need.
system_image_nodes() {
  case $1 in
    coredns | local-path-provisioner) echo "$LAB_SERVER_NODE" ;;
    *) echo "${LAB_NODES[@]}" ;;
  esac
}

# Makes the build context of a system image, a directory with only its part, and prints the path.
system_image_context() {
  local context=$LAB_IMAGES_DIR/contexts/$1
  rm -rf "$context"
  mkdir -p "$context"
  case $1 in
    pause) cc -Os -static -s -o "$context/pause" "$LAB_HOME/images/pause.c" || return ;;
    cloudnative-pg)
      mkdir -p "$context/rootfs/operator"
      ln "$(binary_path manager)" "$context/rootfs/operator/manager_$(dpkg --print-architecture)" 2>/dev/null ||
        cp "$(binary_path manager)" "$context/rootfs/operator/manager_$(dpkg --print-architecture)" || return
      ln -s "operator/manager_$(dpkg --print-architecture)" "$context/rootfs/manager"
      ;;
    coredns | local-path-provisioner) cp "$(binary_path "$1")" "$context/$1" || return ;;
  esac
  echo "$context"
}

# Prints a hash of a system image's inputs.
system_image_key() {
  {
    case $1 in
      pause) cat "$LAB_HOME/images/pause.c" "$LAB_HOME/images/pause.Dockerfile" ;;
      postgresql) cat "$LAB_HOME/postgresql.Dockerfile" && image_id "$LAB_BASE_IMAGE" ;;
      *) cat "$LAB_HOME/images/$1.Dockerfile" && part_dir "$1" ;;
    esac
  } | sha256sum | cut -c1-16
}

ensure_system_image() {
  local image=$1 name key stamp dockerfile context
  if [[ $image == base ]]; then
    ensure_base_image
    return
  fi
  name=$(system_image_name "$image")
  key=$(system_image_key "$image")
  stamp=$LAB_IMAGES_DIR/keys/$image
  if [[ -r $stamp && $(<"$stamp") == "$key" && -n $(image_id "$name") ]]; then return 0; fi
  dockerfile=$LAB_HOME/images/$image.Dockerfile
  [[ $image != postgresql ]] || dockerfile=$LAB_HOME/postgresql.Dockerfile
  context=$(system_image_context "$image") || die "the build context of $name cannot be made"
  build_image "$dockerfile" "$name" "$context"
  mkdir -p "${stamp%/*}"
  echo "$key" >"$stamp"
  rm -rf "$context"
}
