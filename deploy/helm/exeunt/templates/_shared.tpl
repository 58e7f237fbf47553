{{/* The labels of every object. */}}
{{- define "exeunt.labels" -}}
app.kubernetes.io/part-of: exeunt
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/*
The objects of a file of deploy/, whose rights the tests use, too: in the namespace of the
release, and named after the release, so that a cluster can have two releases. With
subjects, Roles and RoleBindings are created in the namespaces of the subjects.
Takes "file", "account" (false omits the ServiceAccounts of the file), "subjects" (of the
bindings; nil keeps those of the file), and "root".
*/}}
{{- define "exeunt.rbac" -}}
{{- $root := .root }}
{{- range $text := splitList "\n---\n" ($root.Files.Get .file) }}
{{- $object := fromYaml $text }}
{{- if not (and (eq $object.kind "ServiceAccount") (not $.account)) }}
{{- $metadata := dict "name" (replace "exeunt:" (printf "%s:" $root.Release.Name) $object.metadata.name) "labels" (fromYaml (include "exeunt.labels" $root)) }}
{{- with get $object.metadata "namespace" }}
{{- $_ := set $metadata "namespace" (ternary $root.Release.Namespace . (eq . "exeunt-system")) }}
{{- end }}
{{- $_ := set $object "metadata" $metadata }}
{{- with get $object "roleRef" }}
{{- if hasPrefix "exeunt:" .name }}
{{- $_ := set . "name" (replace "exeunt:" (printf "%s:" $root.Release.Name) .name) }}
{{- end }}
{{- end }}
{{- $subjects := list }}
{{- if hasKey $object "subjects" }}
{{- range $object.subjects }}
{{- $_ := set . "namespace" $root.Release.Namespace }}
{{- end }}
{{- if get $ "subjects" }}
{{- range $.subjects }}
{{- $subjects = append $subjects (dict "kind" "ServiceAccount" "name" .name "namespace" .namespace) }}
{{- end }}
{{- $_ := set $object "subjects" $subjects }}
{{- end }}
{{- end }}
{{- $namespaces := list (get $metadata "namespace") }}
{{- if and (has $object.kind (list "Role" "RoleBinding")) (get $ "subjects") }}
{{- $namespaces = list }}
{{- range $.subjects }}
{{- $namespaces = append $namespaces .namespace }}
{{- end }}
{{- end }}
{{- range $namespace := uniq $namespaces }}
{{- if $namespace }}
{{- $_ := set $metadata "namespace" $namespace }}
{{- if and (eq $object.kind "RoleBinding") (get $ "subjects") }}
{{- $own := list }}
{{- range $subjects }}
{{- if eq .namespace $namespace }}
{{- $own = append $own . }}
{{- end }}
{{- end }}
{{- $_ := set $object "subjects" $own }}
{{- end }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/*
The FlowSchemas of a file of deploy/, named after the release, for its service account in the namespace of
the release. Takes "file" and "root".
*/}}
{{- define "exeunt.priority" -}}
{{- $root := .root }}
{{- range $text := splitList "\n---\n" ($root.Files.Get .file) }}
{{- $schema := fromYaml $text }}
{{- $_ := set $schema "metadata" (dict "name" (replace "exeunt-" (printf "%s-" $root.Release.Name) $schema.metadata.name) "labels" (fromYaml (include "exeunt.labels" $root))) }}
{{- range $schema.spec.rules }}
{{- range .subjects }}
{{- $_ := set .serviceAccount "namespace" $root.Release.Namespace }}
{{- end }}
{{- end }}
---
{{ toYaml $schema }}
{{- end }}
{{- end }}

{{/*
"true" if the API server has MutatingAdmissionPolicy: by the kinds that it serves; without an API server, as in
"helm template", by the version of Kubernetes, because Helm then knows no kind but those of --api-versions.
*/}}
{{- define "exeunt.servesAdmissionPolicy" -}}
{{- $served := .Capabilities.APIVersions }}
{{- $asked := $served.Has "apps/v1/Deployment" }}
{{- if or ($served.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy") (and (not $asked) (semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version)) }}
{{- print "true" }}
{{- end }}
{{- end }}

{{/* Feature gates as a flag. Takes the map. */}}
{{- define "exeunt.featureGates" -}}
{{- $gates := list }}
{{- range $name, $on := . }}
{{- $gates = append $gates (printf "%s=%t" $name $on) }}
{{- end }}
{{- if $gates }}
- --feature-gates={{ join "," $gates }}
{{- end }}
{{- end }}

{{/* The security context of every container of this project. */}}
{{- define "exeunt.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* The security context of every pod: it runs as the user of the image, or one that OpenShift gives the namespace. */}}
{{- define "exeunt.podSecurity" -}}
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* The user of pods with two containers, of which one connects to a socket of the other. */}}
{{- define "exeunt.podUser" -}}
runAsUser: 65532
runAsGroup: 65532
{{- end }}

{{/*
An image of this project: its repository, or its name in the registry, with its digest, its
tag or the version of the chart. Takes "root", "image" and "name".
*/}}
{{- define "exeunt.image" -}}
{{- $repository := get .image "repository" }}
{{- if not $repository }}
{{- $repository = printf "%s/%s" (required "set registry to where your images are, such as registry.example.com/exeunt: no images are published, docs/install.md describes how to build them" .root.Values.registry) .name }}
{{- end }}
{{- with get .image "digest" }}
{{- printf "%s@%s" $repository . }}
{{- else }}
{{- printf "%s:%s" $repository (get .image "tag" | default .root.Chart.AppVersion) }}
{{- end }}
{{- end }}
