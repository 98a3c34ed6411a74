# shellcheck shell=bash
# Installs DNS, storage and CloudNativePG when the cluster starts.

# render DIRECTORY|FILE IMAGE [RELEASE]: prints a manifest from manifests/ with the box's names filled in.
render() {
  local source=$1 image=$2 release=${3:-} target
  if [[ -f $source ]]; then
    fill "$image" <"$source"
    return
  fi
  target=$LAB_DIR/manifests/${source##*/}
  mkdir -p "$target"
  cp "$release" "$target/release.yaml"
  fill "$image" <"$source/kustomization.yaml" >"$target/kustomization.yaml"
  "$LAB_DIR/bin/kubectl" kustomize "$target"
}

fill() {
  sed -e "s|@IMAGE_NAME@|${1%:*}|g" -e "s|@IMAGE_TAG@|${1##*:}|g" -e "s|@BASE_IMAGE@|$LAB_BASE_IMAGE|g" \
    -e "s|@DNS_ADDRESS@|$LAB_DNS_SERVICE_ADDRESS|g" -e "s|@NODE_STATE@|$LAB_NODE_STATE|g"
}

# apply NAME: applies the manifest on standard input, unless the same manifest has been applied to this box.
apply() {
  local manifest digest stamp=$LAB_DIR/manifests/$1.applied
  manifest=$(cat)
  digest=$(sha256sum <<<"$manifest")
  [[ ! -r $stamp || $(<"$stamp") != "$digest" ]] || return 0
  kube apply --server-side --force-conflicts --field-manager=lab --filename - <<<"$manifest" &&
    mkdir -p "${stamp%/*}" && echo "$digest" >"$stamp"
}

apply_dns() { render "$LAB_HOME/manifests/coredns.yaml" "$(system_image_name coredns)" | apply dns; }

apply_storage() {
  render "$LAB_HOME/manifests/local-path" "$(system_image_name local-path-provisioner)" \
    "$(part_dir local-path-provisioner)/release.yaml" | apply storage
}

apply_cloudnative_pg() {
  render "$LAB_HOME/manifests/cloudnative-pg" "$(system_image_name cloudnative-pg)" \
    "$(part_dir cloudnative-pg)/release.yaml" | apply cloudnative-pg
}

roll_out() { kube --namespace "$1" rollout status "deployment/$2" --timeout=180s; }
