package window

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/graceful"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// attempts is how often an object is read again that others change between read and write.
const attempts = 5

// Deleter deletes objects, with the rights of the Reader's user.
type Deleter struct {
	reader *cluster.Reader
	// seconds is the grace period, nil for none.
	seconds *int64
	ours    bool
}

// IsOurs reports whether the API server of the version has graceful deletion of custom resources.
func IsOurs(version string) bool { return strings.Contains(version, "+exeunt.") }

// NewDeleter returns a Deleter for the API server of the Reader. seconds is the grace period, nil for none.
func NewDeleter(ctx context.Context, reader *cluster.Reader, seconds *int64) (*Deleter, error) {
	version, err := reader.Version(ctx)
	if err != nil {
		return nil, err
	}
	return &Deleter{reader: reader, seconds: seconds, ours: IsOurs(version)}, nil
}

// deletion is the deletion of one object.
type deletion struct {
	*Deleter
	ref cluster.Ref
	// object is what was read last, and the window and decision are for it.
	object   *unstructured.Unstructured
	window   deadline.Window
	decision Decision
}

// Delete deletes one object. What others change between read and write is read again. An error says whether the
// object was deleted.
func (d *Deleter) Delete(ctx context.Context, ref cluster.Ref) (Result, error) {
	one := &deletion{Deleter: d, ref: ref}
	var stale error
	for range attempts {
		before := one.object
		err := one.read(ctx)
		switch {
		case err != nil && before != nil:
			return Result{}, fmt.Errorf("read %s again: %w; nothing was deleted", Name(ref), err)
		case err != nil:
			return Result{}, fmt.Errorf("read %s: %w", Name(ref), err)
		case one.object == nil && before == nil:
			return Result{}, absent(ref)
		case one.object == nil:
			return Result{Ref: ref, UID: before.GetUID(), Gone: true}, nil
		case before != nil && before.GetUID() != one.object.GetUID():
			return Result{}, fmt.Errorf("another object has the name of %s now; nothing was deleted", Name(ref))
		}
		if err := one.decide(); err != nil {
			return Result{}, err
		}
		if stale = one.execute(ctx); stale == nil {
			result, err := one.result(ctx)
			if !one.isOutdone() {
				return result, err
			}
			stale = fmt.Errorf("another client wrote a later deadline of %s", Name(ref))
			continue
		}
		if !isStale(stale) {
			return Result{}, stale
		}
	}
	return Result{}, fmt.Errorf("%w, %d times: others change it all the time, or a webhook refuses", stale, attempts)
}

// absent says that there is no such object.
func absent(ref cluster.Ref) error {
	if ref.Namespace == "" {
		return fmt.Errorf("there is no %s", Name(ref))
	}
	return fmt.Errorf("there is no %s in namespace %s", Name(ref), ref.Namespace)
}

// isStale reports whether a write failed because the object changed, or is gone: only a read tells.
func isStale(err error) bool {
	return patch.IsStale(err) || apierrors.ReasonForError(err) == metav1.StatusReasonNotFound
}

func (d *deletion) objects() dynamic.ResourceInterface {
	return d.reader.Dynamic().Resource(d.ref.Resource).Namespace(d.ref.Namespace)
}

// read reads the object live. It is nil if it does not exist.
func (d *deletion) read(ctx context.Context) error {
	object, exists, err := answer.Get(ctx, d.ref.Name, func(ctx context.Context, name string,
		options metav1.GetOptions) (*unstructured.Unstructured, error) {
		return d.objects().Get(ctx, name, options)
	})
	if !exists {
		object = nil
	}
	d.object = object
	return err
}

// decide decides about the object that was read, and returns the sentence of a refusal.
func (d *deletion) decide() error {
	now, known := d.reader.ServerTime()
	if !known && !d.ours { // the clock of this machine may be wrong by hours
		return errors.New("the API server sends no header Date, from which a deadline could be counted; nothing was deleted")
	}
	state, window := observe(d.object, d.seconds, now)
	state.Ours = d.ours
	d.window, d.decision = window, Decide(state)
	if d.decision.Action == Refuse {
		return refusal(d.ref, d.decision.Reason, deadline.Of(d.object))
	}
	return nil
}

// execute writes the annotation if it is needed, and sends the DELETE. An API server of upstream changes nothing in an
// object that is being deleted: there the DELETE is first, and shows whether the user may move the deadline at all.
func (d *deletion) execute(ctx context.Context) error {
	switch {
	case d.decision.Action == Nothing || d.decision.Action == Refuse:
		return nil
	case d.decision.Action == Delete:
		return d.delete(ctx)
	case d.object.GetDeletionTimestamp() != nil:
		if err := d.delete(ctx); err != nil {
			return err
		}
		return d.annotate(ctx)
	}
	err := d.annotate(ctx)
	if answer.IsDefinite(err) { // nothing was written
		return err
	}
	if err == nil {
		err = d.delete(ctx)
	}
	if err != nil && d.decision.Action == Annotate {
		return d.takeBack(ctx, err)
	}
	return err
}

// takeBack removes the annotation after an error that says that no DELETE was executed: for a minute any other deletion
// of the object would get the deadline. That of force is removed after every error. It would cut off a deletion that nobody forced,
// and whoever forces again loses nothing.
func (d *deletion) takeBack(ctx context.Context, failure error) error {
	if !answer.IsDefinite(failure) && d.window.Start != d.window.End {
		return failure
	}
	change := patch.For(d.object).Test(path, d.window.String()).Remove(path)
	// Ctrl-C may be why the DELETE failed.
	if _, err := d.patch(context.WithoutCancel(ctx), change); err != nil && !isStale(err) {
		return fmt.Errorf("%w; the annotation %s may be there, and has no effect after a minute", failure, deadline.Annotation)
	}
	return failure
}

func (d *deletion) delete(ctx context.Context) error {
	err := d.objects().Delete(ctx, d.ref.Name, d.options())
	switch {
	case err == nil:
		return nil
	case answer.IsDefinite(err):
		return fmt.Errorf("delete %s: %w; %s", Name(d.ref), err, d.unchanged())
	}
	return fmt.Errorf("delete %s: %w; whether it was deleted is not known", Name(d.ref), err)
}

// annotate writes the annotation, or removes it. An answer without the change is an error: a webhook may have undone it,
// and a DELETE would be one without the deadline.
func (d *deletion) annotate(ctx context.Context) error {
	change, want := patch.ForVersion(d.object), d.window.String()
	if d.decision.Action == Unannotate {
		want = ""
		change.Remove(path)
	} else {
		change.Annotate(d.object, map[string]string{deadline.Annotation: want})
	}
	written, err := d.patch(ctx, change)
	if err == nil && written.GetAnnotations()[deadline.Annotation] != want {
		err = &answer.Refusal{Answer: errUndone}
	}
	if err == nil {
		return nil
	}
	outcome := d.unchanged()
	if !answer.IsDefinite(err) && d.object.GetDeletionTimestamp() != nil {
		outcome = "whether the deadline was moved is not known"
	}
	return fmt.Errorf("write the annotation %s of %s, which holds the deadline: %w; %s", deadline.Annotation, Name(d.ref), err,
		outcome)
}

var errUndone = errors.New("the API server accepted the change and did not store it, as a webhook or the conversion of " +
	"another version can do")

// unchanged says what a request has done that was refused.
func (d *deletion) unchanged() string {
	if d.object.GetDeletionTimestamp() != nil {
		return "nothing was changed"
	}
	return "nothing was deleted"
}

// path is that of the annotation.
var path = "/metadata/annotations/" + patch.Escape(deadline.Annotation)

func (d *deletion) patch(ctx context.Context, change *patch.Patch) (*unstructured.Unstructured, error) {
	body, err := change.Bytes()
	if err != nil {
		return nil, err
	}
	return d.objects().Patch(ctx, d.ref.Name, types.JSONPatchType, body, metav1.PatchOptions{})
}

// options are those of the DELETE. An object without finalizers is deleted only as it was read: with a finalizer, its
// controller would need the deadline.
func (d *deletion) options() metav1.DeleteOptions {
	uid := d.object.GetUID()
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	if len(d.object.GetFinalizers()) == 0 {
		version := d.object.GetResourceVersion()
		options.Preconditions.ResourceVersion = &version
		return options
	}
	if d.seconds != nil {
		seconds := min(*d.seconds, deadline.MaxSeconds)
		options.GracePeriodSeconds = &seconds
	}
	return options
}

// result reads what became of the object.
func (d *deletion) result(ctx context.Context) (Result, error) {
	result := Result{Ref: d.ref, UID: d.object.GetUID(), Reason: d.decision.Reason, Sent: d.decision.Action != Nothing}
	if err := d.read(ctx); err != nil {
		return result, fmt.Errorf("%s was deleted, and cannot be read any more: %w", Name(d.ref), err)
	}
	if d.object == nil || d.object.GetUID() != result.UID {
		result.Gone = true
		return result, nil
	}
	result.Deletion = deadline.Of(d.object)
	switch kind := result.Deletion.Kind(); {
	case kind == deadline.NotDeleted:
		return result, fmt.Errorf("%s is not being deleted, although the API server accepted the request", Name(d.ref))
	case kind == deadline.Unspecified && (graceful.Decision{Reason: result.Reason}).Accepted(),
		kind == deadline.Graceful && result.Reason == graceful.ForceRequested:
		return result, notInForce(d.ref)
	}
	return result, nil
}

// isOutdone reports whether the object has a later deadline than the annotation that was written: another client wrote
// its own between the annotation and the DELETE of this one.
func (d *deletion) isOutdone() bool {
	if d.decision.Action != Annotate || d.object == nil {
		return false
	}
	now := deadline.Of(d.object)
	return now.Kind() == deadline.Graceful && now.Deadline(0).After(d.window.End)
}
