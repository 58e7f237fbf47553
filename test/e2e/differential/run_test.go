package differential

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// scenarioRun is the run of a scenario on one side.
type scenarioRun struct {
	*side
	*scenario
	// created has the UIDs of the latest objects of the scenario, by kind and name.
	created map[string]types.UID
	// probes counts the calls of awaitSync.
	probes int
}

// verbs has the implementation of each verb.
var verbs map[string]func(r *scenarioRun, ctx context.Context, step step) error

func init() {
	verbs = map[string]func(r *scenarioRun, ctx context.Context, step step) error{
		"create": (*scenarioRun).create,
		"patch":  (*scenarioRun).patch,
		"status": (*scenarioRun).patch,
		"delete": (*scenarioRun).remove,
		"await":  (*scenarioRun).awaitObject,
		"event":  (*scenarioRun).awaitEvent,
		"sync":   (*scenarioRun).awaitSync,
	}
}

// run executes all steps, and returns once both queues are empty.
func (r *scenarioRun) run(ctx context.Context) error {
	namespaces := r.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": r.namespace},
	}}
	if _, err := namespaces.Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("%s: create namespace: %w", r.name, err)
	}
	for number, step := range r.Steps {
		if err := r.runStep(ctx, step); err != nil {
			return fmt.Errorf("%s: step %d, %s: %w", r.name, number+1, step.text, err)
		}
	}
	if err := r.awaitSync(ctx, step{}); err != nil {
		return fmt.Errorf("%s: wait for all queues: %w", r.name, err)
	}
	return nil
}

func (r *scenarioRun) runStep(ctx context.Context, s step) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return verbs[s.verb](r, ctx, s)
}

func (r *scenarioRun) resource(kind, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return r.client.Resource(resources[kind])
	}
	return r.client.Resource(resources[kind]).Namespace(namespace)
}

// create creates an object from the defaults of its kind and the changes of the step.
func (r *scenarioRun) create(ctx context.Context, s step) error {
	namespace, name := r.namespacedName(s.kind, s.name)
	var defaults map[string]json.RawMessage
	if err := load("testdata/defaults.yaml", &defaults); err != nil {
		return err
	}
	object, err := r.decode(string(defaults[s.kind]), name)
	if err != nil {
		return err
	}
	changes, err := r.decode(s.value, name)
	if err != nil {
		return err
	}
	object = merged(object, changes)
	created := &unstructured.Unstructured{Object: object}
	created.SetName(name)
	created.SetNamespace(namespace)
	now, err := r.resource(s.kind, namespace).Create(ctx, created, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	r.created[s.kind+" "+s.name] = now.GetUID()
	return nil
}

// merged returns an object with the changes applied as a JSON merge patch.
func merged(object, changes map[string]any) map[string]any {
	for key, change := range changes {
		inner, isMap := change.(map[string]any)
		before, wasMap := object[key].(map[string]any)
		switch {
		case change == nil:
			delete(object, key)
		case isMap && wasMap:
			object[key] = merged(before, inner)
		case isMap:
			object[key] = merged(map[string]any{}, inner)
		default:
			object[key] = change
		}
	}
	return object
}

func (r *scenarioRun) patch(ctx context.Context, s step) error {
	namespace, name := r.namespacedName(s.kind, s.name)
	body := r.expand(s.value, name)
	var subresources []string
	if s.verb == "status" {
		subresources, body = []string{"status"}, `{"status":`+body+`}`
	}
	_, err := r.resource(s.kind, namespace).Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{},
		subresources...)
	return err
}

// remove deletes an object, pods without a grace period, as there is no kubelet, unless the
// step sets one.
func (r *scenarioRun) remove(ctx context.Context, s step) error {
	namespace, name := r.namespacedName(s.kind, s.name)
	options := metav1.DeleteOptions{}
	if s.kind == "pod" || s.kind == "recycler" {
		options.GracePeriodSeconds = new(int64)
	}
	if s.value != "" {
		if err := json.Unmarshal([]byte(s.value), &options); err != nil {
			return err
		}
	}
	return r.resource(s.kind, namespace).Delete(ctx, name, options)
}

// awaitObject waits until the object has the phase, is deleted, or contains the values of
// the step.
func (r *scenarioRun) awaitObject(ctx context.Context, s step) error {
	var phase string
	if err := json.Unmarshal([]byte(s.value), &phase); err != nil {
		phase = ""
	}
	wanted := map[string]any{"status": map[string]any{"phase": phase}}
	var last *life
	err := r.recorder.await(ctx, func() bool {
		last = r.object(s.kind, s.name)
		switch {
		case phase == "gone":
			return last != nil && last.gone
		case last == nil || last.gone:
			return false
		case phase == "":
			text := r.expand(s.value, last.object.GetName())
			if wanted = nil; json.Unmarshal([]byte(text), &wanted) != nil {
				return false
			}
		}
		return contains(last.object.Object, wanted)
	})
	if err != nil {
		return fmt.Errorf("wait for the object: %w; last seen: %s", err, last)
	}
	if s.kind == "volume" && phase == "Available" && !strings.HasPrefix(s.name, probePrefix) {
		return r.passVolume(ctx)
	}
	return nil
}

func (r *scenarioRun) awaitEvent(ctx context.Context, s step) error {
	var reason string
	if err := json.Unmarshal([]byte(s.value), &reason); err != nil {
		return err
	}
	var last *life
	err := r.recorder.await(ctx, func() bool {
		last = r.object(s.kind, s.name)
		return last != nil && last.hasEvent(reason)
	})
	if err != nil {
		return fmt.Errorf("wait for the event: %w; last seen: %s", err, last)
	}
	return nil
}

// hasEvent reports whether there was an event with the reason.
func (l *life) hasEvent(reason string) bool {
	_, normal := l.events[v1.EventTypeNormal+" "+reason]
	_, warning := l.events[v1.EventTypeWarning+" "+reason]
	return normal || warning
}

// contains reports whether the object has all wanted values. Null values must be absent;
// the order of lists does not matter.
func contains(object, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		have, _ := object.(map[string]any)
		for key, value := range wanted {
			if !contains(have[key], value) {
				return false
			}
		}
		return true
	case []any:
		have, _ := object.([]any)
		for _, value := range wanted {
			if !containsAny(have, value) {
				return false
			}
		}
		return len(have) == len(wanted)
	case nil:
		return object == nil
	}
	return fmt.Sprint(object) == fmt.Sprint(wanted)
}

func containsAny(list []any, wanted any) bool {
	for _, one := range list {
		if contains(one, wanted) {
			return true
		}
	}
	return false
}

// passVolume returns once the controller has an Available volume in its cache, so that the
// next claim finds it. Upstream has one worker for volumes: a later Available volume
// proves that the worker has finished this one.
func (r *scenarioRun) passVolume(ctx context.Context) error {
	r.probes++
	probe := fmt.Sprintf("%s%d", probePrefix, r.probes)
	return r.runSteps(ctx,
		`{"create volume `+probe+`": {"spec": {"storageClassName": "`+r.namespace+`-`+probe+`"}}}`,
		`{"await volume `+probe+`": "Available"}`,
		`{"delete volume `+probe+`": null}`,
	)
}

// awaitSync returns once both sides have reconciled all earlier objects: a waiting claim binds
// to a later volume, which upstream does only in its resync, after both queues.
func (r *scenarioRun) awaitSync(ctx context.Context, _ step) error {
	r.probes++
	probe := fmt.Sprintf("%s%d", probePrefix, r.probes)
	class := r.namespace + "-" + probe
	return r.runSteps(ctx,
		`{"create claim `+probe+`": {"spec": {"storageClassName": "`+class+`"}}}`,
		`{"event claim `+probe+`": "ProvisioningFailed"}`,
		`{"create volume `+probe+`": {"spec": {"storageClassName": "`+class+`"}}}`,
		`{"await claim `+probe+`": "Bound"}`,
		`{"delete claim `+probe+`": null}`,
		`{"await volume `+probe+`": "Released"}`,
		`{"delete volume `+probe+`": null}`,
		`{"await volume `+probe+`": "gone"}`,
	)
}

func (r *scenarioRun) runSteps(ctx context.Context, steps ...string) error {
	for _, text := range steps {
		var s step
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return err
		}
		if err := verbs[s.verb](r, ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.text, err)
		}
	}
	return nil
}

// probePrefix is the name prefix of the objects of awaitSync.
const probePrefix = "probe-"

// deleteClaims deletes the claims of a scenario that changed shared objects, so that they do not
// affect other scenarios.
func (r *scenarioRun) deleteClaims(ctx context.Context) error {
	claims := r.resource("claim", r.namespace)
	if err := claims.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("%s: delete claims: %w", r.name, err)
	}
	return r.recorder.await(ctx, func() bool {
		for _, one := range r.recorder.all() {
			if one.kind == "claim" && one.object.GetNamespace() == r.namespace && !one.gone {
				return false
			}
		}
		return true
	})
}

// String describes an object in a failure.
func (l *life) String() string {
	if l == nil {
		return "nothing"
	}
	text, err := json.Marshal(l.object.Object)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("gone=%v phases=%v events=%v %s", l.gone, l.phases, l.events, text)
}
