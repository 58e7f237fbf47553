package window

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

// execute sends one write. The object is what a PATCH returns.
func (d *deletion) execute(ctx context.Context) error {
	var err error
	if d.decision.Action == Delete {
		err = d.delete(ctx)
	} else {
		err = d.annotate(ctx)
	}
	d.unknown = d.unknown || err != nil && !answer.IsDefinite(err)
	d.readClock()
	return err
}

// takeBack removes the annotation of a living object after an error: for a minute any other deletion of the object
// would get the deadline. It stays if a DELETE may have been executed, or if another client deletes the object, which
// may have asked for the same deadline. That of force is removed all the same. It would cut off a deletion that nobody
// forced, and whoever forces again loses nothing.
func (d *deletion) takeBack(ctx context.Context, failure error) error {
	window, written := deadline.Parse(d.written)
	forced := window.Start.Equal(window.End)
	if !written || d.sent || d.unknown && !forced {
		return failure
	}
	change := patch.For(d.first).Test(path, d.written).Remove(path)
	if !forced {
		change.Test("/metadata/deletionTimestamp", nil) // there is none
	}
	// Ctrl-C may be why the DELETE failed.
	ctx = context.WithoutCancel(ctx)
	if _, err := d.patch(ctx, change); err != nil && (!answer.NeedsRead(err) || !d.isHarmless(ctx, forced)) {
		return fmt.Errorf("%w; the annotation %s may be there, and has no effect after a minute", failure, deadline.Annotation)
	}
	return failure
}

// isHarmless reads whether what this command wrote is gone, or without effect on an object that others have deleted.
func (d *deletion) isHarmless(ctx context.Context, forced bool) bool {
	seen := *d
	if err := seen.read(ctx); err != nil {
		return false
	}
	return seen.object == nil || seen.object.GetAnnotations()[deadline.Annotation] != d.written ||
		!forced && seen.object.GetDeletionTimestamp() != nil
}

func (d *deletion) delete(ctx context.Context) error {
	err := d.objects().Delete(ctx, d.ref.Name, d.options())
	switch {
	case err == nil:
		d.sent, d.undone, d.reason = true, false, d.decision.Reason
		return nil
	case answer.IsDefinite(err):
		return fmt.Errorf("delete %s: %w; %s", Name(d.ref), err, d.unchanged())
	}
	return fmt.Errorf("delete %s: %w; whether it was deleted is not known", Name(d.ref), err)
}

// options are those of the DELETE. A living object is deleted only as it was read or written: with another annotation
// it would get another deadline, or none, and with a finalizer its controller would need one.
func (d *deletion) options() metav1.DeleteOptions {
	uid, version := d.object.GetUID(), d.object.GetResourceVersion()
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	bare := len(d.object.GetFinalizers()) == 0
	if bare || d.object.GetDeletionTimestamp() == nil {
		options.Preconditions.ResourceVersion = &version
	}
	if d.seconds != nil && !bare {
		seconds := min(*d.seconds, MaxSeconds)
		options.GracePeriodSeconds = &seconds
	}
	return options
}

// annotate writes the annotation, or removes it. An answer without the change is an error if the object lives: a webhook
// may have undone it, and a DELETE would be one without the deadline. Our API server keeps its own for a deletion.
func (d *deletion) annotate(ctx context.Context) error {
	change, want := patch.ForVersion(d.object), d.window.String()
	if d.decision.Action == Unannotate {
		want = ""
		change.Remove(path)
	} else {
		change.Annotate(d.object, map[string]string{deadline.Annotation: want})
	}
	before := d.written
	d.written = want
	object, err := d.patch(ctx, change)
	undone := err == nil && object.GetAnnotations()[deadline.Annotation] != want
	if undone && d.object.GetDeletionTimestamp() == nil {
		err = &answer.Refusal{Answer: errUndone}
	}
	if err == nil {
		d.object, d.undone = object, undone
		return nil
	}
	what := "whether the deadline was moved is not known"
	if answer.IsDefinite(err) {
		d.written = before
	}
	if answer.IsDefinite(err) || d.object.GetDeletionTimestamp() == nil {
		what = d.unchanged()
	}
	return fmt.Errorf("write the annotation %s of %s, which holds the deadline: %w; %s", deadline.Annotation,
		Name(d.ref), err, what)
}

var errUndone = errors.New("the API server accepted the change and did not store it, as a webhook or the conversion " +
	"of another version can do")

// unchanged says what the object is if the last request did nothing.
func (d *deletion) unchanged() string {
	switch {
	case d.sent:
		return "it was deleted" + outcome(deadline.Of(d.object))
	case d.object.GetDeletionTimestamp() != nil:
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
