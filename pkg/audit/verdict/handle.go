package verdict

import (
	"regexp"
	"strings"
)

// Spelling returns a key that is equal for all handles that differ in case, project, path
// or zone only: the last part of the path, in lower case.
func Spelling(handle string) string {
	trimmed := strings.TrimRight(handle, `/\`)
	return strings.ToLower(trimmed[strings.LastIndexAny(trimmed, `/\`)+1:])
}

// kubeletHandle is the form of the handles that a kubelet gives to inline volumes of pods.
var kubeletHandle = regexp.MustCompile(`^csi-[0-9a-f]{64}$`)

// IsKubeletHandle reports whether a kubelet gave the handle to an inline volume of a pod.
func IsKubeletHandle(handle string) bool { return kubeletHandle.MatchString(handle) }

// provisioned is a name that a provisioner gives to a volume of a claim: a prefix and the
// UID of the claim.
var provisioned = regexp.MustCompile(`(?i)[a-z0-9.]+-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// nameKeys are the keys of a volume context that hold the requested name of the volume.
var nameKeys = []string{"csi.storage.k8s.io/pv/name", "name", "volumeName"}

// Name returns the requested name of a volume, "" if neither the volume context nor the
// handle has one.
func Name(handle string, volumeContext map[string]string) string {
	for _, key := range nameKeys {
		if name := volumeContext[key]; name != "" {
			return name
		}
	}
	return provisioned.FindString(handle)
}
