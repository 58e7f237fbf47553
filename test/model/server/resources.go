package server

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resourceRules has the rules of one resource.
type resourceRules struct {
	name, group, version, kind string
	// schema is that of the Go type; object is an empty value of it.
	schema *jsonSchema
	object any
	// subresources are those that can be written.
	subresources map[string]bool
	// versionRequired: an update without a resource version is invalid.
	versionRequired bool
	// createdByUpdate: an update creates the object if it does not exist.
	createdByUpdate bool
	// hidden: a deletion returns a Status and not the object.
	hidden bool
	// lateDefaults: the first write of an object stores its defaults. lateReset: the first
	// update that resets the managed fields removes them.
	lateDefaults, lateReset bool
	// defaults sets the defaults of every decoded object.
	defaults func(document)
	// create completes a new object.
	create func(Cluster, document)
	// update restores what a write must not change; subresource is "" for the object.
	update func(subresource string, now, old document)
	// check returns what is wrong with a new or changed object; old is nil for a new one.
	check func(now, old document) problems
	// checkStatus returns what is wrong with an object whose status changes.
	checkStatus func(now document) problems
	// admit refuses a change that the other objects of the cluster do not allow.
	admit func(c Cluster, r *resourceRules, now, old document) *Response
}

func (r *resourceRules) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.group, Resource: r.name}
}

func (r *resourceRules) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.group, Kind: r.kind}
}

func (r *resourceRules) apiVersion() string {
	if r.group == "" {
		return r.version
	}
	return r.group + "/" + r.version
}

var status = map[string]bool{"status": true}

// resources are the resources of the server by plural name.
var resources = map[string]*resourceRules{
	"persistentvolumes": {
		name: "persistentvolumes", version: "v1", kind: "PersistentVolume",
		schema: schemaOf[v1.PersistentVolume](), object: v1.PersistentVolume{}, subresources: status,
		defaults: volumeDefaults, create: createVolume, update: updateVolume, check: checkVolume,
	},
	"persistentvolumeclaims": {
		name: "persistentvolumeclaims", version: "v1", kind: "PersistentVolumeClaim",
		schema: schemaOf[v1.PersistentVolumeClaim](), object: v1.PersistentVolumeClaim{}, subresources: status,
		lateDefaults: true,
		defaults:     claimDefaults, create: createClaim, update: updateClaim, check: checkClaim, admit: admitClaim,
	},
	pods: {
		name: pods, version: "v1", kind: "Pod",
		schema: schemaOf[v1.Pod](), object: v1.Pod{}, subresources: status,
		create: createPod, update: updatePod, check: checkPod,
	},
	namespaces: {
		name: namespaces, version: "v1", kind: "Namespace",
		schema: schemaOf[v1.Namespace](), object: v1.Namespace{}, subresources: map[string]bool{"status": true,
			finalize: true},
		defaults: namespaceDefaults, create: createNamespace, update: updateNamespace, checkStatus: checkNamespaceStatus,
	},
	"storageclasses": {
		name: "storageclasses", group: storagev1.GroupName, version: "v1", kind: "StorageClass",
		schema: schemaOf[storagev1.StorageClass](), object: storagev1.StorageClass{},
		defaults: classDefaults, check: checkClass,
	},
	"volumeattachments": {
		name: "volumeattachments", group: storagev1.GroupName, version: "v1", kind: "VolumeAttachment",
		schema: schemaOf[storagev1.VolumeAttachment](), object: storagev1.VolumeAttachment{}, subresources: status,
		versionRequired: true,
		create:          createAttachment, update: updateAttachment, check: checkAttachment,
	},
	"leases": {
		name: "leases", group: coordinationv1.GroupName, version: "v1", kind: "Lease",
		schema: schemaOf[coordinationv1.Lease](), object: coordinationv1.Lease{},
		versionRequired: true, createdByUpdate: true, hidden: true, lateReset: true,
	},
	accessReviews: {
		name: accessReviews, group: authorizationv1.GroupName, version: "v1", kind: "SelfSubjectAccessReview",
		schema: schemaOf[authorizationv1.SelfSubjectAccessReview](), object: authorizationv1.SelfSubjectAccessReview{},
	},
	"secrets": {
		name: "secrets", version: "v1", kind: "Secret",
		schema: schemaOf[v1.Secret](), object: v1.Secret{},
	},
	events: {
		name: events, version: "v1", kind: "Event",
		schema: schemaOf[v1.Event](), object: v1.Event{},
	},
}

// Resources whose objects are not stored.
const (
	accessReviews = "selfsubjectaccessreviews"
	events        = "events"
)

// Resources that have rules of their own.
const (
	namespaces = "namespaces"
	pods       = "pods"
)

// finalize is the subresource that removes the finalizers in the spec of a namespace.
const finalize = "finalize"
