package api

import (
	"context"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/refusal"
)

// hook is a webhook, and the configuration that has it.
type hook struct {
	refusal.Hook
	configuration blocker.Object
}

// silentWebhooks returns a blocker for each webhook that must answer for the write that ends
// the deletion, and whose service has no ready endpoint. Without a probe it is unknown.
func (t target) silentWebhooks(ctx context.Context, e chain.Explorer) []blocker.Blocker {
	var found []blocker.Blocker
	write := t.write(ctx, e)
	for _, hook := range t.webhooks(ctx, e) {
		if hook.Service == nil || !hook.MustAnswer(write) {
			continue
		}
		if behind := lookAtServer(ctx, e, hook.Service.Namespace, hook.Service.Name); behind.state.IsDown() {
			found = append(found, hook.silent(e, t, behind))
		}
	}
	return found
}

// silent returns the blocker of a webhook that would not answer.
func (h hook) silent(e chain.Explorer, t target, behind server) blocker.Blocker {
	found := blocker.Blocker{
		Object: h.configuration, Reason: blocker.AdmissionUnreachable, Verdict: blocker.Unknown, Holder: "webhook " + h.Name,
		Since: askedAt(t.object),
		Evidence: append([]blocker.Evidence{
			evidence(blocker.FromField,
				"the rules of webhook %s cover the write that ends the deletion, and its failurePolicy is Fail", h.Name),
		}, behind.evidence...),
		Next: h.next(e, behind),
	}
	if len(h.MatchConditions) > 0 {
		found.Evidence = append(found.Evidence, evidence(blocker.FromField,
			"the webhook has matchConditions, which were not evaluated"))
	}
	return found
}

// next returns the next step for a webhook that does not answer.
func (h hook) next(e chain.Explorer, behind server) string {
	commands := append([]string{h.get(e)}, behind.commands(e)...)
	return cluster.Steps("start the service "+behind.namespace+"/"+behind.name+" of the webhook "+h.Name, commands...) +
		"\n" +
		cluster.LastResort("only if its operator is uninstalled: what the webhook guards is unguarded",
			e.Commands().Kubectl("", "delete", strings.ToLower(h.configuration.Kind), h.configuration.Name))
}

// get returns the command that shows the configuration.
func (h hook) get(e chain.Explorer) string {
	return e.Commands().Kubectl("", "get", strings.ToLower(h.configuration.Kind), h.configuration.Name, "-o", "yaml")
}

// write returns the write that ends the deletion: the removal of a finalizer, or the last
// DELETE of an object without any.
func (t target) write(ctx context.Context, e chain.Explorer) refusal.Write {
	write := refusal.Write{
		Operation: admissionv1.Update, Resource: t.mapping.Resource, Name: t.object.GetName(), Labels: t.object.GetLabels(),
		Namespaced: t.mapping.Scope.Name() == meta.RESTScopeNameNamespace,
	}
	if len(t.object.GetFinalizers()) == 0 {
		write.Operation = admissionv1.Delete
	}
	isNamespace := t.mapping.Resource.Group == "" && t.mapping.Resource.Resource == "namespaces"
	if write.HasNamespace = write.Namespaced || isNamespace; write.HasNamespace {
		labels, seen := t.labelsOf(ctx, e)
		write.NamespaceLabels, write.NamespaceUnseen = labels, !seen
	}
	return write
}

// webhooks returns all webhooks. Configurations that could not be listed are noted.
func (t target) webhooks(ctx context.Context, e chain.Explorer) []hook {
	var all []hook
	validating, _ := cluster.List(ctx, e.Reader(), cluster.ValidatingWebhookConfigurations, cluster.Selection{})
	for _, configuration := range validating {
		name := blocker.Object{Kind: "ValidatingWebhookConfiguration", Group: admissionv1.GroupName, Name: configuration.Name,
			UID: string(configuration.UID)}
		for _, h := range configuration.Webhooks {
			all = append(all, hook{refusal.Hook{
				Name: h.Name, Rules: h.Rules, FailurePolicy: h.FailurePolicy, MatchPolicy: h.MatchPolicy,
				NamespaceSelector: h.NamespaceSelector,
				ObjectSelector:    h.ObjectSelector, MatchConditions: h.MatchConditions, Service: h.ClientConfig.Service,
			}, name})
		}
	}
	mutating, _ := cluster.List(ctx, e.Reader(), cluster.MutatingWebhookConfigurations, cluster.Selection{})
	for _, configuration := range mutating {
		name := blocker.Object{Kind: "MutatingWebhookConfiguration", Group: admissionv1.GroupName, Name: configuration.Name,
			UID: string(configuration.UID)}
		for _, h := range configuration.Webhooks {
			all = append(all, hook{refusal.Hook{
				Name: h.Name, Rules: h.Rules, FailurePolicy: h.FailurePolicy, MatchPolicy: h.MatchPolicy,
				NamespaceSelector: h.NamespaceSelector,
				ObjectSelector:    h.ObjectSelector, MatchConditions: h.MatchConditions, Service: h.ClientConfig.Service,
			}, name})
		}
	}
	return all
}

// builtInGroups are the groups without a dot, or that Kubernetes serves itself.
var builtInGroups = []string{
	"", "apps", "autoscaling", "batch", "policy", "admissionregistration.k8s.io", "apiextensions.k8s.io",
	"apiregistration.k8s.io",
	"authentication.k8s.io", "authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io",
	"events.k8s.io",
	"flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io",
	"rbac.authorization.k8s.io",
	"resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
}

// IsDefinedGroup reports whether the kinds of the group may be custom resources.
func IsDefinedGroup(group string) bool { return !slices.Contains(builtInGroups, group) }
