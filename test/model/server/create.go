package server

import (
	"net/http"
	"strconv"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Now is the time of everything that happens: the server has no clock.
const Now = "2026-01-01T00:00:00Z"

func (c Cluster) create(r route, body string) (Cluster, Response) {
	d, err := r.decodeObject(body)
	if err != nil {
		return c, *undecodable(err)
	}
	if refusal := r.checkIdentity(d); refusal != nil {
		return c, *refusal
	}
	if r.resource.name == accessReviews {
		d["status"] = document{"allowed": true}
		return c, Response{Code: http.StatusCreated, Body: encode(d)}
	}
	meta := child(d, "metadata")
	if name, _ := text(meta, "name"); name == "" {
		meta["name"] = c.generateName(r, meta)
	}
	r.name, _ = text(meta, "name")
	if version, _ := text(meta, "resourceVersion"); version != "" {
		return c, *internal("resourceVersion should not be set on objects to be created")
	}
	for _, field := range []string{"deletionTimestamp", "deletionGracePeriodSeconds"} {
		delete(meta, field)
	}
	return c.add(r, d)
}

// add stores a new object.
func (c Cluster) add(r route, d document) (Cluster, Response) {
	if refusal := c.checkNamespace(r); refusal != nil {
		return c, *refusal
	}
	object, _ := c.Get(r.key())
	count := object.Count
	if object.JSON == "" {
		count = max(count, object.LostCount) + 1
	}
	meta := child(d, "metadata")
	delete(meta, "resourceVersion")
	delete(meta, "managedFields")
	meta["uid"], meta["creationTimestamp"] = r.key().UID(count), Now
	if r.resource.create != nil {
		r.resource.create(c, d)
	}
	if causes := r.check(d, nil); len(causes) > 0 {
		return c, *invalid(r, causes)
	}
	switch {
	case r.resource.name == events:
		return c, Response{Code: http.StatusCreated, Body: encode(d)}
	case object.JSON != "":
		return c, *failure(apierrors.NewAlreadyExists(r.resource.groupResource(), r.name))
	}
	object.Count, object.LostCount = count, 0
	after, object := c.store(object, d)
	if object.Fresh = r.resource.lateDefaults || r.resource.lateReset; object.Fresh {
		after = after.With(object)
	}
	return after, Response{Code: http.StatusCreated, Body: object.Wire()}
}

func (r route) check(now, old document) problems {
	if r.resource.check == nil {
		return nil
	}
	return r.resource.check(now, old)
}

// generateName returns the first free name with the prefix that the object wants.
func (c Cluster) generateName(r route, meta document) string {
	prefix, _ := text(meta, "generateName")
	if prefix == "" {
		return ""
	}
	for i := 1; ; i++ {
		r.name = prefix + strconv.Itoa(i)
		if _, known := c.Get(r.key()); !known {
			return r.name
		}
	}
}

// checkNamespace refuses a new object in a namespace that is deleted or terminating. A
// namespace that the cluster never had does not matter.
func (c Cluster) checkNamespace(r route) *Response {
	namespace, known := c.Get(Key{Resource: namespaces, Name: r.namespace})
	if r.namespace == "" || !known {
		return nil
	}
	if namespace.JSON == "" {
		return failure(apierrors.NewNotFound(v1.Resource(namespaces), r.namespace))
	}
	d, err := decode(namespace.JSON)
	if phase, _ := text(d, "status", "phase"); err != nil || phase != string(v1.NamespaceTerminating) {
		return nil
	}
	refusal := apierrors.NewForbidden(r.resource.groupResource(), r.name, errTerminating(r.namespace))
	refusal.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: v1.NamespaceTerminatingCause, Message: "namespace " + r.namespace + " is being terminated",
		Field: "metadata.namespace",
	}}
	return failure(refusal)
}

// errTerminating is the error for a new object in a terminating namespace.
type errTerminating string

func (e errTerminating) Error() string {
	return "unable to create new content in namespace " + string(e) + " because it is being terminated"
}
