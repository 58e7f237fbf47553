package server

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Finalizers that the admission plugin StorageObjectInUseProtection adds to new objects.
const (
	volumeProtection = "kubernetes.io/pv-protection"
	claimProtection  = "kubernetes.io/pvc-protection"
)

func volumeDefaults(d document) {
	spec := child(d, "spec")
	setDefault(child(d, "status"), "phase", string(v1.VolumePending))
	setDefault(spec, "persistentVolumeReclaimPolicy", string(v1.PersistentVolumeReclaimRetain))
	setDefault(spec, "volumeMode", string(v1.PersistentVolumeFilesystem))
	if hostPath, ok := spec["hostPath"].(document); ok {
		setDefault(hostPath, "type", "")
	}
}

func createVolume(_ Cluster, d document) {
	addFinalizer(d, volumeProtection)
	d["status"] = document{"phase": string(v1.VolumePending), "lastPhaseTransitionTime": Now}
}

func updateVolume(subresource string, now, old document) {
	if subresource == "" {
		now["status"] = old["status"]
		return
	}
	now["spec"] = old["spec"]
	const transition = "lastPhaseTransitionTime"
	status, before := child(now, "status"), child(old, "status")
	samePhase := status["phase"] == before["phase"]
	switch {
	case samePhase && status[transition] == nil:
		put(status, transition, before[transition])
	case !samePhase && (status[transition] == nil || status[transition] == before[transition]):
		status[transition] = Now
	}
}

// notSource are the fields of the spec of a volume beside its source.
var notSource = []string{
	"capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName", "mountOptions",
	"volumeMode",
	"nodeAffinity", "volumeAttributesClassName",
}

func checkVolume(now, old document) problems {
	spec := child(now, "spec")
	source := without(spec, notSource...)
	found := slices.Concat(
		required(spec["accessModes"], "spec", "accessModes"),
		checkCapacity(spec["capacity"]),
		checkSource(source),
	)
	policies := []string{string(v1.PersistentVolumeReclaimDelete), string(v1.PersistentVolumeReclaimRecycle),
		string(v1.PersistentVolumeReclaimRetain)}
	if policy, _ := text(spec, "persistentVolumeReclaimPolicy"); !slices.Contains(policies, policy) {
		found = append(found, field.NotSupported(field.NewPath("spec", "persistentVolumeReclaimPolicy"), policy, policies))
	}
	if old == nil {
		return found
	}
	return append(found, checkVolumeChange(spec, source, child(old, "spec"))...)
}

func checkCapacity(value any) problems {
	capacity, _ := value.(document)
	if len(capacity) == 1 && capacity["storage"] != nil {
		return nil
	}
	return append(required(value, "spec", "capacity"), field.NotSupported(field.NewPath("spec", "capacity"), "",
		[]string{"storage"}))
}

// checkSource forbids all sources but the first; a CSI volume is the last kind.
func checkSource(source document) problems {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(source)), func(name string) bool { return name == "csi" })
	csi, ok := source["csi"].(document)
	switch {
	case ok && len(names) == 0:
		return slices.Concat(required(csi["driver"], "spec", "csi", "driver"),
			required(csi["volumeHandle"], "spec", "csi", "volumeHandle"))
	case ok:
		names = append(names, "csi")
	case len(names) == 0:
		return required(nil, "spec")
	}
	var found problems
	for _, name := range names[1:] {
		found = append(found, field.Forbidden(field.NewPath("spec", name), "may not specify more than 1 volume type"))
	}
	return found
}

// checkVolumeChange returns the forbidden changes of the spec.
func checkVolumeChange(spec, source, oldSpec document) problems {
	const expandSecret = "controllerExpandSecretRef"
	oldSource := without(oldSpec, notSource...)
	csi, _ := source["csi"].(document)
	if before, ok := oldSource["csi"].(document); ok && csi != nil && before[expandSecret] == nil {
		source["csi"] = without(csi, expandSecret)
	}
	var found problems
	if !equal(source, oldSource) {
		found = append(found, field.Forbidden(field.NewPath("spec", "persistentvolumesource"),
			"spec.persistentvolumesource is immutable after creation"))
	}
	found = append(found, immutable(spec["volumeMode"], oldSpec["volumeMode"], "volumeMode")...)
	if oldSpec["nodeAffinity"] != nil {
		found = append(found, immutable(spec["nodeAffinity"], oldSpec["nodeAffinity"], "nodeAffinity")...)
	}
	return found
}
