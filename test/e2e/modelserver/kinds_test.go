package modelserver

import (
	"strconv"

	"github.com/exeunt-io/exeunt/test/model/server"
)

const claimProtection = "kubernetes.io/pvc-protection"

func itoa(n int) string { return strconv.Itoa(n) }

// kind is a resource that requests are made for.
type kind struct {
	resource, group string
	namespaced      bool
	subresources    []string
	weight          int
	// create are the fields of a new object, edits the changes that are special to the kind.
	create, edits func(*generator) []edit
}

func (k kind) path(key server.Key) string {
	path := "/api/v1"
	if k.group != "" {
		path = "/apis/" + k.group + "/v1"
	}
	if key.Namespace != "" {
		path += "/namespaces/" + key.Namespace
	}
	path += "/" + k.resource
	if key.Name != "" {
		path += "/" + key.Name
	}
	return path
}

var statusOnly = []string{"status"}

var kinds = []kind{
	{resource: "persistentvolumes", weight: 8, subresources: statusOnly, create: newVolume, edits: volumeEdits},
	{resource: "persistentvolumeclaims", weight: 8, namespaced: true, subresources: statusOnly, create: newClaim, edits: claimEdits},
	{resource: "pods", weight: 2, namespaced: true, subresources: statusOnly, create: newPod, edits: podEdits},
	{resource: "namespaces", weight: 2, subresources: []string{"status", "finalize"}, create: newNamespace, edits: namespaceEdits},
	{resource: "storageclasses", group: "storage.k8s.io", weight: 1, create: newClass, edits: classEdits},
	{resource: "volumeattachments", group: "storage.k8s.io", weight: 2, subresources: statusOnly, create: newAttachment, edits: attachmentEdits},
	{resource: "leases", group: "coordination.k8s.io", weight: 4, namespaced: true, create: newLease, edits: leaseEdits},
}

func at(value any, path ...string) edit { return edit{path, value} }

// metadataEdits are changes of the metadata.
func metadataEdits(g *generator) []edit {
	finalizers := [][]string{{"example.com/a"}, {"example.com/a", "example.com/b"}, {"example.com/b"},
		{"kubernetes.io/pv-protection"}, {claimProtection}, {}}
	return []edit{
		at(pick(g, finalizers...), "metadata", "finalizers"),
		at(pick(g, finalizers...), "metadata", "finalizers"),
		at(nil, "metadata", "finalizers"),
		at(nil, "metadata", "finalizers"),
		at("example.com/b", "metadata", "finalizers", "-"),
		at(nil, "metadata", "finalizers", "0"),
		at(pick(g, "x", "y"), "metadata", "labels", "l"),
		at(pick(g, "x", "y"), "metadata", "annotations", "a"),
		at(pick(g, "x", ""), "metadata", "annotations", "pv.kubernetes.io/bound-by-controller"),
		at(document{}, "metadata", "annotations"),
		at(nil, "metadata", "annotations"),
		at(nil, "metadata", "annotations", "a"),
		at(g.deletionTime, "metadata", "deletionTimestamp"),
		at(nil, "metadata", "deletionTimestamp"),
		at(pick(g, 0, 30), "metadata", "deletionGracePeriodSeconds"),
		at(nil, "metadata", "deletionGracePeriodSeconds"),
		at("uid-other", "metadata", "uid"),
		at(nil, "metadata", "uid"),
		at(nil, "metadata", "resourceVersion"),
		at("424242", "metadata", "resourceVersion"),
		at(7, "metadata", "generation"),
		at("default", "metadata", "namespace"),
		at(g.prefix+"other", "metadata", "name"),
		at(pick[any](g, nil, 3, "x"), "unknown"),
	}
}

func newVolume(g *generator) []edit {
	return []edit{
		at([]string{"ReadWriteOnce"}, "spec", "accessModes"),
		at(pick(g, "1Gi", "1024Mi", "1.5Gi"), "spec", "capacity", "storage"),
		pick(g, at(document{"driver": "csi.example.com", "volumeHandle": "h", "readOnly": false}, "spec", "csi"),
			at(document{"path": "/x"}, "spec", "hostPath"),
			at(document{"server": "s", "path": "/"}, "spec", "nfs")),
	}
}

func volumeEdits(g *generator) []edit {
	claim := document{"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": g.namespace,
		"name": g.prefix + "a"}
	uid := server.Key{Resource: "persistentvolumeclaims", Namespace: g.namespace, Name: g.prefix + "a"}.UID(1)
	phases := []string{"Available", "Bound", "Released", "Failed", "Pending", ""}
	return []edit{
		at(pick(g, phases...), "status", "phase"),
		at(pick(g, phases...), "status", "phase"),
		at(pick(g, "m", ""), "status", "message"),
		at("2020-01-02T03:04:05Z", "status", "lastPhaseTransitionTime"),
		at(nil, "status", "lastPhaseTransitionTime"),
		at(nil, "status"),
		at(claim, "spec", "claimRef"),
		at(uid, "spec", "claimRef", "uid"),
		at(nil, "spec", "claimRef"),
		at(nil, "spec", "claimRef", "uid"),
		at(pick(g, "Delete", "Retain", "Recycle", "Bogus", ""), "spec", "persistentVolumeReclaimPolicy"),
		at(nil, "spec", "persistentVolumeReclaimPolicy"),
		at(pick(g, "h", "other", ""), "spec", "csi", "volumeHandle"),
		at(document{"name": "n", "namespace": "s"}, "spec", "csi", "controllerExpandSecretRef"),
		at(nil, "spec", "csi"),
		at(pick(g, "1Gi", "2Gi"), "spec", "capacity", "storage"),
		at(nil, "spec", "capacity"),
		at(pick(g, "Block", "Filesystem"), "spec", "volumeMode"),
		at(pick(g, "gold", ""), "spec", "storageClassName"),
		at([]string{"ReadWriteMany"}, "spec", "accessModes"),
		at([]string{}, "spec", "accessModes"),
		at([]string{"ro"}, "spec", "mountOptions"),
		at(nil, "spec"),
	}
}

func newClaim(g *generator) []edit {
	created := []edit{
		at([]string{"ReadWriteOnce"}, "spec", "accessModes"),
		at(pick(g, "1Gi", "1024Mi"), "spec", "resources", "requests", "storage"),
	}
	if g.IntN(2) == 0 {
		created = append(created, at(pick(g, "", g.prefix+"a", g.prefix+"grows"), "spec", "storageClassName"))
	}
	return created
}

func claimEdits(g *generator) []edit {
	phases := []string{"Bound", "Bound", "Lost", "Pending", ""}
	const beta = "volume.beta.kubernetes.io/storage-class"
	return []edit{
		at(pick(g, phases...), "status", "phase"),
		at(pick(g, phases...), "status", "phase"),
		at(pick(g, phases...), "status", "phase"),
		at(pick(g, "1Gi", "2Gi"), "status", "capacity", "storage"),
		at([]string{"ReadWriteOnce"}, "status", "accessModes"),
		at(nil, "status"),
		at(pick(g, "pv-1", "pv-2", ""), "spec", "volumeName"),
		at("pv-1", "spec", "volumeName"),
		at(nil, "spec", "volumeName"),
		at(pick(g, "", "gold", g.prefix+"grows"), "spec", "storageClassName"),
		at(pick(g, "gold", g.prefix+"grows"), "metadata", "annotations", beta),
		at(nil, "metadata", "annotations", beta),
		at(pick(g, "1Gi", "2Gi", "3Gi", "1", "0"), "spec", "resources", "requests", "storage"),
		at(pick(g, "2Gi", "3Gi"), "spec", "resources", "requests", "storage"),
		at(nil, "spec", "resources"),
		at([]string{"ReadWriteMany"}, "spec", "accessModes"),
		at([]string{}, "spec", "accessModes"),
		at(pick(g, "Block", "Filesystem"), "spec", "volumeMode"),
		at(document{"kind": "PersistentVolumeClaim", "name": "source"}, "spec", "dataSource"),
		at(document{"kind": "PersistentVolumeClaim", "name": "source"}, "spec", "dataSourceRef"),
		at(nil, "spec"),
	}
}

func newPod(*generator) []edit {
	return []edit{at([]document{{"name": "c", "image": "i"}}, "spec", "containers")}
}

func podEdits(g *generator) []edit {
	return []edit{
		at(pick(g, "Running", "Succeeded", "Pending"), "status", "phase"),
		at("m", "status", "message"),
		at("other", "spec", "hostname"),
	}
}

func newNamespace(g *generator) []edit {
	return []edit{at(pick(g, "x", "y"), "metadata", "labels", "l")}
}

// namespaceEdits changes spec and status by their subresources only: kube-apiserver ignores
// other changes of them, but counts them as changes of the managed fields.
func namespaceEdits(g *generator) []edit {
	if g.sub == "" {
		return newNamespace(g)
	}
	return []edit{
		at(pick(g, []string{"kubernetes"}, []string{}, []string{"kubernetes", "example.com/a"}), "spec", "finalizers"),
		at(nil, "spec", "finalizers"),
		at(nil, "spec"),
		at(pick(g, "Active", "Terminating"), "status", "phase"),
	}
}

func newClass(g *generator) []edit {
	return []edit{at("csi.example.com", "provisioner"), at(pick(g, true, false), "allowVolumeExpansion")}
}

func classEdits(g *generator) []edit {
	return []edit{
		at(pick(g, "x", "y"), "parameters", "p"),
		at("other.example.com", "provisioner"),
		at(nil, "provisioner"),
		at(pick(g, "Delete", "Retain"), "reclaimPolicy"),
		at(pick(g, "Immediate", "WaitForFirstConsumer"), "volumeBindingMode"),
		at(pick(g, true, false), "allowVolumeExpansion"),
		at([]string{"ro"}, "mountOptions"),
	}
}

func newAttachment(g *generator) []edit {
	return []edit{
		at("csi.example.com", "spec", "attacher"), at("n", "spec", "nodeName"),
		at(pick(g, "pv-1", "pv-2"), "spec", "source", "persistentVolumeName"),
	}
}

func attachmentEdits(g *generator) []edit {
	return []edit{
		at(pick(g, "n", "other"), "spec", "nodeName"),
		at(pick(g, true, false), "status", "attached"),
		at(pick(g, "x", "y"), "status", "attachmentMetadata", "m"),
		at(nil, "status"),
	}
}

func newLease(g *generator) []edit {
	return []edit{at(pick(g, "x", "y"), "spec", "holderIdentity")}
}

func leaseEdits(g *generator) []edit {
	return []edit{
		at(pick(g, "x", "y"), "spec", "holderIdentity"),
		at(pick(g, "2020-01-02T03:04:05.000000Z", "2020-01-02T03:04:05Z"), "spec", "renewTime"),
		at("2020-01-02T03:04:05.000006Z", "spec", "acquireTime"),
		at(pick(g, 3, 15), "spec", "leaseDurationSeconds"),
		at(pick(g, 0, 1), "spec", "leaseTransitions"),
		at(nil, "spec"),
	}
}
