package finalizer

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/patch"
)

// Name is a finalizer that this project adds or removes. Every other finalizer stays.
type Name string

const (
	// External keeps a PersistentVolume until its CSI driver has deleted the
	// volume (KEP-2644, "CSI Driver volumes").
	External Name = "external-provisioner.volume.kubernetes.io/finalizer"
	// InTree keeps a PersistentVolume until its in-tree plugin has deleted the
	// volume (KEP-2644, "In-Tree Plugin volumes").
	InTree Name = "kubernetes.io/pv-controller"
	// VolumeProtection keeps a PersistentVolume while it is bound.
	VolumeProtection Name = "kubernetes.io/pv-protection"
	// ClaimProtection keeps a PersistentVolumeClaim while a pod uses it.
	ClaimProtection Name = "kubernetes.io/pvc-protection"
	// CloneSource keeps a PersistentVolumeClaim while others are cloned from it.
	CloneSource Name = "provisioner.storage.kubernetes.io/cloning-protection"
	// SnapshotSource keeps a VolumeSnapshot while a volume is restored from it.
	SnapshotSource Name = "provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection"
)

// Holder is the component that removes a finalizer, and when.
type Holder struct {
	// Component is the program that removes the finalizer.
	Component string
	// Until completes the sentence "the object is kept until ...".
	Until string
}

var holders = map[Name]Holder{
	External:         {Component: "provisioner", Until: "the CSI driver has deleted the volume"},
	InTree:           {Component: "pv-controller", Until: "the in-tree plugin has deleted the volume"},
	VolumeProtection: {Component: "pv-controller", Until: "the volume is no longer bound to a claim"},
	ClaimProtection:  {Component: "pv-controller", Until: "no pod uses the claim"},
	CloneSource:      {Component: "provisioner", Until: "no clone of the claim waits for its volume"},
	SnapshotSource:   {Component: "provisioner", Until: "no claim waits for a volume from the snapshot"},
}

// HolderOf returns the component that removes a finalizer of this project, and false for
// any other finalizer.
func HolderOf(name string) (Holder, bool) {
	holder, ours := holders[Name(name)]
	return holder, ours
}

// Has reports whether the list contains the finalizer.
func Has(list []string, name Name) bool {
	return slices.Contains(list, string(name))
}

// With returns the list with the finalizer at its end, or the list itself if it contains
// the finalizer.
func With(list []string, name Name) []string {
	if Has(list, name) {
		return list
	}
	return append(slices.Clip(list), string(name))
}

// Without returns the list without any occurrence of the finalizer, or the list itself if
// there is none. A list that becomes empty is nil.
func Without(list []string, name Name) []string {
	if !Has(list, name) {
		return list
	}
	var rest []string
	for _, other := range list {
		if other != string(name) {
			rest = append(rest, other)
		}
	}
	return rest
}

// Change names the finalizers to add and to remove in one write.
type Change struct {
	Add, Remove []Name
}

// Edit appends to p the operations that change the finalizers of the observed object.
// Finalizers of others, additions of present and removals of absent finalizers are ignored;
// p is unchanged if nothing remains. The patch fails as stale if the list has changed.
func Edit(p *patch.Patch, object metav1.Object, change Change) *patch.Patch {
	before := object.GetFinalizers()
	after := change.apply(before)
	if slices.Equal(before, after) {
		return p
	}
	const path = "/metadata/finalizers"
	if len(before) == 0 {
		// A JSON patch cannot test that a field is absent.
		return p.Test("/metadata/resourceVersion", object.GetResourceVersion()).Set(path, after)
	}
	p.Test(path, before)
	if len(after) == 0 {
		return p.Remove(path)
	}
	return p.Set(path, after)
}

func (c Change) apply(list []string) []string {
	for _, name := range c.Remove {
		if _, ours := holders[name]; ours {
			list = Without(list, name)
		}
	}
	for _, name := range c.Add {
		if _, ours := holders[name]; ours {
			list = With(list, name)
		}
	}
	return list
}
