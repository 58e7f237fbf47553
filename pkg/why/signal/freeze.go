package signal

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// Freeze is the policy that refuses new disks and load balancers, and its binding.
type Freeze struct {
	Policy, Binding cluster.Presence
	// running are the namespaces whose pods are admitted: those with waves to come.
	running []string
}

// ReadFreeze reads the freeze.
func ReadFreeze(ctx context.Context, reader *cluster.Reader) Freeze {
	policy, has, _ := reader.Live(ctx, PolicyRef("ValidatingAdmissionPolicy", teardown.FreezeName))
	_, bound, _ := reader.Live(ctx, PolicyRef("ValidatingAdmissionPolicyBinding", teardown.FreezeName))
	f := Freeze{Policy: has, Binding: bound}
	if has == cluster.Present {
		f.running = runningIn(policy)
	}
	return f
}

// PolicyRef names a ValidatingAdmissionPolicy, or a binding.
func PolicyRef(kind, name string) cluster.Ref {
	resource := map[string]string{"ValidatingAdmissionPolicy": "validatingadmissionpolicies",
		"ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings"}[kind]
	return cluster.Ref{Resource: schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1",
		Resource: resource}, Kind: kind, Name: name}
}

// runningIn returns the namespaces in the first variable of the policy, as the runner has written it.
func runningIn(policy *unstructured.Unstructured) (namespaces []string) {
	variables, _, _ := unstructured.NestedSlice(policy.Object, "spec", "variables")
	if len(variables) == 0 {
		return nil
	}
	first, _ := variables[0].(map[string]any)
	text, _ := first["expression"].(string)
	_ = json.Unmarshal([]byte(text), &namespaces) // an edited list exempts nothing here
	return namespaces
}

// InForce reports whether policy and binding are there.
func (f Freeze) InForce() bool { return f.Policy == cluster.Present && f.Binding == cluster.Present }

// RefusesPodsIn reports whether new pods of the namespace that use claims are refused.
func (f Freeze) RefusesPodsIn(namespace string) bool {
	return f.InForce() && !slices.Contains(f.running, namespace)
}

// Left reports whether policy or binding is there.
func (f Freeze) Left() bool { return f.Policy == cluster.Present || f.Binding == cluster.Present }

// Text says what the freeze refuses, "" if it was not seen, or is not in force.
func (f Freeze) Text() string {
	if !f.InForce() {
		return ""
	}
	text := "the freeze " + teardown.FreezeName +
		" refuses new claims, pods that use claims, volume snapshots, Ingresses, Gateways and load balancers"
	if len(f.running) > 0 {
		text += "; pods are admitted in the namespaces " + strings.Join(f.running, ", ")
	}
	return text
}

// frozen are the kinds whose creation the freeze refuses, and when it does.
var frozen = map[schema.GroupKind]string{
	{Kind: "PersistentVolumeClaim"}:                            "the freeze refuses each new claim",
	{Kind: "Pod"}:                                              "the freeze refuses each new pod that uses a claim",
	{Kind: "Service"}:                                          "the freeze refuses each new Service of type LoadBalancer",
	{Group: "networking.k8s.io", Kind: "Ingress"}:              "the freeze refuses each new Ingress",
	{Group: "gateway.networking.k8s.io", Kind: "Gateway"}:      "the freeze refuses each new Gateway",
	{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshot"}: "the freeze refuses each new VolumeSnapshot",
}

// Frozen returns that the freeze refuses the creation of an object that does not exist, nothing if it does not.
func Frozen(ctx context.Context, reader *cluster.Reader, commands cluster.Commands, ref cluster.Ref) []blocker.Blocker {
	text, concerned := frozen[schema.GroupKind{Group: ref.Resource.Group, Kind: ref.Kind}]
	if !concerned {
		return nil
	}
	freeze := ReadFreeze(ctx, reader)
	if !freeze.InForce() || ref.Kind == "Pod" && !freeze.RefusesPodsIn(ref.Namespace) {
		return nil
	}
	object := blocker.Object{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Group: ref.Resource.Group}
	return []blocker.Blocker{freeze.refuses(commands, object, blocker.Gone, evidence(blocker.FromField, "%s", text))}
}

// refuses returns the blocker of a creation that the freeze refuses.
func (f Freeze) refuses(commands cluster.Commands, object blocker.Object, verdict blocker.Verdict,
	facts ...blocker.Evidence) blocker.Blocker {
	return blocker.Blocker{Object: object, Reason: blocker.FreezeRefuses, Verdict: verdict,
		Holder: "ValidatingAdmissionPolicy " + teardown.FreezeName, Evidence: facts,
		Next: cluster.Steps("see whether the cluster is torn down, or was",
			commands.Exeunt("", "why", alive.Resource.GroupResource().String()+"/"+alive.Name)) + "\n" + WayBack(commands)}
}

// WayBack says how a cluster that stays gets rid of a teardown.
func WayBack(commands cluster.Commands) string {
	return cluster.Comments("a cluster that lives on needs this, which takes the freeze and Alive away", commands.Exeunt("", "teardown", "remove"))
}

// owners are the kinds that create pods and claims, and report what is refused.
var owners = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "StatefulSet"}: true, {Group: "apps", Kind: "ReplicaSet"}: true, {Group: "apps", Kind: "DaemonSet"}: true,
	{Group: "apps", Kind: "Deployment"}: true, {Group: "batch", Kind: "Job"}: true, {Kind: "ReplicationController"}: true,
	{Kind: "Pod"}: true, // the claim of an ephemeral volume
}

// Refused returns that the freeze refuses what a living object creates, as its conditions or its events say; else nothing.
func Refused(ctx context.Context, e chain.Explorer, object *unstructured.Unstructured) []blocker.Blocker {
	if !owners[object.GroupVersionKind().GroupKind()] {
		return nil
	}
	facts := refusals(ctx, e, object)
	if len(facts) == 0 {
		return nil
	}
	freeze := ReadFreeze(ctx, e.Reader())
	if !freeze.InForce() { // it is gone since
		return nil
	}
	return []blocker.Blocker{freeze.refuses(e.Commands(), cluster.ObjectOf(object), blocker.None, facts...)}
}

// refusals are the last event and the conditions that name the freeze.
func refusals(ctx context.Context, e chain.Explorer, object *unstructured.Unstructured) (facts []blocker.Evidence) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range conditions {
		condition, _ := entry.(map[string]any)
		if message, _ := condition["message"].(string); strings.Contains(message, teardown.FreezeName) {
			facts = append(facts, evidence(blocker.FromCondition, "condition %v: %s", condition["type"], oneLine(message)))
		}
	}
	events, _ := cluster.EventsOf(ctx, e.Reader(), object.GetKind(), object)
	for i := range slices.Backward(events) {
		if strings.Contains(events[i].Message, teardown.FreezeName) {
			return append(facts, evidence(blocker.FromEvent, "%s, last at %s: %s", events[i].Reason,
				blocker.Time(cluster.EventTime(events[i])), oneLine(events[i].Message)))
		}
	}
	return facts
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
