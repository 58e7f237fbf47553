package model

import (
	"encoding/json"
	"net/http"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/test/model/server"
)

// concurrent lets the loops of all programs work at the same time.
func concurrent(c Config) Config {
	c = c.with("loops at the same time", func(c *Config) {
		for i := range c.Programs {
			c.Programs[i].Concurrent = true
		}
	})
	return c
}

// concurrentWorlds returns the worlds in which the loops of a program interrupt each other.
func concurrentWorlds() []Config {
	return []Config{
		concurrent(static(v1.PersistentVolumeReclaimDelete)), concurrent(static(v1.PersistentVolumeReclaimRetain)),
		concurrent(dynamic(v1.PersistentVolumeReclaimDelete)), concurrent(dynamic(v1.PersistentVolumeReclaimRetain)),
	}
}

// cacheModes are the ways in which a cache follows the API server, with a watch that stalls.
var cacheModes = []struct {
	name string
	set  func(*Config)
}{
	{"every version is seen", func(c *Config) { c.EveryVersion = true }},
	{"versions are skipped", func(c *Config) { c.EveryVersion, c.SkipVersions = true, true }},
	{"a list replaces a watch", func(c *Config) { c.Lists = true }},
}

// cacheWorlds returns the worlds of each way in which a cache follows.
func cacheWorlds() []Config {
	var all []Config
	for _, mode := range cacheModes {
		for _, c := range []Config{static(v1.PersistentVolumeReclaimDelete), dynamic(v1.PersistentVolumeReclaimDelete)} {
			all = append(all, c.with(mode.name, func(c *Config) {
				c.Stalls = 1
				mode.set(c)
			}))
		}
	}
	return all
}

// hourWorlds returns the worlds in which an hour passes while a call has no outcome.
func hourWorlds() []Config {
	var all []Config
	for _, c := range []Config{static(v1.PersistentVolumeReclaimDelete), requested("a requested volume")} {
		c = c.with("an hour", func(c *Config) { c.Hours, c.States = 1, 30_000 })
		all = append(
			all, c, c.with("a failed call", func(c *Config) { c.Errors++ }),
			c.with("a lost answer", func(c *Config) { c.Losses++ }),
		)
	}
	return all
}

// inCluster is a claim with a volume, and what else of the cluster uses them. Users delete volume and
// claim, and do what is given.
func inCluster(name string, static bool, more []creation, users ...UserAction) Config {
	creations, disks, volume := []creation{newClass(v1.PersistentVolumeReclaimDelete), newClaim("data", class)},
		[]string(nil), "pvc-"
	kind := "dynamic Delete, "
	if static {
		creations, disks, volume = []creation{newVolume("disk", v1.PersistentVolumeReclaimDelete), newClaim("data", "")},
			[]string{"disk-of-disk"}, "disk"
		kind = "static Delete, "
	}
	c := base(kind+name, append(creations, more...)...)
	c.Disks, c.Users = disks, append([]UserAction{deleteVolume(volume), deleteClaim("data")}, users...)
	return c
}

// clusterWorlds returns worlds with pods, attachments, namespaces that are deleted, and edited claimRefs.
func clusterWorlds() []Config {
	pod := []creation{newPod("data")}
	var all []Config
	for _, static := range []bool{true, false} {
		gone := inCluster("the namespace is deleted", static, nil, deleteNamespace(), finishNamespace())
		gone.Users[1] = byNamespaceController(gone.Users[1])
		all = append(all, inCluster("a pod uses the claim", static, pod, deletePod("data")), gone)
	}
	attached := inCluster("the volume is attached", true, []creation{newAttachment("disk")}, detach())
	edited := inCluster(
		"the claimRef is edited", true, []creation{newClaim("other", "")}, setClaimRef("disk", "other"),
		deleteClaim("other"),
	)
	return append(all, attached, edited)
}

func isNamespaceDeleted(c server.Cluster) bool {
	object, _ := c.Get(server.Key{Resource: "namespaces", Name: namespace})
	return strings.Contains(object.JSON, "deletionTimestamp")
}

func deleteNamespace() UserAction {
	return UserAction{Says: "a user deletes the namespace", Request: func(server.Cluster) (server.Request, bool) {
		return server.Request{Method: http.MethodDelete, Path: namespacesPath + "/" + namespace}, true
	}}
}

// byNamespaceController is an action that the namespace controller takes once the namespace is deleted.
func byNamespaceController(action UserAction) UserAction {
	request := action.Request
	action.Says = strings.ReplaceAll(action.Says, "a user", "the namespace controller")
	action.Request = func(c server.Cluster) (server.Request, bool) {
		r, possible := request(c)
		return r, possible && isNamespaceDeleted(c)
	}
	return action
}

// finishNamespace is the end of a namespace without claims.
func finishNamespace() UserAction {
	return byNamespaceController(UserAction{Says: "a user finishes the namespace",
		Request: func(c server.Cluster) (server.Request, bool) {
			object, _ := c.Get(server.Key{Resource: "namespaces", Name: namespace})
			claim, _ := c.Get(claimKey("data"))
			var finished v1.Namespace
			if json.Unmarshal([]byte(object.JSON), &finished) != nil {
				return server.Request{}, false
			}
			finished.Spec.Finalizers = nil
			body, err := json.Marshal(finished)
			return server.Request{
				Method: http.MethodPut, Path: namespacesPath + "/" + namespace +
					"/finalize", ContentType: "application/json", Body: string(body),
			}, err == nil && claim.JSON == ""
		}})
}

// setClaimRef edits the claimRef of the first volume whose name has the prefix: another claim may have it.
func setClaimRef(prefix, claim string) UserAction {
	return UserAction{Says: "a user edits the claimRef of the volume",
		Request: func(c server.Cluster) (server.Request, bool) {
			object, found := first(c, "persistentvolumes", prefix)
			return mergePatch(volumesPath+"/"+object.Name, map[string]any{"spec": map[string]any{
				"claimRef": map[string]any{"namespace": namespace, "name": claim, "uid": nil, "resourceVersion": nil},
			}}), found
		}}
}
