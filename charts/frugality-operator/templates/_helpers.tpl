{{/* Labels of every object. Argument: dict "root" $ "name" the value of app.kubernetes.io/name. */}}
{{- define "frugality.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{ include "frugality.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: frugality
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{/* Labels that select pods; they never change. Same argument. */}}
{{- define "frugality.selectorLabels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{/* An image's reference. Argument: dict "root" $ "image" with repository and tag. */}}
{{- define "frugality.image" -}}
{{ printf "%s:%s" .image.repository (.image.tag | default .root.Chart.AppVersion | toString) }}
{{- end }}

{{/* Requests and limits as JSON, every amount as a string. */}}
{{- define "frugality.resources" -}}
{{- $resources := dict }}
{{- range $kind, $amounts := . }}
{{- $texts := dict }}
{{- range $name, $amount := $amounts }}
{{- $_ := set $texts $name (toString $amount) }}
{{- end }}
{{- $_ := set $resources $kind $texts }}
{{- end }}
{{- toJson $resources }}
{{- end }}

{{/* What the restricted Pod Security Standard asks of a pod. */}}
{{- define "frugality.restrictedPod" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* What it asks of a container, and a root file system that nobody writes to. */}}
{{- define "frugality.restrictedContainer" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Where the operator's pods run: off the measured node. */}}
{{- define "frugality.operatorPlacement" -}}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Names of the meters' DaemonSets, separated by commas. */}}
{{- define "frugality.meterDaemonSets" -}}
{{- if .Values.meter.enabled }}
{{- $names := list "frugality-meter" }}
{{- range .Values.meter.power.groups }}
{{- $names = append $names (printf "frugality-meter-%s" .name) }}
{{- end }}
{{- join "," $names }}
{{- else }}
{{- .Values.energy.kepler.daemonSet }}
{{- end }}
{{- end }}

{{/* Stops where the power of the board is not known, or said twice: no joule is made up. */}}
{{- define "frugality.checkMeter" -}}
{{- $missing := list }}
{{- $given := list }}
{{- range list "idleWatts" "wattsPerCpu" }}
{{- if kindIs "invalid" (index $.Values.meter .) }}
{{- $missing = append $missing (printf "meter.%s" .) }}
{{- else }}
{{- $given = append $given (printf "meter.%s" .) }}
{{- end }}
{{- end }}
{{- if and (eq .Values.meter.board "generic") (not .Values.meter.power.default) $missing }}
{{- fail (printf `

The node meter does not know how much power your nodes draw: no %s is set.
Write one of these:

  --set meter.power.default.source.type=auto
      a sensor that is wired to the node, or else the model of the board, if it is known;
      a plug is named in meter.power too (docs/power-on-a-pi.md);

  --set meter.board=pi-4b
      the model of a Raspberry Pi: pi-zero-2w, pi-2b, pi-3b, pi-3b-plus, pi-4b or pi-5b;

  --set meter.idleWatts=2.7 --set meter.wattsPerCpu=0.925
      any other board, with your own figures: watts with nothing to do, and
      (watts with all CPUs busy - idle watts) / number of CPUs;

  --set meter.enabled=false
      no node meter: energy is read from a Kepler that runs already.
` (join " and no " $missing)) }}
{{- end }}
{{- if and (ne .Values.meter.board "generic") $given }}
{{- fail (printf `

The board %s has its own watts: leave out %s,
or write --set meter.board=generic to use yours.
` .Values.meter.board (join " and " $given)) }}
{{- end }}
{{- $stated := list }}
{{- range list "idleWattsRelativeUncertainty" "wattsPerCpuRelativeUncertainty" }}
{{- if not (kindIs "invalid" (index $.Values.meter .)) }}
{{- $stated = append $stated (printf "meter.%s" .) }}
{{- end }}
{{- end }}
{{- if eq (len $stated) 1 }}
{{- fail (printf `

Only %s is set. The accuracy of an energy needs that of both watts: write
meter.idleWattsRelativeUncertainty and meter.wattsPerCpuRelativeUncertainty, or neither.
` (join "" $stated)) }}
{{- end }}
{{- $given = concat $given $stated }}
{{- if and .Values.meter.power.default $given }}
{{- fail (printf `

Where meter.power.default says what power is read from, %s are not used:
write %s below meter.power.default.
` (join " and " $given) (join " and " $given | replace "meter." "")) }}
{{- end }}
{{- if and .Values.meter.power.groups .Values.meter.affinity }}
{{- fail "meter.power.groups and meter.affinity exclude each other: the groups' labels decide which meter runs on a node." }}
{{- end }}
{{- end }}
