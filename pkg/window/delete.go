package window

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/graceful"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// maxWrites is how many writes one object gets, most of them because others change it between read and write.
const maxWrites = 10

// Deleter deletes objects, with the rights of the Reader's user.
type Deleter struct {
	reader *cluster.Reader
	// seconds is the grace period, nil for none.
	seconds *int64
}

// NewDeleter returns a Deleter for the API server of the Reader. seconds is the grace period, nil for none.
func NewDeleter(reader *cluster.Reader, seconds *int64) *Deleter {
	return &Deleter{reader: reader, seconds: seconds}
}

// deletion is the deletion of one object.
type deletion struct {
	*Deleter
	ref cluster.Ref
	// first is what was read first, and object what was read last, or what a PATCH has returned since. The last answer came
	// at now by the clock of the API server. Window and decision are for object.
	first, object *unstructured.Unstructured
	now           time.Time
	window        deadline.Window
	decision      Decision
	// written is the annotation that this command has written, or may have written.
	written string
	// unknown: a write got no answer, and may have been executed.
	unknown bool
	// undone: the API server accepted the annotation of a deletion after the last DELETE, and did not store it.
	undone bool
	// sent: a DELETE was accepted, for this reason.
	sent   bool
	reason graceful.Reason
}

// Delete deletes one object. What others change between read and write is read again. An error says whether the
// object was deleted.
func (d *Deleter) Delete(ctx context.Context, ref cluster.Ref) (Result, error) {
	one := &deletion{Deleter: d, ref: ref}
	result, err := one.run(ctx)
	if err != nil {
		return Result{}, one.takeBack(ctx, err)
	}
	return result, nil
}

// run reads the object, then decides and writes until nothing is left to do.
func (d *deletion) run(ctx context.Context) (Result, error) {
	if err := d.read(ctx); err != nil {
		return Result{}, fmt.Errorf("read %s: %w", Name(d.ref), err)
	}
	if d.object == nil {
		return Result{}, absent(d.ref)
	}
	d.first = d.object
	var stale error
	for writes := 0; ; writes++ {
		if err := d.decide(); err != nil {
			return Result{}, err
		}
		if d.decision.Action == Nothing {
			return d.result(), nil
		}
		if writes == maxWrites {
			return Result{}, d.givenUp(stale)
		}
		stale = d.execute(ctx)
		switch {
		case stale == nil && d.decision.Action != Delete:
			continue // the PATCH returned the object
		case stale != nil && !answer.NeedsRead(stale):
			return Result{}, stale
		}
		if gone, err := d.readAgain(ctx); err != nil || gone {
			return d.result(), err
		}
	}
}

// givenUp is the error after the last write, whose own error is stale if it failed.
func (d *deletion) givenUp(stale error) error {
	if stale != nil {
		return fmt.Errorf("%w; given up after %d writes: others change it all the time, or a webhook refuses", stale, maxWrites)
	}
	return fmt.Errorf("%s is not as requested after %d writes: others change it all the time, a webhook undoes the writes, "+
		"or they take too long; %s", Name(d.ref), maxWrites, d.unchanged())
}

// absent says that there is no such object.
func absent(ref cluster.Ref) error {
	if ref.Namespace == "" {
		return fmt.Errorf("there is no %s", Name(ref))
	}
	return fmt.Errorf("there is no %s in namespace %s", Name(ref), ref.Namespace)
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
	d.readClock()
	return err
}

// readClock reads the clock of the API server after its answer.
func (d *deletion) readClock() {
	if now, known := d.reader.ServerTime(); known {
		d.now = now
	}
}

// readAgain reads the object after a write, and reports whether it is gone.
func (d *deletion) readAgain(ctx context.Context) (bool, error) {
	err := d.read(ctx)
	switch {
	case err != nil && d.sent:
		return false, fmt.Errorf("%s was deleted, and cannot be read any more: %w", Name(d.ref), err)
	case err != nil:
		return false, fmt.Errorf("read %s again: %w; nothing was deleted", Name(d.ref), err)
	case d.object == nil:
		return true, nil
	case d.object.GetUID() == d.first.GetUID():
		return false, nil
	case d.sent:
		d.object = nil
		return true, nil
	}
	return false, fmt.Errorf("another object has the name of %s now; nothing was deleted", Name(d.ref))
}

// decide decides about the object, and returns the sentence of a refusal.
func (d *deletion) decide() error {
	if d.now.IsZero() { // the clock of this machine may be wrong by hours
		return errors.New("the API server sends no header Date, from which a deadline could be counted; nothing was deleted")
	}
	state, window := observe(d.object, d.seconds, d.now)
	state.Sent, state.Written, state.DeleteOnly = d.sent, d.isWritten(state), state.DeleteOnly || d.undone
	d.window, d.decision = window, Decide(state)
	if d.decision.Action == Refuse {
		return refusal(d.ref, d.decision.Reason, deadline.Of(d.object))
	}
	return nil
}

// isWritten reports whether the object has the annotation that this command wrote, and it counts for a deletion.
func (d *deletion) isWritten(s State) bool {
	written, ok := deadline.Parse(d.written)
	switch {
	case !ok || d.object.GetAnnotations()[deadline.Annotation] != d.written:
		return false
	case s.Existing == graceful.Live:
		return d.now.Sub(written.Start) < fresh
	}
	return s.Existing != graceful.Plain // that of an API server whose clock differs has no effect
}

// result says what became of the object.
func (d *deletion) result() Result {
	result := Result{Ref: d.ref, UID: d.first.GetUID(), Reason: d.reason, Sent: d.sent, Gone: d.object == nil}
	if d.object != nil {
		result.Deletion = deadline.Of(d.object)
	}
	return result
}
