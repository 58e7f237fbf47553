package holder

import (
	"context"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// server is the selector of a Service that webhooks call.
type server struct {
	namespace string
	selector  map[string]string
}

// selects reports whether the Service selects the pods of the workload.
func (s server) selects(w workload) bool {
	return len(s.selector) > 0 && s.namespace == w.namespace &&
		labels.SelectorFromSet(s.selector).Matches(labels.Set(w.podLabels))
}

// webhookServers returns the Services of the webhooks for the group of the object, or for a
// group that fits the finalizer.
func (f Finder) webhookServers(ctx context.Context, object *unstructured.Unstructured, finalizer string) []server {
	services := f.conversionServices(ctx, object)
	webhooks, _ := f.webhooks(ctx)
	for _, webhook := range webhooks {
		if slices.ContainsFunc(webhook.groups(), func(g string) bool { return isGroupOf(g, object, finalizer) }) {
			services = append(services, webhook.services...)
		}
	}
	var servers []server
	for _, name := range services {
		if service, presence := cluster.Get(ctx, f.Reader, cluster.Services, name.Namespace,
			name.Name); presence == cluster.Present {
			servers = append(servers, server{service.Namespace, service.Spec.Selector})
		}
	}
	return servers
}

// isGroupOf reports whether the group is that of the object, if an operator defines it, or
// fits the finalizer.
func isGroupOf(group string, object *unstructured.Unstructured, finalizer string) bool {
	return isCustom(group) && (group == object.GroupVersionKind().Group || families.FitsGroup(finalizer, group))
}

// isCustom reports whether the group is that of an operator, not of Kubernetes.
func isCustom(group string) bool {
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}

// withGoneWebhook marks the controller as uninstalled if its own webhooks call Services in
// namespaces that do not exist. Policy engines have webhooks for many groups: those count not.
// All webhooks have to be seen, for one that was not may call a living Service.
func (f Finder) withGoneWebhook(ctx context.Context, finding Finding, object *unstructured.Unstructured,
	finalizer string) Finding {
	ref, found := f.Reader.Find(object.GetAPIVersion(), object.GetKind(), object.GetNamespace(), object.GetName())
	webhooks, seen := f.webhooks(ctx)
	if !found || !seen {
		return finding
	}
	services := f.conversionServices(ctx, object)
	for _, webhook := range webhooks {
		if webhook.isOwn(object, finalizer, ref.Resource.Resource) {
			services = append(services, webhook.services...)
		}
	}
	for _, service := range services {
		if _, presence := cluster.Get(ctx, f.Reader, cluster.Namespaces, "", service.Namespace); presence != cluster.Absent {
			return finding
		}
	}
	if len(services) == 0 {
		return finding
	}
	finding.State.Uninstalled = true
	finding.Evidence = append(slices.Clone(finding.Evidence), blocker.Evidence{
		Source: blocker.FromList, Text: "a webhook for the group calls Service " + services[0].String() +
			", whose namespace does not exist",
	})
	return finding
}

// webhook is a configuration of admission webhooks: its rules, and the Services that it
// calls.
type webhook struct {
	rules    []admissionv1.Rule
	services []types.NamespacedName
}

// groups returns the groups of the rules.
func (w *webhook) groups() []string {
	var groups []string
	for _, rule := range w.rules {
		groups = append(groups, rule.APIGroups...)
	}
	return groups
}

// isOwn reports whether the configuration belongs to the operator of the object: it is for
// the resource of the object, and for groups of the operator alone. Operators share groups,
// and a configuration without rules tells nothing.
func (w *webhook) isOwn(object *unstructured.Unstructured, finalizer, resource string) bool {
	group := object.GroupVersionKind().Group
	return slices.ContainsFunc(w.rules, func(rule admissionv1.Rule) bool {
		return slices.Contains(rule.APIGroups, group) && containsAnyOf(rule.Resources, resource, "*", "*/*", resource+"/*")
	}) && !slices.ContainsFunc(w.groups(), func(g string) bool { return !isGroupOf(g, object, finalizer) })
}

func (w *webhook) add(client admissionv1.WebhookClientConfig, rules []admissionv1.RuleWithOperations) {
	for _, rule := range rules {
		w.rules = append(w.rules, rule.Rule)
	}
	if client.Service != nil {
		w.services = append(w.services, types.NamespacedName{Namespace: client.Service.Namespace, Name: client.Service.Name})
	}
}

// webhooks returns the configurations of admission webhooks of the cluster, and whether all
// were seen.
func (f Finder) webhooks(ctx context.Context) (all []webhook, seen bool) {
	validating, first := cluster.List(ctx, f.Reader, cluster.ValidatingWebhookConfigurations, cluster.Selection{})
	for _, configuration := range validating {
		var one webhook
		for _, w := range configuration.Webhooks {
			one.add(w.ClientConfig, w.Rules)
		}
		all = append(all, one)
	}
	mutating, second := cluster.List(ctx, f.Reader, cluster.MutatingWebhookConfigurations, cluster.Selection{})
	for _, configuration := range mutating {
		var one webhook
		for _, w := range configuration.Webhooks {
			one.add(w.ClientConfig, w.Rules)
		}
		all = append(all, one)
	}
	return all, first && second
}

// conversionServices returns the Service of the conversion webhook of the object's
// definition.
func (f Finder) conversionServices(ctx context.Context, object *unstructured.Unstructured) []types.NamespacedName {
	gvk := object.GroupVersionKind()
	ref, found := f.Reader.Find(object.GetAPIVersion(), gvk.Kind, object.GetNamespace(), object.GetName())
	if !found || !isCustom(gvk.Group) {
		return nil
	}
	definition := needKinds[0]
	definition.Name = ref.Resource.GroupResource().String()
	object, presence, _ := f.Reader.Live(ctx, definition)
	if presence != cluster.Present {
		return nil
	}
	service, found, _ := unstructured.NestedMap(object.Object, "spec", "conversion", "webhook", "clientConfig", "service")
	if !found {
		return nil
	}
	return []types.NamespacedName{{Namespace: textField(service, "namespace"), Name: textField(service, "name")}}
}

// account is a service account.
type account struct{ namespace, name string }

// account returns the service account of the workload's pods.
func (w workload) account() account {
	if w.spec.ServiceAccountName == "" {
		return account{w.namespace, "default"}
	}
	return account{w.namespace, w.spec.ServiceAccountName}
}

// accountsWithRights returns the service accounts whose ClusterRoles name the group of the
// object and let them change the object or its finalizers. Roles for all groups tell nothing.
func (f Finder) accountsWithRights(ctx context.Context, object *unstructured.Unstructured) map[account]bool {
	gvk := object.GroupVersionKind()
	ref, _ := f.Reader.Find(object.GetAPIVersion(), gvk.Kind, object.GetNamespace(), object.GetName())
	roles, _ := cluster.List(ctx, f.Reader, cluster.ClusterRoles, cluster.Selection{})
	var fitting []string
	for _, role := range roles {
		if slices.ContainsFunc(role.Rules,
			func(rule rbacv1.PolicyRule) bool { return allowsChange(rule, gvk.Group, ref.Resource.Resource) }) {
			fitting = append(fitting, role.Name)
		}
	}
	bindings, _ := cluster.List(ctx, f.Reader, cluster.ClusterRoleBindings, cluster.Selection{})
	accounts := map[account]bool{}
	for _, binding := range bindings {
		if binding.RoleRef.Kind != "ClusterRole" || !slices.Contains(fitting, binding.RoleRef.Name) {
			continue
		}
		for _, subject := range binding.Subjects {
			if subject.Kind == rbacv1.ServiceAccountKind {
				accounts[account{subject.Namespace, subject.Name}] = true
			}
		}
	}
	return accounts
}

// allowsChange reports whether the rule lets its subjects change objects of the resource, or
// their finalizers. The core group "" has no operators of its own.
func allowsChange(rule rbacv1.PolicyRule, group, resource string) bool {
	return group != "" && slices.Contains(rule.APIGroups, group) &&
		containsAnyOf(rule.Resources, resource, resource+"/finalizers", "*") &&
		containsAnyOf(rule.Verbs, "update", "patch", "*")
}

func containsAnyOf(list []string, wanted ...string) bool {
	return slices.ContainsFunc(wanted, func(w string) bool { return slices.Contains(list, w) })
}
