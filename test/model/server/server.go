// Package server is an API server without clock, network and store: a function from objects
// and a request to objects and a response. It has the rules of kube-apiserver on which
// deletion rests: finalizers, deletionTimestamp, UIDs, resource versions, preconditions,
// the status subresource, JSON patches, and fields that do not change. A test sends the
// same requests to a real kube-apiserver and compares.
package server

// Request is one HTTP request to the API server. Two equal requests are the same value.
type Request struct {
	// Method is the HTTP method.
	Method string
	// Path is the path of the URL, Query its raw query.
	Path, Query string
	// ContentType and Body are those of the request, "" for none.
	ContentType, Body string
}

// Response is the answer to a Request. Body is an API object, a list or a Status in JSON.
type Response struct {
	Code int
	Body string
}

// Key names an object.
type Key struct {
	// Resource is the plural name, such as persistentvolumes.
	Resource string
	// Namespace is "" for cluster-scoped objects.
	Namespace, Name string
}

// Object is a version of an API object, or what is remembered of a deleted one.
type Object struct {
	Key
	// Count is how many objects have had this name; it is part of the UID, "uid-" and
	// resource, namespace, name and count.
	Count int
	// Version is the resource version: how often an object of this name was written. A
	// write that changes nothing does not count.
	Version int
	// Fresh: the claim or Lease was not written since it was created. kube-apiserver stores
	// the default phase of a claim with its first write, and the journal's first update
	// removes the managed fields of a Lease, even if that changes nothing else.
	Fresh bool
	// LostVersion and LostCount are how far versions and UIDs of the name had come before etcd was restored. What comes
	// next is beyond them. LostVersion is 0 again once the restored object was written.
	LostVersion, LostCount int
	// JSON is the object without its resource version, with sorted keys; "" once the object
	// is deleted.
	JSON string
}
