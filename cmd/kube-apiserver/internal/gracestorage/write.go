package gracestorage

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/storage"

	"github.com/exeunt-io/exeunt/cmd/kube-apiserver/internal/window"
	"github.com/exeunt-io/exeunt/pkg/graceful"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// write is one GuaranteedUpdate. Each try sets the rest of the fields again.
type write struct {
	update   storage.UpdateFunc
	holder   *holder
	resource schema.GroupResource
	now      func() time.Time

	before   deletion
	after    *unstructured.Unstructured
	state    graceful.State
	decision graceful.Decision
}

// try runs upstream's function, and decides on the deadline of what it returns.
func (w *write) try(existing runtime.Object, response storage.ResponseMeta) (runtime.Object, *uint64, error) {
	object, ok := existing.(*unstructured.Unstructured)
	if !ok {
		return w.update(existing, response)
	}
	w.before, w.state, w.decision = read(metadataOf(object)), graceful.State{}, graceful.Decision{}
	returned, ttl, err := w.updateEither(object, response)
	if err != nil {
		return returned, ttl, err
	}
	after, ok := returned.(*unstructured.Unstructured)
	if !ok {
		return returned, ttl, nil
	}
	w.after = after
	return returned, ttl, w.decide(metadataOf(after))
}

// updateEither runs upstream's function. A client that read the object at a stock API server sends the form of etcd:
// then the function runs again, on that form.
func (w *write) updateEither(object *unstructured.Unstructured,
	response storage.ResponseMeta) (runtime.Object, *uint64, error) {
	if !w.before.inGrace() || w.holder != nil {
		return w.update(object, response)
	}
	stored := window.Stored(object).DeepCopy() // before the function changes the object
	returned, ttl, err := w.update(object, response)
	if !namesSeconds(err) {
		return returned, ttl, err
	}
	if again, ttl, err := w.update(stored, response); !namesSeconds(err) {
		return again, ttl, err
	}
	return returned, ttl, err
}

// namesSeconds reports whether an error says that deletionGracePeriodSeconds may not change.
func namesSeconds(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == "metadata."+window.Seconds {
			return true
		}
	}
	return false
}

// decide decides on the deadline, and changes the metadata of the object after the write accordingly.
func (w *write) decide(metadata map[string]any) error {
	if w.before.kind == graceful.Live && !isDeleting(metadata) {
		return nil
	}
	now := w.now()
	w.state = w.observe(metadata, now)
	w.decision = graceful.Decide(w.state)
	switch w.decision.Action {
	case graceful.Keep:
		w.before.restore(metadata)
		w.before.keepPlain(metadata)
	case graceful.SetPlain:
		window.RemoveAnnotation(metadata)
	case graceful.SetForced:
		setForced(metadata)
	case graceful.SetDeadline:
		setDeadline(metadata, now, w.seconds())
	case graceful.Remove:
		return errLastFinalizer
	case graceful.Reject:
		return w.noRoom()
	case graceful.Leave:
		w.before.keepPlain(metadata)
	}
	return nil
}

// observe returns the state that is decided on.
func (w *write) observe(metadata map[string]any, now time.Time) graceful.State {
	state := graceful.State{Existing: w.before.kind, Request: w.request(now)}
	switch {
	case !hasFinalizers(metadata):
		state.Finalizers = graceful.NoneLeft
	case !w.before.finalizers:
		state.Finalizers = graceful.FirstAdded
	}
	state.NoRoom = !w.fits(metadata, state.Request)
	return state
}

// request returns what the request says of the grace period.
func (w *write) request(now time.Time) graceful.Request {
	seconds := w.holder.grace()
	switch {
	case w.holder == nil && w.before.kind != graceful.Live:
		return graceful.OtherWrite
	case seconds == nil: // without a holder, the API server itself deletes the object
		return graceful.NoGrace
	case *seconds == 0:
		return graceful.Zero
	case w.before.kind == graceful.Live || w.before.kind == graceful.Graceful &&
		deadlineAfter(now, w.seconds()).Before(w.before.end):
		return graceful.Earlier
	}
	return graceful.NotEarlier
}

// seconds returns the grace period of the request, within the limits.
func (w *write) seconds() int64 {
	seconds := w.holder.grace()
	if seconds == nil {
		return 0
	}
	if *seconds < 0 {
		return 1 // as for pods
	}
	return min(*seconds, deadline.MaxSeconds)
}

func deadlineAfter(now time.Time, seconds int64) time.Time {
	return now.Add(time.Duration(seconds) * time.Second)
}

// fits reports whether the annotations have room for the annotation that the write may need.
func (w *write) fits(metadata map[string]any, request graceful.Request) bool {
	switch {
	case request != graceful.OtherWrite:
		return window.Fits(metadata, window.Length)
	case w.before.inGrace() && !w.before.full: // an annotation without effect is replaced by a longer one
		return window.Fits(metadata, max(len(w.before.window), window.Length))
	case w.before.hasWindow:
		return window.Fits(metadata, len(w.before.window))
	}
	return true // none is added
}

// noRoom is the error of stock for annotations that are too long.
func (w *write) noRoom() error {
	tooLong := field.TooLong(field.NewPath("metadata", window.Annotations), "", validation.TotalAnnotationSizeLimitB)
	tooLong.Detail += ", with " + deadline.Annotation + " of the object, which is being deleted"
	return apierrors.NewInvalid(w.after.GroupVersionKind().GroupKind(), w.after.GetName(), field.ErrorList{tooLong})
}

// setForced marks a deletion as forced. Upstream's function has set the deletion timestamp to now, or left an earlier one.
func setForced(metadata map[string]any) {
	text, _ := metadata[window.Timestamp].(string)
	window.SetAnnotation(metadata, text+"/"+text)
}

// setDeadline sets the deadline in the form that clients see.
func setDeadline(metadata map[string]any, now time.Time, seconds int64) {
	end := deadlineAfter(now, seconds)
	metadata[window.Timestamp] = window.Format(end)
	metadata[window.Seconds] = seconds
	window.SetAnnotation(metadata, deadline.Window{Start: now, End: end}.String())
}
