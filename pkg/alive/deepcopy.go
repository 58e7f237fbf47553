package alive

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopy returns a copy that shares no memory with the object.
func (a *Alive) DeepCopy() *Alive {
	if a == nil {
		return nil
	}
	return &Alive{TypeMeta: a.TypeMeta, ObjectMeta: *a.ObjectMeta.DeepCopy(), Spec: a.Spec.DeepCopy(),
		Status: a.Status.DeepCopy()}
}

// DeepCopyObject implements [runtime.Object].
func (a *Alive) DeepCopyObject() runtime.Object { return a.DeepCopy() }

// DeepCopy returns a copy that shares no memory with the list.
func (l *List) DeepCopy() *List {
	if l == nil {
		return nil
	}
	out := &List{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy(), Items: slices.Clone(l.Items)}
	for i := range out.Items {
		out.Items[i] = *l.Items[i].DeepCopy()
	}
	return out
}

// DeepCopyObject implements [runtime.Object].
func (l *List) DeepCopyObject() runtime.Object { return l.DeepCopy() }

// DeepCopy returns a copy that shares no memory with the spec.
func (s Spec) DeepCopy() Spec {
	s.Protected, s.Timeout = clone(s.Protected), clone(s.Timeout)
	s.ConfirmedAt, s.Last = s.ConfirmedAt.DeepCopy(), slices.Clone(s.Last)
	return s
}

// DeepCopy returns a copy that shares no memory with the status.
func (s Status) DeepCopy() Status {
	s.StartedAt, s.Remaining = s.StartedAt.DeepCopy(), slices.Clone(s.Remaining)
	for i := range s.Remaining {
		s.Remaining[i].Since = s.Remaining[i].Since.DeepCopy()
	}
	s.Conditions = slices.Clone(s.Conditions) // a condition has no pointers
	return s
}

func clone[T bool | metav1.Duration](value *T) *T {
	if value == nil {
		return nil
	}
	return new(*value)
}
