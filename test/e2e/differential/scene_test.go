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

// play is a scenario on a side.
type play struct {
	*side
	*scenario
	// created has the UIDs of the latest objects of the scenario, by kind and name.
	created map[string]types.UID
	// probes counts the calls of settle.
	probes int
}

// verbs has the implementation of each verb.
var verbs map[string]func(p *play, ctx context.Context, step step) error

func init() {
	verbs = map[string]func(p *play, ctx context.Context, step step) error{
		"create": (*play).create,
		"patch":  (*play).patch,
		"status": (*play).patch,
		"delete": (*play).remove,
		"await":  (*play).awaitObject,
		"event":  (*play).awaitEvent,
		"settle": (*play).settle,
	}
}

// perform executes all steps and then settles.
func (p *play) perform(ctx context.Context) error {
	namespaces := p.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": p.scene},
	}}
	if _, err := namespaces.Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("%s: create namespace: %w", p.name, err)
	}
	for number, step := range p.Steps {
		if err := p.take(ctx, step); err != nil {
			return fmt.Errorf("%s: step %d, %s: %w", p.name, number+1, step.text, err)
		}
	}
	if err := p.settle(ctx, step{}); err != nil {
		return fmt.Errorf("%s: let everything settle: %w", p.name, err)
	}
	return nil
}

func (p *play) take(ctx context.Context, s step) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return verbs[s.verb](p, ctx, s)
}

func (p *play) resource(kind, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return p.client.Resource(resources[kind])
	}
	return p.client.Resource(resources[kind]).Namespace(namespace)
}

// create creates an object from the defaults of its kind and the changes of the step.
func (p *play) create(ctx context.Context, s step) error {
	namespace, name := p.where(s.kind, s.name)
	var defaults map[string]json.RawMessage
	if err := load("testdata/defaults.yaml", &defaults); err != nil {
		return err
	}
	object, err := p.decode(string(defaults[s.kind]), name)
	if err != nil {
		return err
	}
	changes, err := p.decode(s.value, name)
	if err != nil {
		return err
	}
	object = merged(object, changes)
	made := &unstructured.Unstructured{Object: object}
	made.SetName(name)
	made.SetNamespace(namespace)
	now, err := p.resource(s.kind, namespace).Create(ctx, made, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	p.created[s.kind+" "+s.name] = now.GetUID()
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

func (p *play) patch(ctx context.Context, s step) error {
	namespace, name := p.where(s.kind, s.name)
	body := p.expand(s.value, name)
	var subresources []string
	if s.verb == "status" {
		subresources, body = []string{"status"}, `{"status":`+body+`}`
	}
	_, err := p.resource(s.kind, namespace).Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, subresources...)
	return err
}

// remove deletes an object, pods without a grace period, as there is no kubelet, unless the
// step sets one.
func (p *play) remove(ctx context.Context, s step) error {
	namespace, name := p.where(s.kind, s.name)
	options := metav1.DeleteOptions{}
	if s.kind == "pod" || s.kind == "recycler" {
		options.GracePeriodSeconds = new(int64)
	}
	if s.value != "" {
		if err := json.Unmarshal([]byte(s.value), &options); err != nil {
			return err
		}
	}
	return p.resource(s.kind, namespace).Delete(ctx, name, options)
}

// awaitObject waits until the object has the phase, is deleted, or contains the values of
// the step.
func (p *play) awaitObject(ctx context.Context, s step) error {
	var phase string
	if err := json.Unmarshal([]byte(s.value), &phase); err != nil {
		phase = ""
	}
	wanted := map[string]any{"status": map[string]any{"phase": phase}}
	var last *life
	err := p.recorder.await(ctx, func() bool {
		last = p.object(s.kind, s.name)
		switch {
		case phase == "gone":
			return last != nil && last.gone
		case last == nil || last.gone:
			return false
		case phase == "":
			text := p.expand(s.value, last.object.GetName())
			if wanted = nil; json.Unmarshal([]byte(text), &wanted) != nil {
				return false
			}
		}
		return contains(last.object.Object, wanted)
	})
	if err != nil {
		return fmt.Errorf("it was not met: %w; last seen: %s", err, last)
	}
	if s.kind == "volume" && phase == "Available" && !strings.HasPrefix(s.name, probePrefix) {
		return p.passVolume(ctx)
	}
	return nil
}

func (p *play) awaitEvent(ctx context.Context, s step) error {
	var reason string
	if err := json.Unmarshal([]byte(s.value), &reason); err != nil {
		return err
	}
	var last *life
	err := p.recorder.await(ctx, func() bool {
		last = p.object(s.kind, s.name)
		return last != nil && last.said(reason)
	})
	if err != nil {
		return fmt.Errorf("it did not come: %w; last seen: %s", err, last)
	}
	return nil
}

// said reports whether there was an event with the reason.
func (l *life) said(reason string) bool {
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
// next claim finds it. Upstream has one worker for volumes: it has finished the volume when
// it starts another.
func (p *play) passVolume(ctx context.Context) error {
	p.probes++
	mark := fmt.Sprintf("%s%d", probePrefix, p.probes)
	return p.takeAll(ctx,
		`{"create volume `+mark+`": {"spec": {"storageClassName": "`+p.scene+`-`+mark+`"}}}`,
		`{"await volume `+mark+`": "Available"}`,
		`{"delete volume `+mark+`": null}`,
	)
}

// settle returns once both sides have reconciled all earlier objects: a waiting claim binds
// to a later volume, which upstream does only in its resync, after both queues.
func (p *play) settle(ctx context.Context, _ step) error {
	p.probes++
	probe := fmt.Sprintf("%s%d", probePrefix, p.probes)
	class := p.scene + "-" + probe
	return p.takeAll(ctx,
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

func (p *play) takeAll(ctx context.Context, steps ...string) error {
	for _, text := range steps {
		var s step
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return err
		}
		if err := verbs[s.verb](p, ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.text, err)
		}
	}
	return nil
}

// probePrefix is the name prefix of the objects of settle.
const probePrefix = "probe-"

// leave deletes the claims of a scenario that changed shared objects, so that they do not
// affect other scenarios.
func (p *play) leave(ctx context.Context) error {
	claims := p.resource("claim", p.scene)
	if err := claims.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("%s: delete claims: %w", p.name, err)
	}
	return p.recorder.await(ctx, func() bool {
		for _, one := range p.recorder.all() {
			if one.kind == "claim" && one.object.GetNamespace() == p.scene && !one.gone {
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
