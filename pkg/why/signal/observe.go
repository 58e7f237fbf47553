package signal

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// Observation is Alive with what its meaning depends on.
type Observation struct {
	Object *alive.Alive
	State  State
	Freeze Freeze
	// ID is the UID of namespace kube-system, "" if it was not seen.
	ID types.UID
	// unsure: whether the CRD of Alive is being deleted was not seen.
	unsure bool
}

// Observe reads what the meaning of Alive depends on. The error says that the object cannot be understood.
func Observe(ctx context.Context, reader *cluster.Reader, content *unstructured.Unstructured) (*Observation, error) {
	object, err := alive.FromUnstructured(content)
	if err != nil {
		return nil, err
	}
	o := &Observation{Object: object, Freeze: ReadFreeze(ctx, reader)}
	kubeSystem := cluster.Ref{Resource: corev1.SchemeGroupVersion.WithResource("namespaces"), Kind: "Namespace",
		Name: metav1.NamespaceSystem}
	if namespace, presence, _ := reader.Live(ctx, kubeSystem); presence == cluster.Present {
		o.ID = namespace.GetUID()
	}
	definition, presence, _ := reader.Live(ctx, cluster.Ref{Resource: definitions, Kind: "CustomResourceDefinition", Name: alive.CRD})
	o.unsure = presence == cluster.Unseen
	o.State = State{Deleted: object.IsDeleted(), Protected: object.IsProtected(), Word: wordOf(object, o.ID, reader.Now()),
		Undefined: presence == cluster.Present && definition.GetDeletionTimestamp() != nil,
		Reported:  object.Status.Phase == alive.Stopped && isReported[object.Status.Reason]}
	return o, nil
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// isReported are the reasons of phase Stopped that the spec does not show.
var isReported = map[string]bool{alive.ReasonPaused: true, alive.ReasonNotReady: true, alive.ReasonRightsMissing: true}

// Stop completes the sentence "the teardown is stopped: ...", "" if nothing stops it.
func (o *Observation) Stop() string {
	if reason, _ := Decide(o.State); reason != blocker.TeardownStopped {
		return ""
	}
	switch {
	case o.State.Undefined:
		return "the CRD of Alive is being deleted, which is no request for a teardown"
	case !o.State.permitted():
		return o.Permission()
	}
	return fmt.Sprintf("%s, %s", o.Object.Status.Reason, oneLine(o.Object.Status.Message))
}

// Permission says what the spec permits.
func (o *Observation) Permission() string {
	deadline := blocker.Time(o.Object.Deadline())
	switch {
	case o.State.Protected:
		return "spec.protected is true"
	case o.State.Word == teardown.OtherWord:
		return "spec.confirm is the ID of another cluster"
	case o.State.Word == teardown.ExpiredWord:
		return "the permission ended at " + deadline + ", by spec.confirmedAt and spec.timeout"
	case o.State.Word == teardown.NoWord:
		return "spec.protected is false, and spec.confirm and spec.confirmedAt permit nothing"
	}
	return "spec permits the teardown until " + deadline
}

// evidence is what Alive and the freeze say.
func (o *Observation) evidence() []blocker.Evidence {
	status := o.Object.Status
	all := []blocker.Evidence{evidence(blocker.FromField, "%s", o.Permission())}
	if o.State.Undefined {
		all = append(all, evidence(blocker.FromField, "CustomResourceDefinition %s is being deleted", alive.CRD))
	}
	if status.Phase != "" {
		all = append(all, evidence(blocker.FromField, "status: phase %s, reason %s: %s", status.Phase, status.Reason, status.Message))
	}
	for _, kind := range []string{alive.ConditionReady, alive.ConditionStarted, alive.ConditionComplete} {
		if c := meta.FindStatusCondition(status.Conditions, kind); c != nil {
			all = append(all, evidence(blocker.FromCondition, "condition %s is %s since %s: %s", c.Type, c.Status,
				blocker.Time(c.LastTransitionTime.Time), strings.TrimSuffix(c.Reason+", "+oneLine(c.Message), ", ")))
		}
	}
	if text := o.Freeze.Text(); text != "" {
		all = append(all, evidence(blocker.FromField, "%s", text))
	}
	return all
}

func evidence(source blocker.Source, format string, values ...any) blocker.Evidence {
	return blocker.Evidence{Source: source, Text: fmt.Sprintf(format, values...)}
}

// DeadlineOf returns the end of the permission of an Alive that is being deleted, nil for any other object.
func DeadlineOf(object *unstructured.Unstructured) *blocker.Deadline {
	if object.GroupVersionKind() != alive.GroupVersion.WithKind(alive.Kind) || object.GetDeletionTimestamp() == nil {
		return nil
	}
	typed, err := alive.FromUnstructured(object)
	if err != nil || typed.Deadline().IsZero() {
		return nil
	}
	return &blocker.Deadline{Requested: blocker.Time(typed.Spec.ConfirmedAt.Time), Time: blocker.Time(typed.Deadline()),
		Source: blocker.FromField, Key: "spec.confirmedAt and spec.timeout"}
}
