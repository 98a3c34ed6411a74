# shellcheck shell=bash
# hack/release sources this file. The functions write the texts of a release. They read only their arguments and this
# checkout, so tests/release calls them without a registry.

CHART=charts/frugality-operator
PAGE=https://github.com/frugality-dev/frugality
# The oldest Kubernetes for which Helm renders all objects. Later versions accept them unchanged.
MANIFEST_KUBERNETES=1.30.0

# The values of the chart that name an image of the product: value, image.
declare -A CHART_VALUES=([image]=operator [injector.image]=injector [injector.k6Image]=injector-k6 [meter.image]=meter)

# need_syft, need_cosign: build the programs that list packages and sign, and put them into PATH.
need_syft() { need_go_tool github.com/anchore/syft/cmd/syft 1.57.1; }
need_cosign() { need_go_tool github.com/sigstore/cosign/v3/cmd/cosign 3.1.3; }

# pinned_values PREFIX "IMAGE=DIGEST ...": prints the chart's values.yaml with the images of this registry, by digest.
pinned_values() {
  awk -v published="$PUBLISHED/" -v prefix="$1/" -v digests="$2" '
    BEGIN {
      count = split(digests, pairs, " ")
      for (i = 1; i <= count; i++) {
        split(pairs[i], pair, "=")
        digest[pair[1]] = pair[2]
      }
    }
    $1 == "repository:" && index($2, published) == 1 {
      image = substr($2, length(published) + 1)
      $0 = substr($0, 1, index($0, published) - 1) prefix image
    }
    $1 == "digest:" && image in digest {
      sub(/"".*/, "\"" digest[image] "\"")
      delete digest[image]
    }
    { print }
    END {
      for (image in digest) missing = missing " " image
      if (missing) {
        print "error: no value of the chart names:" missing >"/dev/stderr"
        exit 1
      }
    }' "$CHART/values.yaml"
}

# pinned_readme PREFIX: prints the chart's README.md with the defaults of pinned_values.
pinned_readme() {
  local value edits=(-e "s#\`\"$PUBLISHED/#\`\"$1/#")
  for value in "${!CHART_VALUES[@]}"; do
    edits+=(-e "s#^| \`${value//./\\.}\.digest\` | [^|]* |#| \`$value.digest\` | see \`values.yaml\` |#")
  done
  sed "${edits[@]}" "$CHART/README.md"
}

# definitions: prints the definitions of the resources as one file.
definitions() {
  local file
  for file in "$CHART"/files/crds/*.yaml; do
    echo ---
    cat "$file"
  done
}

# manifest HELM CHART: prints the chart as one file for kubectl apply. Helm does not manage these objects, so the label
# that says so is left out.
manifest() {
  cat <<TEXT
# Frugality $VERSION: namespace, definitions, operator and node meter.
#
#   kubectl apply --server-side -f install.yaml
#
# Needs Kubernetes 1.30 or later. Each meter reads a sensor of its node. Without one it uses the model of the board, and
# joules are "Modelled". If it knows no such board, it does not start, and its log has the reason. The chart has settings
# for plugs, other models and Kepler: $PAGE
---
apiVersion: v1
kind: Namespace
metadata:
  name: frugality-system
  labels:
    # The meter mounts the node's cgroups and sensors, read-only.
    pod-security.kubernetes.io/enforce: privileged
TEXT
  "$1" template frugality "$2" --namespace frugality-system --kube-version "$MANIFEST_KUBERNETES" --skip-tests \
    --set meter.power.default.source.type=auto | sed '/app\.kubernetes\.io\/managed-by: Helm$/d'
}

# cli_archive ARCHITECTURE: prints the name of the archive with the plugin for kubectl.
cli_archive() { echo "kubectl-frugality_${VERSION}_linux_$1.tar.gz"; }

# krew_manifest ARCHITECTURE=SHA256...: prints the description of the plugin for krew.
krew_manifest() {
  local platform
  cat <<TEXT
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: frugality
spec:
  version: v$VERSION
  homepage: $PAGE
  shortDescription: Gate releases on joules per request
  description: |
    Measures images in the cluster, follows a FrugalityBenchmark to its verdict,
    and ends with an exit code per verdict. Prints results as tables, and exports
    the ledger of all attempts.
    The cluster needs the Frugality operator.
  platforms:
TEXT
  for platform; do
    cat <<TEXT
    - selector:
        matchLabels:
          os: linux
          arch: ${platform%%=*}
      uri: $PAGE/releases/download/v$VERSION/$(cli_archive "${platform%%=*}")
      sha256: ${platform#*=}
      bin: kubectl-frugality
TEXT
  done
}
