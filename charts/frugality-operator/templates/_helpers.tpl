{{/* Labels of every object. Argument: dict "root" $ "name" NAME, the value of app.kubernetes.io/name. */}}
{{- define "frugality.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{ include "frugality.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: frugality
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{/* Labels that select pods. They never change. Same argument as frugality.labels. */}}
{{- define "frugality.selectorLabels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{/* An image's reference. Argument: dict "root" $ "image" with repository, tag and digest. */}}
{{- define "frugality.image" -}}
{{ printf "%s:%s" .image.repository (.image.tag | default .root.Chart.AppVersion | toString) }}
{{- with .image.digest }}@{{ . }}{{ end }}
{{- end }}

{{/* Prefixes of the database's images that a benchmark may name, as a JSON list. */}}
{{- define "frugality.databaseImages" -}}
{{- $default := regexReplaceAll ":[^/]*$" .Values.database.image "" }}
{{- prepend .Values.database.allowedImages $default | uniq | toJson }}
{{- end }}

{{/* Requests and limits as JSON, with every amount as a string. */}}
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

{{/* Pod settings that the restricted Pod Security Standard requires. */}}
{{- define "frugality.restrictedPod" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* Container settings that the standard requires, with a read-only root file system. */}}
{{- define "frugality.restrictedContainer" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Scheduling of the operator's pods: by default not on a measured node. */}}
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

{{/* Fails if the board's power is unknown or is set twice, because the meter must not invent joules. */}}
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

The node meter does not know the power of your nodes: no %s is set.
Set one of these:

  --set meter.power.default.source.type=auto
      a sensor wired to the node, else the model of the board, if the board is known;
      meter.power also accepts a plug (docs/power-on-a-pi.md);

  --set meter.board=pi-4b
      the model of a Raspberry Pi: pi-zero-2w, pi-2b, pi-3b, pi-3b-plus, pi-4b or pi-5b;

  --set meter.idleWatts=2.7 --set meter.wattsPerCpu=0.925
      any other board, with your own figures: idle watts, and
      (watts with all CPUs busy - idle watts) / number of CPUs;

  --set meter.enabled=false
      no node meter: the operator reads energy from a Kepler that already runs.
` (join " and no " $missing)) }}
{{- end }}
{{- if and (ne .Values.meter.board "generic") $given }}
{{- fail (printf `

The board %s has its own watts: leave out %s,
or use --set meter.board=generic with your own watts.
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

Only %s is set. The uncertainty of the energy needs both uncertainties: set
meter.idleWattsRelativeUncertainty and meter.wattsPerCpuRelativeUncertainty, or neither.
` (join "" $stated)) }}
{{- end }}
{{- $given = concat $given $stated }}
{{- if and .Values.meter.power.default $given }}
{{- fail (printf `

meter.power.default sets the power source, so the meter does not use %s:
write %s below meter.power.default.
` (join " and " $given) (join " and " $given | replace "meter." "")) }}
{{- end }}
{{- if and .Values.meter.power.groups .Values.meter.affinity }}
{{- fail "meter.power.groups and meter.affinity exclude each other: the groups' labels decide which meter runs on a node." }}
{{- end }}
{{- range $field := list "name" "label" }}
{{- $used := dict }}
{{- range $.Values.meter.power.groups }}
{{- $value := index . $field }}
{{- if hasKey $used $value }}
{{- fail (printf `

More than one group of meter.power.groups has the %s %s.
Give each group its own name and its own label: a node has one meter.
` $field $value) }}
{{- end }}
{{- $used = set $used $value true }}
{{- end }}
{{- end }}
{{- end }}
