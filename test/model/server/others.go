package server

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func uidOf(r route, object Object) types.UID {
	return types.UID(r.key().UID(object.Count))
}

// keepStatus keeps the status from writes of the object, and the rest from writes of the
// status.
func keepStatus(subresource string, now, old document) {
	field := "status"
	if subresource != "" {
		field = "spec"
	}
	put(now, field, old[field])
}

// updatePod keeps the owners from writes of the status, too, and ignores a deletionTimestamp.
func updatePod(subresource string, now, old document) {
	keepStatus(subresource, now, old)
	if subresource != "" {
		meta := child(now, "metadata")
		put(meta, "ownerReferences", at(old, "metadata", "ownerReferences"))
		put(meta, "deletionTimestamp", nil)
	}
}

func createPod(_ Cluster, d document) {
	child(d, "metadata")["generation"] = float64(1)
	d["status"] = document{"phase": string(v1.PodPending)}
}

// checkPod forbids every change of the spec: nothing here changes an image.
func checkPod(now, old document) problems {
	if old == nil {
		return required(at(now, "spec", "containers"), "spec", "containers")
	}
	if equal(now["spec"], old["spec"]) {
		return nil
	}
	return problems{field.Forbidden(field.NewPath("spec"), "pod updates may not change this field")}
}

func classDefaults(d document) {
	setDefault(d, "reclaimPolicy", string(v1.PersistentVolumeReclaimDelete))
	setDefault(d, "volumeBindingMode", string(storagev1.VolumeBindingImmediate))
}

func checkClass(now, old document) problems {
	found := required(now["provisioner"], "provisioner")
	if old == nil {
		return found
	}
	for _, name := range []string{"parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"} {
		found = append(found, immutable(now[name], old[name], name)...)
	}
	return found
}

func createAttachment(_ Cluster, d document) {
	d["status"] = document{"attached": false}
}

// updateAttachment keeps the metadata from writes of the status, too.
func updateAttachment(subresource string, now, old document) {
	keepStatus(subresource, now, old)
	if subresource == "" {
		return
	}
	meta, before := child(now, "metadata"), child(old, "metadata")
	for _, name := range []string{"deletionTimestamp", "labels", "annotations", "finalizers", "ownerReferences"} {
		put(meta, name, before[name])
	}
}

func checkAttachment(now, old document) problems {
	spec := child(now, "spec")
	found := slices.Concat(required(spec["attacher"], "spec", "attacher"), required(spec["nodeName"], "spec", "nodeName"))
	if old != nil {
		found = append(found, immutable(now["spec"], old["spec"], "spec")...)
	}
	return found
}

const nameLabel = "kubernetes.io/metadata.name"

func namespaceDefaults(d document) {
	meta := child(d, "metadata")
	if name := meta["name"]; name != nil {
		child(meta, "labels")[nameLabel] = name
	}
	setDefault(child(d, "status"), "phase", string(v1.NamespaceActive))
}

func createNamespace(_ Cluster, d document) {
	d["status"] = document{"phase": string(v1.NamespaceActive)}
	spec := child(d, "spec")
	if finalizers := stringsAt(spec, "finalizers"); !slices.Contains(finalizers, string(v1.FinalizerKubernetes)) {
		spec["finalizers"] = asList(append(finalizers, string(v1.FinalizerKubernetes)))
	}
}

// updateNamespace lets only the subresource finalize change the finalizers of the spec.
func updateNamespace(subresource string, now, old document) {
	switch subresource {
	case "status":
		put(now, "spec", old["spec"])
	case finalize:
		put(now, "status", old["status"])
	default:
		put(now, "spec", old["spec"])
		put(now, "status", old["status"])
	}
}

// checkNamespaceStatus requires the phase that the deletionTimestamp implies.
func checkNamespaceStatus(now document) problems {
	phase, wanted := at(now, "status", "phase"), v1.NamespaceActive
	if at(now, "metadata", "deletionTimestamp") != nil {
		wanted = v1.NamespaceTerminating
	}
	if phase == string(wanted) {
		return nil
	}
	return problems{field.Invalid(field.NewPath("status", "Phase"), phase,
		"the deletionTimestamp implies "+string(wanted))}
}

// hasSpecFinalizers reports whether the object is a namespace whose content may be left.
func hasSpecFinalizers(d document) bool {
	return d["kind"] == "Namespace" && len(stringsAt(d, "spec", "finalizers")) > 0
}
