package model

import (
	"encoding/json"
	"net/http"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/model/server"
)

// deleteVolumes deletes the first volume whose name has the prefix.
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
	return UserAction{Says: "a user sets the policy " + string(policy), Request: func(c server.Cluster) (server.Request, bool) {
		object, found := first(c, "persistentvolumes", prefix)
		return mergePatch(volumesPath+"/"+object.Name, map[string]any{"spec": map[string]any{"persistentVolumeReclaimPolicy": policy}}), found
	}}
}

// stripFinalizers removes all finalizers of the first volume whose name has the prefix.
func stripFinalizers(prefix string) UserAction {
	return UserAction{Says: "a user removes the finalizers of the volume", GivesUp: true, Request: func(c server.Cluster) (server.Request, bool) {
		object, found := first(c, "persistentvolumes", prefix)
		return mergePatch(volumesPath+"/"+object.Name, map[string]any{"metadata": map[string]any{"finalizers": nil}}), found
	}}
}

// clearClaimRef removes the claimRef of the first volume whose name has the prefix.
func clearClaimRef(prefix string) UserAction {
	return UserAction{Says: "a user removes the claimRef of the volume", Request: func(c server.Cluster) (server.Request, bool) {
		object, found := first(c, "persistentvolumes", prefix)
		return mergePatch(volumesPath+"/"+object.Name, map[string]any{"spec": map[string]any{"claimRef": nil}}), found
	}}
}

func mergePatch(path string, change map[string]any) server.Request {
	body, _ := json.Marshal(change) // only strings
	return server.Request{Method: http.MethodPatch, Path: path, ContentType: "application/merge-patch+json", Body: string(body)}
}

func claimKey(name string) server.Key {
	return server.Key{Resource: "persistentvolumeclaims", Namespace: namespace, Name: name}
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
	return UserAction{Says: "an administrator creates a volume", Disk: handle, Request: func(server.Cluster) (server.Request, bool) {
		return volume.request(), true
	}}
}
