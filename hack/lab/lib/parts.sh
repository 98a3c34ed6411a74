# shellcheck shell=bash
# Builds the box's programs from Go modules that parts/*/go.mod pin by checksum. The cache, outside the checkout,
# keeps a built part under its version and a hash of its inputs, so no part is built twice.

# Part: the module that gives its version; and a sentence about what works without it.
declare -A PART_MODULE=(
  [kubernetes]=k8s.io/kubernetes
  [kubernetes-1.29]=k8s.io/kubernetes
  [kubernetes-1.37]=k8s.io/kubernetes
  [kine]=github.com/k3s-io/kine
  [coredns]=github.com/coredns/coredns
  [local-path-provisioner]=github.com/rancher/local-path-provisioner
  [cloudnative-pg]=github.com/cloudnative-pg/cloudnative-pg
  [fortio]=fortio.org/fortio
  [helm]=helm.sh/helm/v3
  [vale]=github.com/vale-cli/vale/v3
  [kustomize-controller]=github.com/fluxcd/kustomize-controller
  [argo-rollouts]=github.com/argoproj/argo-rollouts
  [argo-cd]=github.com/argoproj/argo-cd/v3
  [helm-4]=helm.sh/helm/v4
  [registry]=github.com/distribution/distribution/v3
  [actionlint]=github.com/rhysd/actionlint
  [flagger]=github.com/fluxcd/flagger
  [kube-router]=github.com/cloudnativelabs/kube-router/v2
)
# Part: the folder of its go.mod, if it shares the one of another part. The libraries of Kubernetes, which both contain, are
# then compiled once. kine is built with cgo: net and what imports it are
# compiled again for it, which is 93 of its 209 packages.
declare -A PART_FOLDER=(
  [kine]=kubernetes [coredns]=kubernetes [local-path-provisioner]=kubernetes [helm]=cloudnative-pg
)
declare -A PART_WITHOUT=(
  [kubernetes]="Nothing works without it."
  [kine]="Nothing works without it: the API server keeps its state there."
  [coredns]="Without it ('up --without coredns') pods run, but pods cannot find a Service by its name."
  [local-path-provisioner]="Without it ('up --without local-path-provisioner') the cluster works, but no database gets a volume."
  [cloudnative-pg]="Without it ('up --without cloudnative-pg') the cluster works, but a benchmark reports that CloudNativePG is missing."
  [fortio]="Without it ('up --without fortio') the cluster works, but there is no load to inject."
  [helm]="Without it ('up --without helm') the cluster works, but the chart cannot be installed."
  [kubernetes-1.29]="Without it the box works, but make compat cannot test this version."
  [kubernetes-1.37]="Without it the box works, but make compat cannot test this version."
  [vale]="Without it the box works, but hack/english cannot check the English."
  [kustomize-controller]="Without it the box works, but make gitops cannot test the gate with it."
  [argo-rollouts]="Without it the box works, but make gitops cannot test the gate with it."
  [argo-cd]="Without it the box works, but make gitops cannot test the gate with it."
  [helm-4]="Without it the box works, but make gitops cannot test the gate with it."
  [registry]="Without it the box works, but make release-test has no registry to push to."
  [actionlint]="Without it the box works, but make lint cannot check the workflows."
  [flagger]="Without it the box works, but make gitops cannot test the gate with it."
  [kube-router]="Without it the box works, but make network cannot enforce NetworkPolicies."
)
# Binary: its part; and its Go package.
declare -A BINARY_PART=(
  [kube-apiserver]=kubernetes [kube-controller-manager]=kubernetes [kube-scheduler]=kubernetes
  [kubelet]=kubernetes [kube-proxy]=kubernetes [kubectl]=kubernetes
  [kine]=kine [coredns]=coredns [local-path-provisioner]=local-path-provisioner
  [manager]=cloudnative-pg [fortio]=fortio [helm]=helm
  [kube-apiserver-1.29]=kubernetes-1.29 [kube-apiserver-1.37]=kubernetes-1.37
  [vale]=vale
  [kustomize-controller]=kustomize-controller [rollouts-controller]=argo-rollouts [argocd]=argo-cd
  [helm-4]=helm-4 [flagger]=flagger [kube-router]=kube-router
  [registry]=registry [actionlint]=actionlint
)
declare -A BINARY_PACKAGE=(
  [kube-apiserver]=k8s.io/kubernetes/cmd/kube-apiserver
  [kube-apiserver-1.29]=k8s.io/kubernetes/cmd/kube-apiserver
  [kube-apiserver-1.37]=k8s.io/kubernetes/cmd/kube-apiserver
  [kube-controller-manager]=k8s.io/kubernetes/cmd/kube-controller-manager
  [kube-scheduler]=k8s.io/kubernetes/cmd/kube-scheduler
  [kubelet]=k8s.io/kubernetes/cmd/kubelet
  [kube-proxy]=k8s.io/kubernetes/cmd/kube-proxy
  [kubectl]=k8s.io/kubernetes/cmd/kubectl
  [kine]=./kine
  [coredns]=./coredns
  [local-path-provisioner]=github.com/rancher/local-path-provisioner
  [manager]=github.com/cloudnative-pg/cloudnative-pg/cmd/manager
  [fortio]=fortio.org/fortio
  [helm]=helm.sh/helm/v3/cmd/helm
  [vale]=github.com/vale-cli/vale/v3/cmd/vale
  [kustomize-controller]=github.com/fluxcd/kustomize-controller
  [rollouts-controller]=github.com/argoproj/argo-rollouts/cmd/rollouts-controller
  [argocd]=github.com/argoproj/argo-cd/v3/cmd
  [helm-4]=helm.sh/helm/v4/cmd/helm
  [registry]=github.com/distribution/distribution/v3/cmd/registry
  [actionlint]=github.com/rhysd/actionlint/cmd/actionlint
  [flagger]=github.com/fluxcd/flagger/cmd/flagger
  [kube-router]=github.com/cloudnativelabs/kube-router/v2/cmd/kube-router
)
# In the order of their build: a part that shares libraries of kube-apiserver comes when they are compiled.
BINARIES=(kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl
  manager helm fortio kine coredns local-path-provisioner)
# Built only if named, because the box does not need them: make lint needs Vale and actionlint, make release-test the
# registry, make compat the API servers, make network kube-router, and make gitops the others.
TOOLS=(vale actionlint registry kube-router kube-apiserver-1.29 kube-apiserver-1.37 kustomize-controller rollouts-controller argocd helm-4 flagger)

# Seconds of CPU time of a first build, of all its packages, as measured one after the other; Fortio's is an
# estimate. Tools are not among them.
declare -A BINARY_SECONDS=(
  [kube-apiserver]=433 [kube-controller-manager]=100 [kube-scheduler]=6 [kubelet]=28 [kube-proxy]=13 [kubectl]=40
  [manager]=245 [helm]=38 [fortio]=20 [kine]=69 [coredns]=13 [local-path-provisioner]=4
)

# Prints the folder of a part's go.mod.
part_folder() { printf '%s/parts/%s' "$LAB_HOME" "${PART_FOLDER[$1]:-$1}"; }

part_version() {
  awk -v module="${PART_MODULE[$1]}" '
    $1 == "require" && $2 == module { print $3; exit }
    $1 == module { print $2; exit }' "$(part_folder "$1")/go.mod"
}

part_ldflags() {
  local version minor
  version=$(part_version "$1")
  printf '%s' '-s -w'
  case $1 in
    kubernetes*)
      minor=${version#v1.}
      minor=${minor%%.*}
      local package
      for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        printf ' -X %s.gitVersion=%s -X %s.gitMajor=1 -X %s.gitMinor=%s -X %s.gitTreeState=clean' \
          "$package" "$version" "$package" "$package" "$minor" "$package"
      done
      ;;
    cloudnative-pg)
      printf ' -X github.com/cloudnative-pg/cloudnative-pg/pkg/versions.buildVersion=%s' "${version#v}"
      ;;
    helm-4) printf ' -X helm.sh/helm/v4/internal/version.version=%s' "$version" ;;
    argo-cd) printf ' -X github.com/argoproj/argo-cd/v3/common.version=%s' "${version#v}" ;;
    helm) printf ' -X helm.sh/helm/v3/internal/version.version=%s' "$version" ;;
    local-path-provisioner) printf ' -X main.VERSION=%s' "$version" ;;
    vale) printf ' -X main.version=%s' "${version#v}" ;;
  esac
}

part_cgo() { case $1 in kine | vale) echo 1 ;; *) echo 0 ;; esac; }

# Prints the directory of a part's binaries, built or not.
part_dir() {
  local folder files main hash
  folder=$(part_folder "$1")
  files=("$folder/go.mod" "$folder/go.sum")
  main=$folder/$1/main.go
  [[ ! -e $main ]] || files+=("$main")
  hash=$({ cat "${files[@]}"; part_ldflags "$1"; part_cgo "$1"; go env GOOS GOARCH; } | sha256sum | cut -c1-16)
  printf '%s/%s-%s-%s' "$LAB_PARTS_DIR" "$1" "$(part_version "$1")" "$hash"
}

# Prints the path of a binary, which must be built.
binary_path() {
  local part=${BINARY_PART[$1]:-}
  [[ -n $part ]] || die "no binary is named '$1'" "Binaries: ${BINARIES[*]} ${TOOLS[*]}"
  local path
  path="$(part_dir "$part")/$1"
  [[ -x $path ]] || die "$1 is not built yet" "'lab build' builds all binaries, 'lab build $1' only this one."
  printf '%s\n' "$path"
}

# Prints the directory of a part's source in the module cache. It has files of the module that are not Go code.
part_source() {
  (cd "$(part_folder "$1")" && GOFLAGS=-mod=readonly GOWORK=off go mod download "${PART_MODULE[$1]}" &&
    GOFLAGS=-mod=readonly GOWORK=off go list -m -f '{{.Dir}}' "${PART_MODULE[$1]}")
}

# kustomize-controller does not start without the definitions of Flux's sources. They are in another module, which
# is not built. The checksum has the form of go.sum.
FLUX_SOURCES=github.com/fluxcd/source-controller@v1.9.6
FLUX_SOURCES_SUM=h1:nG534/bI6nVpyHra7ONAk6xDB3xPsVT+EOLHZHXPrrc=

# Prints the directory of Flux's sources in the module cache.
flux_sources() {
  local download
  download=$(cd "$LAB_HOME/parts/kustomize-controller" && GOWORK=off go mod download -json "$FLUX_SOURCES") || return
  grep -qF "\"Sum\": \"$FLUX_SOURCES_SUM\"" <<<"$download" || die "$FLUX_SOURCES has another checksum than $FLUX_SOURCES_SUM"
  sed -n 's/^\t"Dir": "\(.*\)",$/\1/p' <<<"$download"
}

# Parts with a manifest.
part_has_release() {
  case $1 in cloudnative-pg | local-path-provisioner | kustomize-controller | argo-rollouts | argo-cd | flagger) ;; *) return 1 ;; esac
}

# Copies the manifest that installs a part next to its binary, so a warm start needs no module cache. Of the parts for
# make gitops, only the definitions are needed.
part_release() {
  local source version sources files=()
  version=$(part_version "$1")
  source=$(part_source "$1") || return
  case $1 in
    cloudnative-pg) files=("$source/releases/cnpg-${version#v}.yaml") ;;
    local-path-provisioner) files=("$source/deploy/local-path-storage.yaml") ;;
    kustomize-controller)
      sources=$(flux_sources) || return
      files=("$source"/config/crd/bases/*.yaml "$sources"/config/crd/bases/*.yaml)
      ;;
    flagger) files=("$source/artifacts/flagger/crd.yaml") ;;
    argo-rollouts | argo-cd) files=("$source"/manifests/crds/*-crd.yaml) ;;
  esac
  # Not every file begins with a separator.
  sed -s '1{/^---/!s/^/---\n/}' "${files[@]}" >"$2/release.yaml"
}

go_build() {
  local part=$1 binary=$2 target=$3
  cd "$(part_folder "$part")" || return
  # These settings save a quarter of the CPU time: less garbage collection in the compiler, and no debugging
  # information, which the linker would strip anyway.
  GOFLAGS=-mod=readonly GOWORK=off GOGC=400 CGO_ENABLED=$(part_cgo "$part") \
    go build -trimpath -buildvcs=false -gcflags=all=-dwarf=false -ldflags "$(part_ldflags "$part")" -o "$target.part" "${BINARY_PACKAGE[$binary]}" &&
    if part_has_release "$part"; then part_release "$part" "${target%/*}"; fi &&
    mv "$target.part" "$target"
}

require_go() {
  local go
  go=$(sed -n 's/^go //p' "$LAB_HOME"/parts/*/go.mod | sort --version-sort | tail -n 1)
  command -v go >/dev/null || die "the Go toolchain is missing" \
    "The box's parts are built from Go modules: put Go $go or later on the PATH." \
    "The box does not work without it."
  [[ $(part_cgo kine) == 0 ]] || command -v cc >/dev/null || die "no C compiler (cc): kine needs one for SQLite, Vale for its parsers" \
    "On Debian: apt-get install gcc libc6-dev"
}

# build_parts [BINARY...]: builds missing binaries. Kubernetes and the rest are built in parallel, because linking and
# C compilation use only one core.
build_parts() {
  local wanted=("$@") binary part missing=()
  ((${#wanted[@]})) || wanted=("${BINARIES[@]}")
  require_go
  for binary in "${wanted[@]}"; do
    part=${BINARY_PART[$binary]:-}
    [[ -n $part ]] || die "no binary is named '$binary'" "Binaries: ${BINARIES[*]} ${TOOLS[*]}"
    [[ -x "$(part_dir "$part")/$binary" ]] || missing+=("$binary")
  done
  ((${#missing[@]})) || return 0
  mkdir -p "$LAB_PARTS_DIR"
  # One build at a time, for all checkouts.
  exec {parts_lock}>"$LAB_PARTS_DIR/.lock"
  flock -n "$parts_lock" || {
    say "waiting for another build of the parts to end"
    flock "$parts_lock"
  }
  say "building ${#missing[@]} of ${#wanted[@]} parts$(build_time "${missing[@]}"): ${missing[*]}"
  say "  This happens once. If it is interrupted, the next build continues with the parts that are left."
  local kubernetes=() others=() lanes=() lane failed=0
  for binary in "${missing[@]}"; do
    if [[ ${BINARY_PART[$binary]} == kubernetes ]]; then kubernetes+=("$binary"); else others+=("$binary"); fi
  done
  build_lane "${kubernetes[@]}" &
  lanes+=("$!")
  build_lane "${others[@]}" &
  lanes+=("$!")
  # shellcheck disable=SC2064 # expand now: these are the lanes to kill
  trap "kill_tree ${lanes[0]}; kill_tree ${lanes[1]}; exit 130" INT TERM
  for lane in "${lanes[@]}"; do wait "$lane" || failed=1; done
  trap - INT TERM
  exec {parts_lock}>&-
  ((failed == 0)) || exit 1
}

# build_time BINARY...: prints the estimated duration on this machine; nothing if one of them is a tool.
build_time() {
  local binary sum=0
  for binary; do
    [[ -n ${BINARY_SECONDS[$binary]:-} ]] || return 0
    sum=$((sum + BINARY_SECONDS[$binary]))
  done
  sum=$((sum / $(nproc)))
  if ((sum > 90)); then
    printf ', about %d minutes on idle cores' "$(((sum + 30) / 60))"
  else
    printf ', about a minute on idle cores'
  fi
}

# build_lane [BINARY...]: builds the binaries one after the other.
build_lane() {
  local binary part dir
  for binary; do
    part=${BINARY_PART[$binary]}
    dir=$(part_dir "$part")
    [[ ! -x $dir/$binary ]] || continue
    mkdir -p "$dir"
    step "build $binary $(part_version "$part")" go_build "$part" "$binary" "$dir/$binary" ||
      die "$binary ($part $(part_version "$part")) cannot be built from the Go module proxy" "${PART_WITHOUT[$part]}"
  done
}
