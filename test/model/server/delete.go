package server

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (c Cluster) delete(r route, request Request) (Cluster, Response) {
	options, refusal := deleteOptions(request)
	if refusal != nil {
		return c, *refusal
	}
	object, _ := c.Get(r.key())
	if object.JSON == "" {
		return c, *notFound(r)
	}
	if refusal := checkPreconditions(r, object, options.Preconditions); refusal != nil {
		return c, *refusal
	}
	d, err := decode(object.JSON)
	if err != nil {
		return c, *internal(err.Error())
	}
	terminating, hadFinalizers := at(d, "metadata", "deletionTimestamp") != nil, at(d, "metadata", "finalizers") != nil
	graceful := r.resource.name == pods && !terminating
	switch keep := r.mark(d, options); {
	case keep:
		after, object := c.store(object, d)
		return after, success(object.Wire())
	case graceful: // is written as terminating, then removed
		object.JSON = encode(d)
	case hadFinalizers && options.Preconditions != nil && options.Preconditions.ResourceVersion != nil:
		// kube-apiserver loses the version of the precondition where it ignores a finalizer.
		return c, *conflict(r, "StorageError: invalid object, Precondition failed: ResourceVersion in precondition: , ResourceVersion in object meta: %d", object.Version)
	}
	after, object := c.remove(object)
	if r.resource.hidden {
		return after, deletedStatus(r, object)
	}
	return after, success(object.Wire())
}

// mark marks the object as deleted. It returns whether something keeps the object. A
// namespace always stays for its first deletion.
func (r route) mark(d document, options metav1.DeleteOptions) bool {
	meta := child(d, "metadata")
	terminating := meta["deletionTimestamp"] != nil
	if terminating && hasSpecFinalizers(d) {
		return true
	}
	finalizers := collectorFinalizers(stringsAt(meta, "finalizers"), options)
	put(meta, "finalizers", asList(finalizers))
	if r.resource.name == namespaces && !terminating {
		child(d, "status")["phase"] = string(v1.NamespaceTerminating)
		meta["deletionTimestamp"] = Now
		return true
	}
	if len(finalizers) == 0 && r.resource.name != pods {
		return false
	}
	if generation, ok := meta["generation"].(float64); ok && !terminating {
		meta["generation"] = generation + 1
	}
	setDefault(meta, "deletionTimestamp", Now)
	meta["deletionGracePeriodSeconds"] = float64(0)
	return len(finalizers) > 0
}

// deleteOptions returns the options of a deletion, which are in the body or in the query.
func deleteOptions(request Request) (metav1.DeleteOptions, *Response) {
	options := metav1.DeleteOptions{}
	if request.Body != "" {
		if err := json.Unmarshal([]byte(request.Body), &options); err != nil {
			return options, undecodable(err)
		}
		return options, nil
	}
	query, err := url.ParseQuery(request.Query)
	if policy := metav1.DeletionPropagation(query.Get("propagationPolicy")); err == nil && policy != "" {
		options.PropagationPolicy = &policy
	}
	return options, nil
}

func checkPreconditions(r route, object Object, preconditions *metav1.Preconditions) *Response {
	if preconditions == nil {
		return nil
	}
	if uid := preconditions.UID; uid != nil && string(*uid) != r.key().UID(object.Count) {
		return preconditionFailed(r,
			"the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *uid, r.key().UID(object.Count))
	}
	if version := preconditions.ResourceVersion; version != nil && *version != strconv.Itoa(object.Version) {
		return preconditionFailed(r,
			"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%d). The object might have been modified", *version, object.Version)
	}
	return nil
}

// collectorFinalizers returns the finalizers with those that make the garbage collector
// orphan or delete the dependents first, as the options want it.
func collectorFinalizers(finalizers []string, options metav1.DeleteOptions) []string {
	orphan, foreground := slices.Contains(finalizers, metav1.FinalizerOrphanDependents),
		slices.Contains(finalizers, metav1.FinalizerDeleteDependents)
	if policy := options.PropagationPolicy; policy != nil {
		orphan, foreground = *policy == metav1.DeletePropagationOrphan, *policy == metav1.DeletePropagationForeground
	}
	rest := slices.DeleteFunc(slices.Clone(finalizers), func(finalizer string) bool {
		return finalizer == metav1.FinalizerOrphanDependents && !orphan || finalizer == metav1.FinalizerDeleteDependents &&
			!foreground
	})
	if orphan && !slices.Contains(rest, metav1.FinalizerOrphanDependents) {
		rest = append(rest, metav1.FinalizerOrphanDependents)
	}
	if foreground && !slices.Contains(rest, metav1.FinalizerDeleteDependents) {
		rest = append(rest, metav1.FinalizerDeleteDependents)
	}
	return rest
}

// deletedStatus answers the deletion of an object that is not returned.
func deletedStatus(r route, object Object) Response {
	body, _ := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Details: &metav1.StatusDetails{
			Name: r.name, Group: r.resource.group, Kind: r.resource.name, UID: uidOf(r, object),
		},
	})
	return success(string(body))
}
