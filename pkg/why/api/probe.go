package api

import (
	"context"
	"encoding/json"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/refusal"
)

// probe removes each finalizer in a dry run and returns why the API server refuses. It
// returns false if the API server gave no answer that tells about the object.
func (t target) probe(ctx context.Context, e chain.Explorer) ([]blocker.Blocker, bool) {
	var found []blocker.Blocker
	seen := map[string]bool{}
	for _, finalizer := range t.object.GetFinalizers() {
		err := t.dryRun(ctx, e, finalizer)
		if err == nil {
			continue
		}
		status := statusOf(err)
		// A webhook may deny with 404, too.
		if apierrors.IsNotFound(err) && refusal.Classify(status) == refusal.Unclear {
			continue
		}
		fact := evidence(blocker.FromProbe, "a dry run that removes the finalizer %s is refused: %s", finalizer,
			status.Message)
		refused, answered := t.refused(ctx, e, fact, status)
		if !answered {
			e.Reader().Note("the probe of %s gave no answer: %s", cluster.ObjectOf(t.object), oneLine(err))
			return nil, false
		}
		if !seen[status.Message] {
			seen[status.Message] = true
			found = append(found, refused)
		}
	}
	return found, true
}

// dryRun removes the finalizer from the object in a dry run. The patch names the version
// that was read: another write makes it fail with a conflict.
func (t target) dryRun(ctx context.Context, e chain.Explorer, finalizer string) error {
	rest := slices.DeleteFunc(slices.Clone(t.object.GetFinalizers()), func(name string) bool { return name == finalizer })
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": t.object.GetResourceVersion(), "uid": t.object.GetUID(), "finalizers": rest,
	}})
	if err != nil {
		return err
	}
	_, err = e.Reader().Dynamic().Resource(t.mapping.Resource).Namespace(t.object.GetNamespace()).
		Patch(ctx, t.object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// refused returns the blocker for an answer of the API server, and false if the answer tells
// nothing about the object.
func (t target) refused(ctx context.Context, e chain.Explorer, fact blocker.Evidence,
	status metav1.Status) (blocker.Blocker, bool) {
	found := blocker.Blocker{Object: cluster.ObjectOf(t.object), Verdict: blocker.Stuck, Since: askedAt(t.object),
		Evidence: []blocker.Evidence{fact}}
	switch refusal.Classify(status) {
	case refusal.SchemaViolated:
		return t.objectInvalid(e, fact), true
	case refusal.WebhookUnreachable:
		t.unreachable(ctx, e, &found, refusal.Webhook(status.Message))
	case refusal.PolicyDenies:
		t.policyDenies(ctx, e, &found, refusal.Policy(status.Message))
	case refusal.WebhookDenies:
		t.denier(ctx, e, &found, refusal.Webhook(status.Message))
	default:
		return found, false
	}
	return found, true
}

// policyDenies completes the blocker of a write that a policy denies. A policy that reads
// more than the object may let the controller's own write pass.
func (t target) policyDenies(ctx context.Context, e chain.Explorer, found *blocker.Blocker, name string) {
	found.Reason, found.Holder, found.Verdict = blocker.AdmissionDenies, "ValidatingAdmissionPolicy "+name, blocker.Unknown
	found.Next = cluster.Steps("change the object or the policy, as the message says",
		e.Commands().Kubectl("", "get", "validatingadmissionpolicy", name, "-o", "yaml"))
	policy, read := readPolicy(ctx, e, name)
	switch {
	case !read:
		found.Evidence = append(found.Evidence, evidence(blocker.FromProbe,
			"the policy was not seen: it may let the controller's own write pass"))
	case refusal.DependsOnRequest(&policy.Spec):
		found.Evidence = append(found.Evidence, evidence(blocker.FromField,
			"the policy reads the user, the options or the dry run of the request: it may let the controller's own write pass"))
	default:
		found.Verdict = blocker.Stuck
		found.Evidence = append(found.Evidence, evidence(blocker.FromField,
			"the policy does not read the user: it denies the write to everybody"))
	}
}

func readPolicy(ctx context.Context, e chain.Explorer, name string) (*admissionv1.ValidatingAdmissionPolicy, bool) {
	var policy admissionv1.ValidatingAdmissionPolicy
	resource := admissionv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies")
	object, presence, _ := e.Reader().Live(ctx, cluster.Ref{Resource: resource, Kind: "ValidatingAdmissionPolicy",
		Name: name})
	if presence != cluster.Present {
		return nil, false
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &policy)
	return &policy, err == nil
}

// unreachable completes the blocker of a write that a webhook does not answer. Only a
// service that cannot answer is stuck.
func (t target) unreachable(ctx context.Context, e chain.Explorer, found *blocker.Blocker, webhook string) {
	found.Reason, found.Holder, found.Verdict = blocker.AdmissionUnreachable, "webhook "+webhook, blocker.Unknown
	found.Next = cluster.Steps("start the webhook "+webhook, webhookCommand(e))
	hook := hookOf(t.webhooks(ctx, e), t.write(ctx, e), webhook, found.Evidence[0].Text)
	if hook == nil {
		return
	}
	behind := lookAtServer(ctx, e, hook.Service.Namespace, hook.Service.Name)
	found.Object = hook.configuration
	found.Verdict = behind.state.Verdict()
	found.Evidence = append(found.Evidence, behind.evidence...)
	found.Next = hook.next(e, behind)
}

// hookOf returns the webhook of the name that the message says was called, or nil if several
// may be: configurations may name their webhooks alike.
func hookOf(hooks []hook, write refusal.Write, name, message string) *hook {
	hooks = slices.DeleteFunc(hooks, func(h hook) bool {
		return h.Name != name || h.Service == nil || !h.MustAnswer(write) ||
			!refusal.Calls(message, h.Service.Namespace, h.Service.Name)
	})
	if len(hooks) == 0 {
		return nil
	}
	return &hooks[0] // others have the same service
}

func webhookCommand(e chain.Explorer) string {
	return e.Commands().Kubectl("", "get", "validatingwebhookconfigurations,mutatingwebhookconfigurations")
}

// labelsOf returns the labels of the object's namespace, and whether they were seen.
func (t target) labelsOf(ctx context.Context, e chain.Explorer) (map[string]string, bool) {
	if t.object.GetKind() == "Namespace" && t.mapping.Resource.Group == "" {
		return t.object.GetLabels(), true
	}
	namespace, presence := cluster.Get(ctx, e.Reader(), cluster.Namespaces, "", t.object.GetNamespace())
	if presence != cluster.Present {
		return nil, false
	}
	return namespace.Labels, true
}
