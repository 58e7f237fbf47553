package server

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// put answers an update.
func (c Cluster) put(r route, body string) (Cluster, Response) {
	d, err := r.decodeObject(body)
	if err != nil {
		return c, *undecodable(err)
	}
	if refusal := r.checkIdentity(d); refusal != nil {
		return c, *refusal
	}
	object, _ := c.Get(r.key())
	uid, _ := text(d, "metadata", "uid")
	if object.JSON == "" {
		return c.createByUpdate(r, d, uid)
	}
	if uid != "" && uid != r.key().UID(object.Count) {
		return c, *conflict(r, "StorageError: invalid object, Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, r.key().UID(object.Count))
	}
	return c.replace(r, object, d)
}

// createByUpdate answers an update of an object that does not exist.
func (c Cluster) createByUpdate(r route, d document, uid string) (Cluster, Response) {
	switch {
	case !r.resource.createdByUpdate:
		return c, *notFound(r)
	case uid != "":
		return c, *conflict(r, "StorageError: invalid object, Precondition failed: UID in precondition: %s, UID in object meta: ", uid)
	}
	return c.add(r, d)
}

// replace writes d as the next version of the object.
func (c Cluster) replace(r route, object Object, d document) (Cluster, Response) {
	meta := child(d, "metadata")
	switch version, _ := text(meta, "resourceVersion"); {
	case version == "" && r.resource.versionRequired:
		return c, *versionRequired(r)
	case version != "" && version != strconv.Itoa(object.Version):
		return c, *conflict(r, "the object has been modified; please apply your changes to the latest version and try again")
	}
	delete(meta, "resourceVersion")
	first := object.Fresh && (r.resource.lateDefaults || resetsManagers(meta))
	delete(meta, "managedFields")
	old, err := decode(object.JSON)
	if err != nil {
		return c, *internal(err.Error())
	}
	if r.resource.update != nil {
		r.resource.update(r.subresource, d, old)
	}
	oldMeta := child(old, "metadata")
	keepMetadata(meta, oldMeta)
	if causes := append(checkMetadata(meta, oldMeta), r.checkUpdate(d, old)...); len(causes) > 0 {
		return c, *invalid(r, causes)
	}
	if r.subresource == "" && r.resource.admit != nil {
		if refusal := r.resource.admit(c, r.resource, d, old); refusal != nil {
			return c, *refusal
		}
	}
	return c.commit(object, d, isFinished(d, old), first)
}

// commit stores the new version or, if the write was the last one, deletes the object. The
// first write is a new version even if it changes nothing.
func (c Cluster) commit(object Object, d document, last, first bool) (Cluster, Response) {
	switch {
	case last:
		after, _ := c.remove(object)
		// The answer has the version before the deletion, as that of kube-apiserver.
		object.JSON = encode(d)
		return after, success(object.Wire())
	case first:
		after, object := c.write(object, encode(d))
		return after, success(object.Wire())
	}
	after, object := c.store(object, d)
	return after, success(object.Wire())
}

func (r route) checkUpdate(now, old document) problems {
	switch {
	case r.subresource == "":
		return r.check(now, old)
	case r.subresource == "status" && r.resource.checkStatus != nil:
		return r.resource.checkStatus(now)
	}
	return nil
}

// isFinished reports whether the write removes the last finalizer of a terminating object.
func isFinished(now, old document) bool {
	grace, _ := at(old, "metadata", "deletionGracePeriodSeconds").(float64)
	return at(old, "metadata", "deletionTimestamp") != nil && grace == 0 &&
		at(now, "metadata", "finalizers") == nil && !hasSpecFinalizers(now)
}

// keepMetadata restores the metadata that no write changes.
func keepMetadata(now, old document) {
	put(now, "generation", old["generation"])
	setDefault(now, "uid", old["uid"])
	now["creationTimestamp"] = old["creationTimestamp"]
	if deleted := old["deletionTimestamp"]; deleted != nil {
		now["deletionTimestamp"] = deleted
	}
	if grace := old["deletionGracePeriodSeconds"]; grace != nil && now["deletionGracePeriodSeconds"] == nil {
		now["deletionGracePeriodSeconds"] = grace
	}
}

// checkMetadata returns the forbidden changes of metadata.
func checkMetadata(now, old document) problems {
	var found problems
	if old["deletionTimestamp"] != nil {
		before := stringsAt(old, "finalizers")
		for _, finalizer := range stringsAt(now, "finalizers") {
			if !slices.Contains(before, finalizer) {
				found = append(found, field.Forbidden(field.NewPath("metadata", "finalizers"),
					"no new finalizers can be added if the object is being deleted, found new finalizers "+finalizer))
			}
		}
	}
	for _, name := range []string{"uid", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		found = append(found, immutable(now[name], old[name], "metadata", name)...)
	}
	return found
}
