package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/model/server"
)

// deleteVolume deletes the first volume whose name has the prefix.
func deleteVolume(prefix string) UserAction {
	return UserAction{Says: "a user deletes the volume", Request: func(c server.Cluster) (server.Request, bool) {
		object, found := first(c, "persistentvolumes", prefix)
		return server.Request{Method: http.MethodDelete, Path: volumesPath + "/" + object.Name}, found
	}}
}

// deleteClaim deletes the claim.
func deleteClaim(name string) UserAction {
	return UserAction{Says: "a user deletes the claim " + name, Request: func(c server.Cluster) (server.Request, bool) {
		object, found := c.Get(claimKey(name))
		return server.Request{Method: http.MethodDelete, Path: claimsPath + "/" + name}, found && object.JSON != ""
	}}
}

// deleteClaimAfter deletes the claim, but not before the other one, which differs by its name only.
func deleteClaimAfter(name, other string) UserAction {
	action := deleteClaim(name)
	request := action.Request
	action.Request = func(c server.Cluster) (server.Request, bool) {
		if first, _ := c.Get(claimKey(other)); first.JSON != "" && !strings.Contains(first.JSON, `"deletionTimestamp"`) {
			return server.Request{}, false
		}
		return request(c)
	}
	return action
}

// createClaim creates the claim, again if there was one.
func createClaim(name, className string) UserAction {
	return UserAction{Says: "a user creates the claim " + name, Request: func(c server.Cluster) (server.Request, bool) {
		object, _ := c.Get(claimKey(name))
		return newClaim(name, className).request(), object.JSON == ""
	}}
}

// setPolicy sets the reclaim policy of the first volume whose name has the prefix.
func setPolicy(prefix string, policy v1.PersistentVolumeReclaimPolicy) UserAction {
	return UserAction{Says: "a user sets the policy " + string(policy),
		Request: func(c server.Cluster) (server.Request, bool) {
			object, found := first(c, "persistentvolumes", prefix)
			return mergePatch(
				volumesPath+"/"+object.Name, map[string]any{"spec": map[string]any{"persistentVolumeReclaimPolicy": policy}},
			), found
		}}
}

// stripFinalizers removes all finalizers of the first volume whose name has the prefix.
func stripFinalizers(prefix string) UserAction {
	return UserAction{Says: "a user removes the finalizers of the volume", GivesUp: true,
		Request: func(c server.Cluster) (server.Request, bool) {
			object, found := first(c, "persistentvolumes", prefix)
			return mergePatch(volumesPath+"/"+object.Name, map[string]any{"metadata": map[string]any{"finalizers": nil}}), found
		}}
}

// clearClaimRef removes the claimRef of the first volume whose name has the prefix.
func clearClaimRef(prefix string) UserAction {
	return UserAction{Says: "a user removes the claimRef of the volume",
		Request: func(c server.Cluster) (server.Request, bool) {
			object, found := first(c, "persistentvolumes", prefix)
			return mergePatch(volumesPath+"/"+object.Name, map[string]any{"spec": map[string]any{"claimRef": nil}}), found
		}}
}

// certainly has the action happen sooner or later.
func certainly(action UserAction) UserAction {
	action.Certain = true
	return action
}

// addForeignFinalizer puts a finalizer of another program in front of those of the volume.
func addForeignFinalizer(name string) UserAction {
	return UserAction{Says: "another program adds a finalizer to the volume",
		Request: func(c server.Cluster) (server.Request, bool) {
			object, found := first(c, "persistentvolumes", name)
			return server.Request{
				Method: http.MethodPatch, Path: volumesPath + "/" + object.Name, ContentType: "application/json-patch+json",
				Body: `[{"op":"add","path":"/metadata/finalizers/0","value":"example.com/added"}]`,
			}, found && strings.Contains(object.JSON, `"finalizers":`)
		}}
}

// create creates the object, once none has its name.
func create(resource string, c creation) UserAction {
	name := c.object.(metav1.Object).GetName()
	return UserAction{Says: "a user creates " + resource + " " + name, Request: func(
		cluster server.Cluster,
	) (server.Request, bool) {
		key := server.Key{Resource: resource, Name: name, Namespace: c.object.(metav1.Object).GetNamespace()}
		object, _ := cluster.Get(key)
		return c.request(), object.JSON == ""
	}}
}

func volumeComes(volume creation) UserAction { return create("persistentvolumes", volume) }

// podComes creates a pod that uses the claim; podGoes deletes it.
func podComes(claim string) UserAction {
	return UserAction{Says: "a user creates a pod", Request: func(c server.Cluster) (server.Request, bool) {
		object, _ := c.Get(claimKey(claim))
		return podOf(claim).request(), object.JSON != ""
	}}
}

// finishPod ends the first pod in the phase.
func finishPod(phase v1.PodPhase) UserAction {
	return UserAction{Says: "the pod is " + string(phase), Certain: true,
		Request: func(c server.Cluster) (server.Request, bool) {
			object, found := first(c, "pods", "")
			path := "/api/v1/namespaces/" + object.Namespace + "/pods/" + object.Name + "/status"
			return mergePatch(path, map[string]any{"status": map[string]any{"phase": phase}}), found
		}}
}

// selectNode selects a node for the first consumer of the claim.
func selectNode(claim, node string) UserAction {
	return UserAction{Says: "the scheduler selects " + node, Request: func(c server.Cluster) (server.Request, bool) {
		object, _ := c.Get(claimKey(claim))
		change := map[string]any{"metadata": map[string]any{"annotations": map[string]any{storage.AnnSelectedNode: node}}}
		return mergePatch(claimsPath+"/"+claim, change), object.JSON != ""
	}}
}

// createClass creates the class.
func createClass(class creation) UserAction {
	return UserAction{Says: "a user creates the class", Request: func(c server.Cluster) (server.Request, bool) {
		_, exists := first(c, "storageclasses", "")
		return class.request(), !exists
	}}
}

func podGoes() UserAction { return deleteNamed("the pod", "pods", podsPath, "web") }

// deleteAttachment detaches the volume.
func deleteAttachment() UserAction {
	return deleteNamed("the attachment", "volumeattachments", attachmentsPath, "attached")
}

func deleteNamed(what, resource, path, name string) UserAction {
	return UserAction{Says: "somebody deletes " + what, Certain: true,
		Request: func(c server.Cluster) (server.Request, bool) {
			object, found := first(c, resource, name)
			return server.Request{Method: http.MethodDelete, Path: path + "/" + object.Name}, found
		}}
}

func mergePatch(path string, change map[string]any) server.Request {
	body, _ := json.Marshal(change) // only strings
	return server.Request{
		Method: http.MethodPatch, Path: path, ContentType: "application/merge-patch+json", Body: string(body),
	}
}

// first returns the first object of the resource whose name has the prefix.
func first(c server.Cluster, resource, prefix string) (server.Object, bool) {
	for _, object := range c.Objects() {
		if object.Resource == resource && object.JSON != "" && strings.HasPrefix(object.Name, prefix) {
			return object, true
		}
	}
	return server.Object{}, false
}

// createVolume creates a volume with its disk.
func createVolume(volume creation, handle string) UserAction {
	return UserAction{Says: "an administrator creates a volume", Disk: handle,
		Request: func(server.Cluster) (server.Request, bool) {
			return volume.request(), true
		}}
}

// onNth is a request for the n-th volume.
func onNth(n int, says string, request func(path string) server.Request) UserAction {
	return UserAction{Says: fmt.Sprintf(
		"a user %s (volume %d)", says, n,
	), Request: func(c server.Cluster) (server.Request, bool) {
		object, found := nth(c, "persistentvolumes", n)
		return request(volumesPath + "/" + object.Name), found
	}}
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

func deleteNth(n int) UserAction {
	return onNth(
		n, "deletes the volume",
		func(path string) server.Request { return server.Request{Method: http.MethodDelete, Path: path} },
	)
}

func policySetter(n int, policy v1.PersistentVolumeReclaimPolicy) UserAction {
	return onNth(n, "sets the policy "+string(policy), func(path string) server.Request {
		return mergePatch(path, map[string]any{"spec": map[string]any{"persistentVolumeReclaimPolicy": policy}})
	})
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

func isNew(volume string) bool {
	return !strings.Contains(volume, `"phase"`) || strings.Contains(volume, `"phase":"Pending"`) ||
		strings.Contains(volume, `"phase":"Available"`)
}

func isDeleting(volume string) bool { return strings.Contains(volume, "deletionTimestamp") }

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
	return UserAction{Says: "a user creates a pod with the claim " + claim,
		Request: func(c server.Cluster) (server.Request, bool) {
			object, _ := c.Get(server.Key{Resource: "pods", Namespace: namespace, Name: claim})
			return newPod(claim).request(), object.JSON == ""
		}}
}

func deletePod(claim string) UserAction {
	return UserAction{Says: "a user deletes the pod with the claim " + claim,
		Request: func(c server.Cluster) (server.Request, bool) {
			object, _ := c.Get(server.Key{Resource: "pods", Namespace: namespace, Name: claim})
			return server.Request{Method: http.MethodDelete, Path: podsPath + "/" + claim}, object.JSON != ""
		}}
}

// attachNth attaches a Bound volume to a node.
func attachNth(n int) UserAction {
	return UserAction{Says: fmt.Sprintf(
		"volume %d is attached", n,
	), Request: func(c server.Cluster) (server.Request, bool) {
		object, found := nth(c, "persistentvolumes", n)
		attachment, _ := c.Get(server.Key{Resource: "volumeattachments", Name: "of-" + object.Name})
		return newAttachment(object.Name).request(), found && attachment.JSON == "" &&
			strings.Contains(object.JSON, `"phase":"Bound"`)
	}}
}

// detach removes the first attachment.
func detach() UserAction {
	return UserAction{Says: "a volume is detached", Request: func(c server.Cluster) (server.Request, bool) {
		object, found := nth(c, "volumeattachments", 0)
		return server.Request{Method: http.MethodDelete, Path: attachmentsPath + "/" + object.Name}, found
	}}
}
