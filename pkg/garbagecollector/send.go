package garbagecollector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

// maxConflicts is the number of conflicts after which a deletion names the UID only, right
// after a live read: other fields may change all the time.
const maxConflicts = 3

// removal is a patch that removes references or a finalizer.
type removal struct {
	verb       string
	operations *patch.Patch
	// still reports whether the patch is still right after a delay; nil if its version says so.
	still func() bool
}

// writeTimeout bounds a write. A webhook may take 30 s.
const writeTimeout = 35 * time.Second

// acceptMetadata has a write answered with the metadata of the object. An aggregated API server
// may answer with the whole object.
const acceptMetadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
	"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// errOtherObject means that nothing is known of the outcome of a write.
var errOtherObject = errors.New("the answer is about another object")

// NewWriteClient returns a client for requests whose paths are given, and whose responses are
// metadata.
func NewWriteClient(config *rest.Config) (rest.Interface, error) {
	config = metadata.ConfigFor(config)
	config.GroupVersion = &schema.GroupVersion{}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return client, nil
}

// sender sends writes, and records their answers in the graph. It has no mutex of its own.
type sender struct {
	*sharedGraph
	watches *watches
	// client has no rate limit: the writer has waited.
	client  rest.Interface
	metrics *counters
	// dryRun logs the writes instead of sending them.
	dryRun bool
}

// delete sends a DELETE, and records the answer.
func (s *sender) delete(
	ctx context.Context, j graph.Judgement, policy metav1.DeletionPropagation, conflicts int,
) error {
	if s.dryRun {
		logDry(ctx, "delete", j.Object, string(policy))
		s.change(func(g *graph.Graph) { g.Sent(j.UID, j.Version) })
		return nil
	}
	body, err := json.Marshal(deleteOptions(j, policy, conflicts))
	if err != nil {
		return fmt.Errorf("encode options: %w", err)
	}
	answer, err := s.send(ctx, s.client.Delete().SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body), j.Object)
	if err != nil {
		return err
	}
	s.metrics.deleted.WithLabelValues(string(policy)).Inc()
	gone := s.provesGone(answer, j) && (conflicts < maxConflicts || !isStatus(answer))
	s.change(func(g *graph.Graph) {
		if gone {
			g.Deleted(j.UID, j.Coordinates())
			return
		}
		g.Sent(j.UID, j.Version)
	})
	return nil
}

// deleteOptions returns the options of a deletion after a number of conflicts. UID and version are preconditions: an
// object that was created since under this name, or got another owner since, is not deleted.
func deleteOptions(j graph.Judgement, policy metav1.DeletionPropagation, conflicts int) metav1.DeleteOptions {
	options := metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions:     &metav1.Preconditions{UID: &j.UID, ResourceVersion: &j.Version},
		PropagationPolicy: &policy,
	}
	if conflicts >= maxConflicts {
		options.Preconditions.ResourceVersion = nil
	}
	return options
}

// patch sends a PATCH, and records the answer.
func (s *sender) patch(ctx context.Context, j graph.Judgement, r removal) error {
	if s.dryRun {
		logDry(ctx, r.verb, j.Object, "")
		return nil
	}
	body, err := r.operations.Bytes()
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	written, err := s.send(ctx, s.client.Patch(types.JSONPatchType).Body(body), j.Object)
	if err != nil {
		return err
	}
	s.metrics.patched.WithLabelValues(r.verb).Inc()
	s.recordWritten(j, written)
	if s.isUndone(j, written) {
		return &controller.RevertedError{}
	}
	return nil
}

// isUndone reports whether the API server has stored nothing of a patch, since an admission webhook took the change back:
// no event follows, so that nothing else has the object judged again. The version of an aggregated API server proves
// nothing.
func (s *sender) isUndone(j graph.Judgement, written runtime.Object) bool {
	partial, ok := written.(*metav1.PartialObjectMetadata)
	return ok && partial.ResourceVersion == j.Version && !s.watches.mayIgnorePreconditions(j.Kind) &&
		(partial.DeletionTimestamp == nil || len(partial.Finalizers) > 0)
}

// send sends a write of the object without retries, since the judgement would be older than it may be. The outcome of a
// write that is not answered in time is unknown, and the object judged anew. The answer is nil if it cannot be decoded.
func (s *sender) send(ctx context.Context, request *rest.Request, object graph.Object) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	result := request.AbsPath(path(object)...).SetHeader("Accept", acceptMetadata).MaxRetries(0).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	answer, err := result.Get()
	switch {
	case err != nil:
		answer = nil
	// The name of an object may lead a request elsewhere. What became of this object is not known then: if it counted as
	// gone, its owner would be released before it.
	case isAboutOther(answer, object.UID):
		return nil, errOtherObject
	}
	return answer, nil
}

// recordWritten records the answer to a patch.
func (s *sender) recordWritten(j graph.Judgement, written runtime.Object) {
	partial, ok := written.(*metav1.PartialObjectMetadata)
	switch {
	case !ok:
	case s.provesGone(partial, j):
		s.change(func(g *graph.Graph) { g.Deleted(j.UID, j.Coordinates()) })
	default:
		s.change(func(g *graph.Graph) { g.Refresh(j.Kind, partial) })
	}
}

// provesGone reports whether the success of a write proves that the object is gone. That of an aggregated API server,
// which may carry the write out later or not at all, does not: the owner would be released before the object. Its event
// follows.
func (s *sender) provesGone(answer runtime.Object, j graph.Judgement) bool {
	return saysGone(answer, j.UID) && !s.watches.mayIgnorePreconditions(j.Kind)
}

// saysGone reports whether the answer to a write says that no object with the UID is left: a
// deletion is answered with a status once nothing keeps the object, with the object else; and
// the object whose last finalizer was removed is gone. A namespace has no grace period, and
// finalizers in its spec.
func saysGone(answer runtime.Object, uid types.UID) bool {
	if status, is := answer.(*metav1.Status); is {
		return status.Status == metav1.StatusSuccess && status.Details != nil && status.Details.UID == uid
	}
	object, err := meta.Accessor(answer)
	if err != nil || object.GetUID() != uid || object.GetDeletionTimestamp() == nil || len(object.GetFinalizers()) > 0 {
		return false
	}
	grace := object.GetDeletionGracePeriodSeconds()
	return grace != nil && *grace == 0
}

// isStatus reports whether a write was answered with a status. A deletion without a version as precondition is
// answered so, too, if the object was being deleted within its grace period already, and exists.
func isStatus(answer runtime.Object) bool {
	_, is := answer.(*metav1.Status)
	return is
}

// isAboutOther reports whether the answer to a write is another object.
func isAboutOther(answer runtime.Object, uid types.UID) bool {
	if isStatus(answer) {
		return false
	}
	object, err := meta.Accessor(answer)
	return err == nil && object.GetUID() != uid
}

func logDry(ctx context.Context, verb string, object graph.Object, policy string) {
	klog.FromContext(ctx).Info("Dry run: no write", "verb", verb, "resource", object.Kind.GroupResource(),
		"object", klog.KRef(object.Namespace, object.Name), "uid", object.UID, "policy", policy)
}

// guarded returns a patch that applies to this version of the object only.
func guarded(object graph.Object) *patch.Patch {
	return patch.ForVersion(&metav1.ObjectMeta{UID: object.UID, ResourceVersion: object.Version})
}

// removeReferences returns a patch that removes the references at the places.
func removeReferences(object graph.Object, places []int) *patch.Patch {
	p := guarded(object)
	for i := range places {
		p.Remove("/metadata/ownerReferences/" + strconv.Itoa(places[len(places)-1-i]))
	}
	return p
}

// removeFinalizer returns a patch that removes the finalizer at the place.
func removeFinalizer(object graph.Object, place int, finalizer string) *patch.Patch {
	at := "/metadata/finalizers/" + strconv.Itoa(place)
	return guarded(object).Test(at, finalizer).Remove(at)
}
