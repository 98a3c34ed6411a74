#!/usr/bin/env bash
# The step of all pipelines: kubectl-frugality gate with its options from the environment. Ends with the gate's exit code.
#   GATE_NAME            benchmark (required)
#   GATE_NAMESPACE       its namespace
#   GATE_CONTEXT         context of the kubeconfig
#   GATE_IMAGES          images of the release with their digests, separated by blanks (required)
#   GATE_ALLOW_TAG       true: accept images without a digest
#   GATE_TIMEOUT         longest time until the verdict
#   GATE_WAIT_FOR_IMAGE  longest time until the benchmark exists and measures the images
#   GATE_SUMMARY         file for a summary in Markdown
#   GATE_JUNIT           file for JUnit XML
#   GATE_OUTPUTS         file for verdict=, open=, code= and message=
#   GATE_ANNOTATIONS     github: print GitHub's annotations
set -euo pipefail

: "${GATE_NAME:?is the name of the benchmark: set it}"
: "${GATE_IMAGES:?are the images of the release: set them}"
command -v kubectl-frugality >/dev/null || {
  echo "kubectl-frugality is not in the PATH: install it in a step before this one" >&2
  exit 1
}
options=()
option() { # FLAG VALUE
  [[ -z $2 ]] || options+=("$1=$2")
}
option --namespace "${GATE_NAMESPACE:-}"
option --context "${GATE_CONTEXT:-}"
option --timeout "${GATE_TIMEOUT:-}"
option --wait-for-image "${GATE_WAIT_FOR_IMAGE:-}"
option --summary "${GATE_SUMMARY:-}"
option --junit "${GATE_JUNIT:-}"
option --outputs "${GATE_OUTPUTS:-}"
# All lines. read fails at the end of its input.
read -r -d '' -a images <<<"$GATE_IMAGES" || true
((${#images[@]})) || {
  echo "GATE_IMAGES has only blanks: set it to the images of the release" >&2
  exit 1
}
for image in "${images[@]}"; do
  options+=("--image=$image")
done
[[ ${GATE_ALLOW_TAG:-} != true ]] || options+=(--allow-tag)
[[ ${GATE_ANNOTATIONS:-} != github ]] || options+=(--annotations)
exec kubectl-frugality gate "${options[@]}" -- "$GATE_NAME"
