package model

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/server"
)

// keepingClass is a class whose volumes have the policy Retain.
const keepingClass = "kept"

const attachmentsPath = "/apis/storage.k8s.io/v1/volumeattachments"

// LargeWorlds returns the large worlds of random walks.
func LargeWorlds() []Config {
	return []Config{dynamicLarge(), staticLarge(), mixedLarge(), formerLarge(), lateLarge(), largeWithWrongAnswers(), switchedLarge(), oldLarge()}
}

// largeWorld has many claims and volumes, faults of all kinds, and users who do everything as often as
// they like.
func largeWorld(name string, creations []creation, disks []string, users ...UserAction) Config {
	c := base(name, creations...)
	c.Disks, c.Users, c.Classes = disks, users, []string{class, keepingClass}
	c.Crashes, c.Losses, c.Errors, c.Hours, c.Stalls, c.Interruptions = 30, 30, 30, 10, 30, 120
	c.Denials, c.Undos, c.Restores, c.Backups = 30, 30, 10, 10
	return c
}

// dynamicLarge has claims of two classes.
func dynamicLarge() Config {
	return largeWorld("large dynamic", []creation{
		newClass(v1.PersistentVolumeReclaimDelete), newClassNamed(keepingClass, v1.PersistentVolumeReclaimRetain),
		newClaim("a", class), newClaim("b", class), newClaim("c", keepingClass),
	}, nil, append(claimUsers(map[string]string{"a": class, "b": class, "c": keepingClass}), volumeUsers(3)...)...)
}

// staticLarge has volumes of an administrator.
func staticLarge() Config {
	return largeWorld("large static", []creation{
		newVolume("disk-0", v1.PersistentVolumeReclaimDelete), newVolume("disk-1", v1.PersistentVolumeReclaimRetain), newVolume("disk-2", v1.PersistentVolumeReclaimDelete, provisioned),
		newClaim("a", ""), newClaim("b", ""),
	}, []string{"disk-of-disk-0", "disk-of-disk-1", "disk-of-disk-2"}, append(claimUsers(map[string]string{"a": "", "b": ""}), volumeUsers(3)...)...)
}

// mixedLarge has volumes of both kinds.
func mixedLarge() Config {
	return largeWorld("large mixed", []creation{
		newClass(v1.PersistentVolumeReclaimDelete), newVolume("disk-0", v1.PersistentVolumeReclaimRetain), newVolume("disk-1", v1.PersistentVolumeReclaimDelete, provisioned),
		newClaim("a", class), newClaim("b", class), newClaim("c", ""), newClaim("d", ""),
	}, []string{"disk-of-disk-0", "disk-of-disk-1"}, append(claimUsers(map[string]string{"a": class, "b": class, "c": "", "d": ""}), volumeUsers(4)...)...)
}

// formerLarge has leaders that end their last pass beside the new one.
func formerLarge() Config {
	c := dynamicLarge()
	c.Name, c.FormerLeaders = "large with former leaders", true
	return c
}

// lateLarge has caches that see every version of an object, or skip some, also within a pass.
func lateLarge() Config {
	c := mixedLarge()
	c.Name, c.EveryVersion, c.SkipVersions, c.SeeWithinPass = "large with late caches", true, true, true
	return c
}

// oldLarge has programs that start with old lists, whose watches then show one version after the other.
func oldLarge() Config {
	c := mixedLarge()
	c.Name, c.EveryVersion, c.Slow, c.OldLists = "large with old lists", true, true, 10
	return c
}

// provisioned is a volume that the provisioner created earlier.
func provisioned(volume *v1.PersistentVolume) {
	provisionedBy(volume)
	volume.Finalizers = []string{string(finalizer.External)}
}

// largeWithWrongAnswers has a driver that does not always answer what it did.
func largeWithWrongAnswers() Config {
	c := dynamicLarge()
	c.Name, c.WrongAnswers = "large with wrong answers of the driver", 10
	return c
}

// switchedLarge has programs whose gate is switched.
func switchedLarge() Config {
	c := mixedLarge()
	c.Name, c.Switches, c.Excused = "large with switched gates", 10, []Excuse{volumeUnreleased}
	return c
}

func newClassNamed(name string, policy v1.PersistentVolumeReclaimPolicy) creation {
	return creation{classesPath, &storagev1.StorageClass{
		TypeMeta: metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Provisioner: process.DriverName, ReclaimPolicy: &policy, VolumeBindingMode: ptr.To(storagev1.VolumeBindingImmediate),
	}}
}

// claimUsers delete claims, create them again, and use them.
func claimUsers(classes map[string]string) []UserAction {
	var all []UserAction
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		all = append(all, deleteClaim(name), createClaim(name, classes[name]), createPod(name), deletePod(name))
	}
	return all
}

// volumeUsers delete and change the first so many volumes.
func volumeUsers(count int) []UserAction {
	var all []UserAction
	for n := range count {
		all = append(all, deleteNth(n), setNthPolicy(n, v1.PersistentVolumeReclaimRetain), setNthPolicy(n, v1.PersistentVolumeReclaimDelete).unless(n, isNew))
	}
	return append(all, attachNth(0), attachNth(1), detach(), detach(), setNthLate(0), setNthEarly(1), stripNth(0), clearNthClaimRef(1))
}

// nth returns the existing object of the resource with the number.
func nth(c server.Cluster, resource string, n int) (server.Object, bool) {
	for _, object := range c.Objects() {
		if object.Resource != resource || object.JSON == "" {
			continue
		}
		if n == 0 {
			return object, true
		}
		n--
	}
	return server.Object{}, false
}

// onNth is a request for the n-th volume.
func onNth(n int, says string, request func(path string) server.Request) UserAction {
	return UserAction{Says: fmt.Sprintf("a user %s (volume %d)", says, n), Request: func(c server.Cluster) (server.Request, bool) {
		object, found := nth(c, "persistentvolumes", n)
		return request(volumesPath + "/" + object.Name), found
	}}
}

func deleteNth(n int) UserAction {
	return onNth(n, "deletes the volume", func(path string) server.Request { return server.Request{Method: http.MethodDelete, Path: path} })
}

// setNthPolicy sets the policy of a volume that is not being deleted.
func setNthPolicy(n int, policy v1.PersistentVolumeReclaimPolicy) UserAction {
	return policySetter(n, policy).unless(n, isDeleting)
}

// setNthLate sets the policy Delete of a volume that is being deleted. No finalizer can be added any
// more, so the disk is reclaimed only if the provisioner sees the volume before its claim goes.
func setNthLate(n int) UserAction {
	action := policySetter(n, v1.PersistentVolumeReclaimDelete)
	action.Says, action.GivesUp = action.Says+" too late", true
	return action.unless(n, func(volume string) bool { return !isDeleting(volume) })
}

// setNthEarly sets the policy Delete of a volume that was never Bound. It gets its finalizer when
// it is Bound: if a user deletes it before, its disk, which no claim used, stays.
func setNthEarly(n int) UserAction {
	action := policySetter(n, v1.PersistentVolumeReclaimDelete)
	action.Says, action.GivesUp = action.Says+" early", true
	return action.unless(n, func(volume string) bool { return isDeleting(volume) || !isNew(volume) })
}

func isNew(volume string) bool {
	return !strings.Contains(volume, `"phase"`) || strings.Contains(volume, `"phase":"Pending"`) || strings.Contains(volume, `"phase":"Available"`)
}

func isDeleting(volume string) bool { return strings.Contains(volume, "deletionTimestamp") }

func policySetter(n int, policy v1.PersistentVolumeReclaimPolicy) UserAction {
	return onNth(n, "sets the policy "+string(policy), func(path string) server.Request {
		return mergePatch(path, map[string]any{"spec": map[string]any{"persistentVolumeReclaimPolicy": policy}})
	})
}

// unless makes the action impossible for some states of the n-th volume.
func (a UserAction) unless(n int, impossible func(volume string) bool) UserAction {
	request := a.Request
	a.Request = func(c server.Cluster) (server.Request, bool) {
		object, _ := nth(c, "persistentvolumes", n)
		r, possible := request(c)
		return r, possible && !impossible(object.JSON)
	}
	return a
}

func stripNth(n int) UserAction {
	action := onNth(n, "removes the finalizers", func(path string) server.Request {
		return mergePatch(path, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	})
	action.GivesUp = true
	return action
}

// clearNthClaimRef lets another claim have a Released volume.
func clearNthClaimRef(n int) UserAction {
	action := onNth(n, "removes the claimRef", func(path string) server.Request {
		return mergePatch(path, map[string]any{"spec": map[string]any{"claimRef": nil}})
	})
	action.GivesUp = true
	return action.unless(n, func(volume string) bool { return !strings.Contains(volume, `"phase":"Released"`) })
}

// createPod creates a pod that uses the claim.
func createPod(claim string) UserAction {
	return UserAction{Says: "a user creates a pod with the claim " + claim, Request: func(c server.Cluster) (server.Request, bool) {
		object, _ := c.Get(server.Key{Resource: "pods", Namespace: namespace, Name: claim})
		return newPod(claim).request(), object.JSON == ""
	}}
}

func deletePod(claim string) UserAction {
	return UserAction{Says: "a user deletes the pod with the claim " + claim, Request: func(c server.Cluster) (server.Request, bool) {
		object, _ := c.Get(server.Key{Resource: "pods", Namespace: namespace, Name: claim})
		return server.Request{Method: http.MethodDelete, Path: podsPath + "/" + claim}, object.JSON != ""
	}}
}

func newPod(claim string) creation {
	return creation{podsPath, &v1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: claim},
		Spec: v1.PodSpec{
			NodeName: "node", Containers: []v1.Container{{Name: "c", Image: "i"}},
			Volumes: []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}},
		},
	}}
}

// attachNth attaches a Bound volume to a node.
func attachNth(n int) UserAction {
	return UserAction{Says: fmt.Sprintf("volume %d is attached", n), Request: func(c server.Cluster) (server.Request, bool) {
		object, found := nth(c, "persistentvolumes", n)
		attachment, _ := c.Get(server.Key{Resource: "volumeattachments", Name: "of-" + object.Name})
		return newAttachment(object.Name).request(), found && attachment.JSON == "" && strings.Contains(object.JSON, `"phase":"Bound"`)
	}}
}

func newAttachment(volume string) creation {
	return creation{attachmentsPath, &storagev1.VolumeAttachment{
		TypeMeta: metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "VolumeAttachment"}, ObjectMeta: metav1.ObjectMeta{Name: "of-" + volume},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: process.DriverName, NodeName: "node", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
	}}
}

// detach removes the first attachment.
func detach() UserAction {
	return UserAction{Says: "a volume is detached", Request: func(c server.Cluster) (server.Request, bool) {
		object, found := nth(c, "volumeattachments", 0)
		return server.Request{Method: http.MethodDelete, Path: attachmentsPath + "/" + object.Name}, found
	}}
}
