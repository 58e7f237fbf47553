package storage

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// recently is how long an error that was reported counts as an error of now.
const recently = 10 * time.Minute

// askedAt returns when the deletion of the object was asked for, "" if it was not.
func askedAt(object metav1.Object) string {
	deletion := object.GetDeletionTimestamp()
	if deletion == nil {
		return ""
	}
	grace := time.Duration(0)
	if seconds := object.GetDeletionGracePeriodSeconds(); seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	return blocker.Time(deletion.Add(-grace))
}

// WaitsSince returns since when the object waits for its deletion, or for that of its disk, "" if it does not.
func WaitsSince(object *unstructured.Unstructured) string {
	if asked := askedAt(object); asked != "" || object.GetKind() != "PersistentVolume" {
		return asked
	}
	policy, _, _ := unstructured.NestedString(object.Object, "spec", "persistentVolumeReclaimPolicy")
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	if policy != string(corev1.PersistentVolumeReclaimDelete) || phase != string(corev1.VolumeReleased) && phase != string(corev1.VolumeFailed) {
		return ""
	}
	since, _, _ := unstructured.NestedString(object.Object, "status", "lastPhaseTransitionTime")
	return since
}

// evidence returns one piece of evidence.
func evidence(source blocker.Source, format string, values ...any) blocker.Evidence {
	return blocker.Evidence{Source: source, Text: fmt.Sprintf(format, values...)}
}

// giveUp returns a step that shows an object, with the deletion of the object as the last resort:
// whoever pastes the step loses nothing.
func giveUp(e chain.Explorer, sentence, loss, namespace, resource, name string) string {
	commands := e.Commands()
	return cluster.Steps(sentence, commands.Kubectl(namespace, "get", resource, name)) + "\n" +
		cluster.LastResort(loss, commands.Kubectl(namespace, "delete", resource, name))
}

// isRecent reports whether an error of that time is one of now.
func isRecent(r *cluster.Reader, at time.Time) bool { return r.Now().Sub(at) <= recently }

// toUnstructured returns a typed object as the explorer takes it.
func toUnstructured(apiVersion, kind string, typed any) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: fields}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	return object, nil
}

// eventText returns the event as evidence.
func eventText(event corev1.Event) string {
	count := event.Count
	if event.Series != nil {
		count = event.Series.Count
	}
	return fmt.Sprintf("%s, %s, last at %s: %s", event.Reason, terminal.Times(count), blocker.Time(cluster.EventTime(event)), event.Message)
}
