package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// probes is how many creations in a row the freeze must deny before it counts as in force.
const probes = 3

// freezeParts are the policy and its binding.
var freezeParts = [2]schema.GroupVersionResource{
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"},
}

// part is the policy or the binding, as a watch shows it.
type part struct {
	listed, present bool
	uid             types.UID
	generation      int64
	// applied is what this term has written.
	appliedUID types.UID
	applied    int64
}

func (p *part) see(object any) bool {
	if content, is := object.(*unstructured.Unstructured); is {
		p.present, p.uid, p.generation = true, content.GetUID(), content.GetGeneration()
	}
	return true
}

func (p *part) gone() { p.present = false }

// ours reports whether it is as this term has written it.
func (p *part) ours() bool {
	return p.present && p.applied != 0 && p.uid == p.appliedUID && p.generation == p.applied
}

// freeze is what is known of the policy.
type freeze struct {
	parts [2]part
	// running are the namespaces with waves to come in the policy of this term.
	running []string
	// denied is how many probes in a row it has denied.
	denied int
	// since is since when it is tried to bring it into force, failed the word for which that took too long.
	since, failed time.Time
	// refusal is what the API server last said against it.
	refusal string
}

func (f *freeze) listed() bool  { return f.parts[0].listed && f.parts[1].listed }
func (f *freeze) present() bool { return f.parts[0].present || f.parts[1].present }
func (f *freeze) ours() bool    { return f.parts[0].ours() && f.parts[1].ours() }

// state returns what keeps new disks away, for namespaces with waves to come.
func (f *freeze) state(running []string) teardown.Freeze {
	switch {
	case !f.ours() || !slices.Equal(f.running, running):
		return teardown.NoFreeze
	case f.denied < probes:
		return teardown.Written
	}
	return teardown.InForce
}

// freezeObjects returns policy and binding.
func freezeObjects(running []string) ([]*unstructured.Unstructured, error) {
	objects, err := parse(deploy.Freeze)
	if err != nil {
		return nil, fmt.Errorf("read the manifest of the freeze: %w", err)
	}
	if len(objects) != len(freezeParts) {
		return nil, fmt.Errorf("the manifest of the freeze has %d objects", len(objects))
	}
	variables, _, err := unstructured.NestedSlice(objects[0].Object, "spec", "variables")
	if err != nil || len(variables) == 0 {
		return nil, fmt.Errorf("the manifest of the freeze has no variables: %w", err)
	}
	first, is := variables[0].(map[string]any)
	if !is || first["name"] != "running" {
		return nil, fmt.Errorf("the first variable of the freeze is %v", variables[0])
	}
	list, err := json.Marshal(append([]string{}, running...)) // names of namespaces: JSON is CEL
	if err != nil {
		return nil, err
	}
	first["expression"] = string(list)
	return objects, unstructured.SetNestedSlice(objects[0].Object, variables, "spec", "variables")
}

// writeFreeze writes policy and binding. A binding that was there is in force with the new policy.
func (s *session) writeFreeze(ctx context.Context, running []string) error {
	objects, err := freezeObjects(running)
	if err != nil {
		return err
	}
	again := s.freeze.denied >= probes && slices.Equal(s.freeze.running, running)
	for i, object := range objects {
		object.SetAnnotations(map[string]string{ofAlive: string(s.uid)})
		written, err := s.Dynamic.Resource(freezeParts[i]).Apply(ctx, FreezeName, object,
			metav1.ApplyOptions{FieldManager: s.Agent, Force: true})
		if err != nil {
			return fmt.Errorf("write the freeze: %w", err)
		}
		s.update(func() bool {
			part := &s.freeze.parts[i]
			part.appliedUID, part.applied = written.GetUID(), written.GetGeneration()
			return part.see(written)
		})
	}
	if again {
		s.event(v1.EventTypeWarning, "FreezeRewritten", "somebody removed or changed the freeze; it is written again")
	}
	s.freeze.running, s.freeze.denied = running, 0
	return nil
}

// probeFreeze creates a claim in a dry run, which the freeze must deny.
func (s *session) probeFreeze(ctx context.Context) error {
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "exeunt-teardown-probe-", Namespace: Namespace},
		Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources: v1.VolumeResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Mi")}},
		},
	}
	_, err := s.Objects.CoreV1().PersistentVolumeClaims(Namespace).Create(ctx, claim,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case err == nil:
		s.freeze.denied, s.freeze.refusal = 0, "the API server admits a new claim"
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), FreezeName):
		s.freeze.denied++
	default:
		return fmt.Errorf("ask whether the freeze is in force: %w", err)
	}
	return nil
}

// limitFreeze runs one step towards a freeze that is in force. Before the start that has a limit: a platform may refuse
// policies, or remove them. An API server without an answer refuses nothing.
func (s *session) limitFreeze(of word, step func() error) error {
	now := s.Clock.Now()
	if s.freeze.since.IsZero() {
		s.freeze.since = now
	}
	err := step()
	switch {
	case err != nil && !isRefusal(err):
		s.freeze.since = time.Time{}
		return err
	case err != nil:
		s.freeze.refusal = err.Error()
	case s.freeze.denied >= probes:
		s.freeze.since = time.Time{}
		return nil
	}
	if now.Sub(s.freeze.since) > s.Waits.Freeze {
		s.freeze.failed, s.freeze.since = of.at, time.Time{}
		s.notify()
	}
	return err
}

// isRefusal reports whether the error is what an API server says against a request.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError && !apierrors.IsTooManyRequests(err)
}

// awaitFreeze probes until the freeze is in force.
func (s *session) awaitFreeze(ctx context.Context) error {
	for s.freeze.denied < probes {
		before := s.freeze.denied
		if err := s.probeFreeze(ctx); err != nil {
			return err
		}
		if s.freeze.denied > before {
			continue // the next probe may go at once
		}
		s.wakeAfter(s.Waits.Probe)
		return nil
	}
	s.notify()
	return nil
}

// removeFreeze lifts the freeze of a teardown that has not started. The binding goes first: without it the policy has
// no effect.
func (r *Runner) removeFreeze(ctx context.Context) error {
	for _, resource := range []schema.GroupVersionResource{freezeParts[1], freezeParts[0]} {
		_, exists, err := answer.Get(ctx, FreezeName, r.get(resource))
		if err == nil && exists {
			err = r.Dynamic.Resource(resource).Delete(ctx, FreezeName, metav1.DeleteOptions{})
		}
		if err != nil {
			return fmt.Errorf("remove the freeze: %w", err)
		}
	}
	return nil
}
