package forecast

import (
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// World is what a forecast rests on.
type World struct {
	Now         time.Time
	Node        *v1.Node
	Claim       *Claim // nil without one
	Pods        []v1.Pod
	Budgets     []policyv1.PodDisruptionBudget
	Attachments []storagev1.VolumeAttachment
	// Ending are the namespaces that are being deleted.
	Ending map[string]bool
	// Frozen are the namespaces where the freeze of a teardown refuses pods that use claims.
	Frozen map[string]bool
	// Claims are the PersistentVolumeClaims of the pods by namespace/name, Volumes the PersistentVolumes by name. Read
	// keeps of a claim the name of the volume, and volumes on one machine alone.
	Claims  map[string]*v1.PersistentVolumeClaim
	Volumes map[string]*v1.PersistentVolume
	// Silent: the kubelet has not renewed its Lease for the duration of the Lease.
	Silent bool
	// Period is the value of --grace-period, "" if it is not given.
	Period string
}

// Claim is the NodeClaim of a node.
type Claim struct {
	Name string
	// Ours: the group of its class is ours. Other claims are Karpenter's.
	Ours bool
	// Period is spec.terminationGracePeriod, "" if it is absent.
	Period string
	// Requested is when the claim was deleted, the zero time if it was not.
	Requested time.Time
	// Annotation is the deadline that the claim names.
	Annotation string
	// Drifted: the claim has the condition. Expires is when it expires, the zero time for never.
	Drifted bool
	Expires time.Time
}
