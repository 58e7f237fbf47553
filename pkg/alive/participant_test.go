package alive_test

import (
	"errors"
	"reflect"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/alive"
)

const finalizer = "buckets.example.com/teardown"

var participant = alive.Participant{Finalizer: finalizer, Namespace: "buckets", Text: "buckets of dev"}

// client returns a fake client with the object, none if it is nil.
func client(t *testing.T, object *alive.Alive) *fake.FakeDynamicClient {
	t.Helper()
	kinds := map[schema.GroupVersionResource]string{alive.Resource: "AliveList"}
	if object == nil {
		return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	}
	content, err := alive.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, content)
}

func object(change func(*alive.Alive)) *alive.Alive {
	one := alive.New()
	one.UID, one.ResourceVersion = "1", "7"
	change(one)
	return one
}

func live(t *testing.T, c *fake.FakeDynamicClient) *unstructured.Unstructured {
	t.Helper()
	got, err := c.Resource(alive.Resource).Get(t.Context(), alive.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func writes(c *fake.FakeDynamicClient) (count int) {
	for _, action := range c.Actions() {
		if action.GetVerb() != "get" {
			count++
		}
	}
	return count
}

func TestRegisterAddsFinalizerAndAnnotationOnce(t *testing.T) {
	for name, change := range map[string]func(*alive.Alive){
		"new":                    func(*alive.Alive) {},
		"finalizer without text": func(a *alive.Alive) { a.Finalizers = append(a.Finalizers, finalizer) },
		"another text":           func(a *alive.Alive) { a.Annotations = map[string]string{finalizer: "x: y"} },
		"another annotation":     func(a *alive.Alive) { a.Annotations = map[string]string{"a": "b"} },
		"no finalizers":          func(a *alive.Alive) { a.Finalizers = nil },
	} {
		t.Run(name, func(t *testing.T) {
			before := object(change)
			c := client(t, before)
			for range 2 {
				if err := alive.Register(t.Context(), c, participant); err != nil {
					t.Fatal(err)
				}
			}
			if count := writes(c); count != 1 {
				t.Errorf("%d writes, want 1", count)
			}
			want := before.Finalizers
			if name != "finalizer without text" {
				want = append(want, finalizer)
			}
			got := live(t, c)
			if !reflect.DeepEqual(got.GetFinalizers(), want) || got.GetAnnotations()[finalizer] != "buckets: buckets of dev" ||
				got.GetAnnotations()["a"] != before.Annotations["a"] {
				t.Errorf("finalizers %v, annotations %v", got.GetFinalizers(), got.GetAnnotations())
			}
		})
	}
}

func TestRegisterNeedsAnAliveThatIsNotDeleted(t *testing.T) {
	if err := alive.Register(t.Context(), client(t, nil), participant); !errors.Is(err, alive.ErrAbsent) {
		t.Errorf("without Alive: %v", err)
	}
	c := client(t, object(func(a *alive.Alive) { a.DeletionTimestamp = at(0) }))
	if err := alive.Register(t.Context(), c, participant); !errors.Is(err, alive.ErrDeleting) || writes(c) != 0 {
		t.Errorf("deleted Alive: %v, %d writes", err, writes(c))
	}
	c = client(t, object(func(a *alive.Alive) { a.DeletionTimestamp, a.Finalizers = at(0), []string{finalizer} }))
	if err := alive.Register(t.Context(), c, participant); err != nil || writes(c) != 0 {
		t.Errorf("deleted Alive with the finalizer: %v, %d writes", err, writes(c))
	}
}

func TestInvalidParticipantIsRefused(t *testing.T) {
	for name, p := range map[string]alive.Participant{
		"no finalizer":               {Namespace: "n", Text: "t"},
		"finalizer without domain":   {Finalizer: "teardown", Namespace: "n", Text: "t"},
		"the runner's finalizer":     {Finalizer: alive.Finalizer, Namespace: "n", Text: "t"},
		"no namespace":               {Finalizer: finalizer, Text: "t"},
		"namespace with a colon":     {Finalizer: finalizer, Namespace: "a: b", Text: "t"},
		"no text":                    {Finalizer: finalizer, Namespace: "n"},
		"text that moves the cursor": {Finalizer: finalizer, Namespace: "n", Text: "\x1b[2J"},
	} {
		t.Run(name, func(t *testing.T) {
			c := client(t, object(func(*alive.Alive) {}))
			if err := alive.Register(t.Context(), c, p); err == nil || len(c.Actions()) != 0 {
				t.Errorf("error %v, requests %v", err, c.Actions())
			}
		})
	}
	c := client(t, object(func(*alive.Alive) {}))
	if err := alive.Done(t.Context(), c, alive.Finalizer); err == nil || len(c.Actions()) != 0 {
		t.Errorf("the runner's finalizer is removed: %v", err)
	}
}

func TestDoneRemovesItsFinalizerOnly(t *testing.T) {
	registered := func(a *alive.Alive) {
		a.Finalizers = []string{"other.example.com/f", finalizer, alive.Finalizer}
		a.Annotations = map[string]string{finalizer: "buckets: x", "other.example.com/f": "y: z"}
	}
	for name, deleted := range map[string]bool{"leaves": false, "is done": true} {
		t.Run(name, func(t *testing.T) {
			c := client(t, object(func(a *alive.Alive) {
				registered(a)
				if deleted {
					a.DeletionTimestamp = at(0)
				}
			}))
			for range 2 {
				if err := alive.Done(t.Context(), c, finalizer); err != nil {
					t.Fatal(err)
				}
			}
			got := live(t, c)
			if !reflect.DeepEqual(got.GetFinalizers(), []string{"other.example.com/f", alive.Finalizer}) ||
				!reflect.DeepEqual(got.GetAnnotations(), map[string]string{"other.example.com/f": "y: z"}) || writes(c) != 1 {
				t.Errorf("finalizers %v, annotations %v, %d writes", got.GetFinalizers(), got.GetAnnotations(), writes(c))
			}
		})
	}
	if err := alive.Done(t.Context(), client(t, nil), finalizer); err != nil {
		t.Errorf("Alive is gone: %v", err)
	}
}

// refuse makes the next patches fail with the error.
func refuse(c *fake.FakeDynamicClient, count int, err error) {
	c.PrependReactor("patch", "alives", func(clienttesting.Action) (bool, runtime.Object, error) {
		count--
		return count >= 0, nil, err
	})
}

func TestStaleChangeIsMadeAgain(t *testing.T) {
	stale := apierrors.NewConflict(alive.Resource.GroupResource(), alive.Name, errors.New("changed"))
	c := client(t, object(func(*alive.Alive) {}))
	refuse(c, 2, stale)
	if err := alive.Register(t.Context(), c, participant); err != nil {
		t.Error(err)
	}
	c = client(t, object(func(*alive.Alive) {}))
	refuse(c, 1000, stale)
	var refusal *answer.Refusal
	err := alive.Register(t.Context(), c, participant)
	if !errors.As(err, &refusal) || !errors.Is(refusal.Answer, stale) || apierrors.IsConflict(err) || writes(c) > 10 {
		t.Errorf("error %v after %d writes, want one that no program takes for a conflict", err, writes(c))
	}
}

func TestAnswerToAWriteProvesNoAbsence(t *testing.T) {
	c := client(t, object(func(a *alive.Alive) { a.Finalizers = append(a.Finalizers, finalizer) }))
	refuse(c, 1, apierrors.NewNotFound(alive.Resource.GroupResource(), alive.Name))
	if err := alive.Done(t.Context(), c, finalizer); err != nil {
		t.Fatal(err)
	}
	if got := live(t, c).GetFinalizers(); !reflect.DeepEqual(got, []string{alive.Finalizer}) {
		t.Errorf("finalizers %v", got)
	}
}

func TestRefusedWriteIsAnError(t *testing.T) {
	c := client(t, object(func(a *alive.Alive) { a.Finalizers = append(a.Finalizers, finalizer) }))
	refuse(c, 1, apierrors.NewForbidden(alive.Resource.GroupResource(), alive.Name, errors.New("no right")))
	if err := alive.Done(t.Context(), c, finalizer); !apierrors.IsForbidden(err) {
		t.Errorf("error %v", err)
	}
}

func TestParticipantsOf(t *testing.T) {
	one := object(func(a *alive.Alive) {
		a.Finalizers = []string{"b.example.com/f", alive.Finalizer, metav1.FinalizerDeleteDependents, finalizer,
			metav1.FinalizerOrphanDependents, "c.example.com/f"}
		a.Annotations = map[string]string{finalizer: "buckets: buckets: all", "c.example.com/f": "no namespace: text"}
	})
	want := []alive.Participant{{Finalizer: "b.example.com/f"}, {Finalizer: finalizer, Namespace: "buckets", Text: "buckets: all"},
		{Finalizer: "c.example.com/f", Text: "no namespace: text"}}
	if got := alive.ParticipantsOf(one); !reflect.DeepEqual(got, want) {
		t.Errorf("participants %+v, want %+v", got, want)
	}
}
