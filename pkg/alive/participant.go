package alive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

// Participant is a program that has to clean up before the cluster goes away.
type Participant struct {
	// Finalizer is its finalizer on Alive, such as buckets.example.com/teardown.
	Finalizer string
	// Namespace is where the program runs. It goes after the participant is done.
	Namespace string
	// Text says what it cleans up, such as "buckets of the account dev".
	Text string
}

var (
	// ErrAbsent: no Alive exists. The runner creates it; its events tell when to register.
	ErrAbsent = errors.New("no Alive exists yet")
	// ErrDeleting: Alive is being deleted, and takes no participant any more.
	ErrDeleting = errors.New("Alive is being deleted and takes no new participant")
)

// Register adds the finalizer and the annotation of the same name to Alive, before it is deleted. It writes nothing if
// both are there: call it on each event of Alive. It needs get and patch of alives.
func Register(ctx context.Context, client dynamic.Interface, p Participant) error {
	if err := p.validate(); err != nil {
		return fmt.Errorf("register with Alive: %w", err)
	}
	err := change(ctx, client, func(object *unstructured.Unstructured) (*patch.Patch, error) {
		registered := slices.Contains(object.GetFinalizers(), p.Finalizer)
		switch {
		case object.GetDeletionTimestamp() != nil && registered:
			return nil, nil
		case object.GetDeletionTimestamp() != nil:
			return nil, ErrDeleting
		}
		edit := patch.For(object)
		if !registered {
			withFinalizers(edit, object, append(slices.Clone(object.GetFinalizers()), p.Finalizer))
		}
		if object.GetAnnotations()[p.Finalizer] != p.annotation() {
			edit.Annotate(object, map[string]string{p.Finalizer: p.annotation()})
		}
		return edit, nil
	})
	if err != nil {
		return fmt.Errorf("register with Alive: %w", err)
	}
	return nil
}

// Done removes the finalizer and its annotation: all external resources of the participant are gone, or it takes part no
// more. It writes nothing if neither is there, or Alive is gone.
func Done(ctx context.Context, client dynamic.Interface, finalizer string) error {
	if err := (Participant{Finalizer: finalizer}).validateFinalizer(); err != nil {
		return fmt.Errorf("leave Alive: %w", err)
	}
	err := change(ctx, client, func(object *unstructured.Unstructured) (*patch.Patch, error) {
		edit := patch.For(object)
		if old := object.GetFinalizers(); slices.Contains(old, finalizer) {
			withFinalizers(edit, object, slices.DeleteFunc(slices.Clone(old), func(f string) bool { return f == finalizer }))
		}
		if text, found := object.GetAnnotations()[finalizer]; found {
			path := "/metadata/annotations/" + patch.Escape(finalizer)
			edit.Test(path, text).Remove(path)
		}
		return edit, nil
	})
	if err != nil && !errors.Is(err, ErrAbsent) {
		return fmt.Errorf("leave Alive: %w", err)
	}
	return nil
}

// ParticipantsOf returns the participants that have not finished yet, in the order of their finalizers. The namespace
// of one without a valid annotation is empty.
func ParticipantsOf(object metav1.Object) []Participant {
	var all []Participant
	for _, finalizer := range object.GetFinalizers() {
		// Those of the garbage collector are of "kubectl delete --cascade".
		if finalizer == Finalizer || finalizer == metav1.FinalizerDeleteDependents || finalizer == metav1.FinalizerOrphanDependents {
			continue
		}
		p := Participant{Finalizer: finalizer, Text: object.GetAnnotations()[finalizer]}
		namespace, text, found := strings.Cut(p.Text, ": ")
		if found && len(validation.IsDNS1123Label(namespace)) == 0 {
			p.Namespace, p.Text = namespace, text
		}
		all = append(all, p)
	}
	return all
}

// tries bounds how often a change is made again because Alive has changed meanwhile.
const tries = 5

// change reads Alive live and patches it, if the patch changes anything.
func change(ctx context.Context, client dynamic.Interface,
	edit func(*unstructured.Unstructured) (*patch.Patch, error)) error {
	alives := client.Resource(Resource)
	get := func(ctx context.Context, name string, o metav1.GetOptions) (*unstructured.Unstructured, error) {
		return alives.Get(ctx, name, o)
	}
	var refusal error
	for range tries {
		object, exists, err := answer.Get(ctx, Name, get)
		switch {
		case err != nil:
			return err
		case !exists:
			return ErrAbsent
		}
		edited, err := edit(object)
		if err != nil || edited == nil || edited.Empty() {
			return err
		}
		body, err := edited.Bytes()
		if err != nil {
			return err
		}
		_, refusal = alives.Patch(ctx, Name, types.JSONPatchType, body, metav1.PatchOptions{})
		if !answer.NeedsRead(refusal) {
			return refusal
		}
	}
	// Not with the status of a conflict, which programs repeat without a word.
	return fmt.Errorf("Alive changes all the time, or a webhook refuses: %w", &answer.Refusal{Answer: refusal})
}

// withFinalizers replaces the finalizers if they are as they were observed. A list that is empty is absent, which a test
// cannot say: the version says it.
func withFinalizers(edit *patch.Patch, object metav1.Object, finalizers []string) {
	if old := object.GetFinalizers(); len(old) > 0 {
		edit.Test("/metadata/finalizers", old)
	} else {
		edit.Test("/metadata/resourceVersion", object.GetResourceVersion())
	}
	edit.Set("/metadata/finalizers", finalizers)
}

func (p Participant) annotation() string { return p.Namespace + ": " + p.Text }

func (p Participant) validate() error {
	if err := p.validateFinalizer(); err != nil {
		return err
	}
	if problems := validation.IsDNS1123Label(p.Namespace); len(problems) > 0 {
		return fmt.Errorf("namespace %q: %s", p.Namespace, problems[0])
	}
	if p.Text == "" || strings.ContainsFunc(p.Text, unicode.IsControl) {
		return fmt.Errorf("text %q is empty or has control characters", p.Text)
	}
	return nil
}

func (p Participant) validateFinalizer() error {
	if problems := validation.IsQualifiedName(p.Finalizer); len(problems) > 0 || !strings.Contains(p.Finalizer, "/") {
		return fmt.Errorf("finalizer %q is not of the form example.com/name", p.Finalizer)
	}
	if p.Finalizer == Finalizer {
		return fmt.Errorf("finalizer %q is that of the runner", p.Finalizer)
	}
	return nil
}
