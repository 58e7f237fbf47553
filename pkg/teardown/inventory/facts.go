package inventory

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unique"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/disk"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/pkg/teardown/claim"
)

// PreserveLabel keeps what it is on. Package alive, which the core cannot import, has it for operators.
const PreserveLabel = "lifecycle.exeunt.io/preserve"

// key is the name of an object with a namespace.
type key struct{ namespace, name string }

// String returns NAMESPACE/NAME, "" for no object.
func (k key) String() string {
	if k.name == "" {
		return ""
	}
	return k.namespace + "/" + k.name
}

func keyOf(object metav1.Object) key { return key{once(object.GetNamespace()), object.GetName()} }

// once returns the text that is held once, however many objects have it: each object that is read has its own.
func once(text string) string { return unique.Make(text).Value() }

// volume is what is kept of a PersistentVolume.
type volume struct {
	name, version  string
	uid            types.UID
	created        time.Time
	size           int64
	driver, handle string
	// disks are its Handles: the first is its own, the others enclose it.
	disks []string
	// server is the address of the server of its data, "" for a disk.
	server   string
	claim    key
	claimUID types.UID
	phase    storage.Phase
	// claimed: it refers to a claim.
	claimed, deletable, provisioned, preserved, marked, held bool
	// isCSI: a CSI driver deletes the disk, also of an in-tree volume that is migrated.
	isCSI bool
	// onNode: its disk is that of one node (#09).
	onNode bool
}

func factsOfVolume(v *v1.PersistentVolume) *volume {
	_, preserved := v.Labels[PreserveLabel]
	capacity := v.Spec.Capacity[v1.ResourceStorage]
	policy := v.Spec.PersistentVolumeReclaimPolicy
	facts := &volume{
		name: v.Name, version: v.ResourceVersion, uid: v.UID, created: v.CreationTimestamp.Time, size: capacity.Value(),
		driver: once(driverOf(v)), handle: handleOf(v), disks: Handles(v), phase: storage.PhaseOf(v.Status.Phase),
		deletable: storage.PolicyOf(policy) == storage.PolicyDelete, provisioned: storage.HasProvisioner(v),
		preserved: preserved, marked: preserved && storage.PolicyOf(policy) == storage.PolicyRetain,
		held:   finalizer.Has(v.Finalizers, finalizer.External) || finalizer.Has(v.Finalizers, finalizer.InTree),
		isCSI:  v.Spec.CSI != nil || v.Annotations[storage.AnnMigratedTo] != "",
		server: once(serverOf(v)),
		onNode: v.Spec.HostPath != nil || v.Spec.Local != nil || onOneHost(v.Spec.NodeAffinity),
	}
	if ref := v.Spec.ClaimRef; ref != nil {
		facts.claimed, facts.claim, facts.claimUID = true, key{ref.Namespace, ref.Name}, ref.UID
	}
	return facts
}

// sharing returns the volume with the texts of its claim, which has the same: a third of what is kept of both.
func (f *volume) sharing(claims map[key]*request) *volume {
	if c := claims[f.claim]; c != nil && c.uid == f.claimUID && c.volume == f.name {
		f.name, f.claim, f.claimUID = c.volume, c.key, c.uid
	}
	return f
}

// driverOf returns the CSI driver of the volume, else its provisioner.
func driverOf(v *v1.PersistentVolume) string {
	if v.Spec.CSI != nil {
		return v.Spec.CSI.Driver
	}
	if driver := v.Annotations[storage.AnnMigratedTo]; driver != "" {
		return driver
	}
	return v.Annotations[storage.AnnDynamicallyProvisioned]
}

// handleOf returns what a person calls the disk.
func handleOf(v *v1.PersistentVolume) string {
	switch source := v.Spec.PersistentVolumeSource; {
	case source.CSI != nil:
		return source.CSI.VolumeHandle
	case source.AWSElasticBlockStore != nil:
		return source.AWSElasticBlockStore.VolumeID
	case source.GCEPersistentDisk != nil:
		return source.GCEPersistentDisk.PDName
	case source.AzureDisk != nil:
		return source.AzureDisk.DataDiskURI
	case source.Cinder != nil:
		return source.Cinder.VolumeID
	case source.VsphereVolume != nil:
		return source.VsphereVolume.VolumePath
	case source.NFS != nil:
		return source.NFS.Server + ":" + source.NFS.Path
	case source.HostPath != nil:
		return source.HostPath.Path
	case source.Local != nil:
		return source.Local.Path
	}
	return ""
}

// Handles returns the names under which the disk of a volume is known, its own name first. A directory has the names of
// its parents, too: their deletion deletes it.
func Handles(v *v1.PersistentVolume) []string {
	switch source := v.Spec.PersistentVolumeSource; {
	case source.NFS != nil:
		return disk.Enclosing("nfs", disk.NFS(v))
	case source.HostPath != nil:
		return disk.Enclosing("directory", disk.HostPath(v))
	case source.Local != nil:
		return disk.Enclosing("directory", disk.Local(v))
	case source.AWSElasticBlockStore != nil: // aws://ZONE/vol-ID, and vol-ID for the CSI driver
		return []string{ebsDriver + ":" + path.Base(source.AWSElasticBlockStore.VolumeID)}
	case source.GCEPersistentDisk != nil:
		return []string{gceDriver + ":" + source.GCEPersistentDisk.PDName}
	case source.AzureDisk != nil:
		return []string{azureDriver + ":" + strings.ToLower(source.AzureDisk.DataDiskURI)}
	case source.Cinder != nil:
		return []string{"cinder.csi.openstack.org:" + source.Cinder.VolumeID}
	case source.CSI != nil:
		return []string{familyOf(source.CSI.Driver) + ":" + csiHandle(source.CSI.Driver, source.CSI.VolumeHandle)}
	case source.AzureFile != nil:
		return []string{fileDriver + ":" + strings.ToLower(source.AzureFile.ShareName)}
	case source.PortworxVolume != nil:
		return []string{"pxd.portworx.com:" + source.PortworxVolume.VolumeID}
	default:
		return otherHandles(&source)
	}
}

// mounting are the fields of sources that say how a disk is reached or mounted, not which.
var mounting = []string{
	"chapAuthDiscovery", "chapAuthSession", "fsType", "initiatorName", "iscsiInterface", "keyring", "monitors", "portals",
	"readOnly", "secretFile", "secretRef", "storagePolicyID", "storagePolicyName", "targetPortal", "user",
}

// otherHandles returns the source itself: two volumes of one disk say the same.
func otherHandles(source *v1.PersistentVolumeSource) (handles []string) {
	var kinds map[string]map[string]any
	if encoded, err := json.Marshal(source); err != nil || json.Unmarshal(encoded, &kinds) != nil {
		return nil
	}
	for kind, fields := range kinds {
		maps.DeleteFunc(fields, func(name string, _ any) bool { return slices.Contains(mounting, name) })
		if identity, err := json.Marshal(fields); err == nil {
			handles = append(handles, kind+":"+strings.ToLower(string(identity)))
		}
	}
	return handles
}

const (
	ebsDriver   = "ebs.csi.aws.com"
	gceDriver   = "pd.csi.storage.gke.io"
	azureDriver = "disk.csi.azure.com"
	fileDriver  = "file.csi.azure.com"
)

// familyOf returns the driver that names the same disks alike: EKS Auto Mode has a driver of its own, to which volumes are
// moved, and the driver of Ceph has the name of its operator in front.
func familyOf(driver string) string {
	if driver == "ebs.csi.eks.amazonaws.com" {
		return ebsDriver
	}
	for _, name := range []string{"rbd.csi.ceph.com", "cephfs.csi.ceph.com"} {
		if strings.HasSuffix(driver, "."+name) {
			return name
		}
	}
	return driver
}

// csiHandle returns the handle as an in-tree volume of the same disk names it. A disk that two volumes seem to share is
// kept, so a name that fits too often loses nothing.
func csiHandle(driver, handle string) string {
	switch driver {
	case gceDriver:
		return path.Base(handle)
	case azureDriver:
		return strings.ToLower(handle)
	case fileDriver: // GROUP#ACCOUNT#SHARE#...
		if parts := strings.Split(handle, "#"); len(parts) > 2 {
			handle = parts[2]
		}
		return strings.ToLower(handle)
	}
	return handle
}

// onOneHost reports whether the affinity names nodes by their host name.
func onOneHost(affinity *v1.VolumeNodeAffinity) bool {
	if affinity == nil || affinity.Required == nil {
		return false
	}
	return slices.ContainsFunc(affinity.Required.NodeSelectorTerms, func(term v1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(term.MatchExpressions, func(r v1.NodeSelectorRequirement) bool {
			return r.Key == v1.LabelHostname && r.Operator == v1.NodeSelectorOpIn && len(r.Values) == 1
		})
	})
}

// request is what is kept of a claim.
type request struct {
	key
	version    string
	uid, owner types.UID
	created    time.Time
	size       int64
	phase      claim.Phase
	// volume is spec.volumeName.
	volume, provisioner, class, node string
	preserved, deleting              bool
}

func factsOfClaim(c *v1.PersistentVolumeClaim) *request {
	_, preserved := c.Labels[PreserveLabel]
	capacity := c.Spec.Resources.Requests[v1.ResourceStorage]
	facts := &request{
		key: keyOf(c), version: c.ResourceVersion, uid: c.UID, created: c.CreationTimestamp.Time, size: capacity.Value(),
		volume: c.Spec.VolumeName, provisioner: once(storage.ClaimProvisioner(c)), class: once(storage.ClaimClass(c)),
		node: c.Annotations[storage.AnnSelectedNode], preserved: preserved, deleting: c.DeletionTimestamp != nil,
	}
	switch c.Status.Phase {
	case v1.ClaimBound:
		facts.phase = claim.Bound
	case v1.ClaimLost:
		facts.phase = claim.Lost
	case v1.ClaimPending:
	}
	for _, owner := range c.OwnerReferences { // the garbage collector does not ask whether it controls the claim
		if owner.Kind == "Pod" {
			facts.owner = owner.UID
		}
	}
	return facts
}

// pod is what is kept of a pod that uses claims.
type pod struct {
	key
	version          string
	uid              types.UID
	created          time.Time
	deleting, mirror bool
	// claims are the names of its claims.
	claims []string
}

// factsOfPod returns nil for a pod without claims.
func factsOfPod(p *v1.Pod) *pod {
	var claims []string
	for i := range p.Spec.Volumes {
		switch source := &p.Spec.Volumes[i]; {
		case source.PersistentVolumeClaim != nil:
			claims = append(claims, source.PersistentVolumeClaim.ClaimName)
		case source.Ephemeral != nil:
			claims = append(claims, p.Name+"-"+source.Name)
		}
	}
	if len(claims) == 0 {
		return nil
	}
	_, mirror := p.Annotations[v1.MirrorPodAnnotationKey]
	return &pod{
		key: keyOf(p), version: p.ResourceVersion, uid: p.UID, created: p.CreationTimestamp.Time,
		deleting: p.DeletionTimestamp != nil, mirror: mirror, claims: claims,
	}
}

// namespace is what is kept of a Namespace.
type namespace struct{ preserved, deleting bool }

func factsOfNamespace(n *v1.Namespace) namespace {
	_, preserved := n.Labels[PreserveLabel]
	return namespace{preserved: preserved, deleting: n.DeletionTimestamp != nil}
}
