package load

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

const (
	// kindsOfGroup is the number of kinds in one group that Define defines.
	kindsOfGroup = 10
	// quietObjects is the number of objects of each kind in which nothing happens.
	quietObjects = 3
	// definitionPoll is the interval of discovery until all kinds are served.
	definitionPoll = 500 * time.Millisecond
)

// Define defines kinds until the API server serves that many that are garbage-collected. No
// program may run.
func Define(ctx context.Context, cluster *Cluster, wanted int) error {
	if wanted == 0 {
		return nil
	}
	client, err := discovery.NewDiscoveryClientForConfig(cluster.Client(Admin, ""))
	if err != nil {
		return fmt.Errorf("connect to define kinds: %w", err)
	}
	have, err := countKinds(client)
	if err != nil {
		return err
	}
	missing := max(0, wanted-have)
	groups := (missing + kindsOfGroup - 1) / kindsOfGroup
	err = inParallel(ctx, groups, func(ctx context.Context, group int) error {
		return sandbox.ApplyYAML(ctx, cluster.Plane.RESTConfig(), definitions(group,
			min(kindsOfGroup, missing-group*kindsOfGroup)))
	})
	for err == nil && have < wanted {
		sandbox.Pause(ctx, definitionPoll)
		if have, err = countKinds(client); err == nil {
			err = ctx.Err()
		}
	}
	if err != nil {
		return fmt.Errorf("define %d kinds: %w", missing, err)
	}
	return nil
}

// countKinds returns the number of served kinds that are garbage-collected.
func countKinds(client discovery.DiscoveryInterface) (int, error) {
	lists, err := discovery.ServerPreferredResources(client)
	if err != nil {
		return 0, fmt.Errorf("discover kinds: %w", err)
	}
	count := 0
	for _, list := range lists {
		for _, resource := range list.APIResources {
			if resource.Name != "events" && !slices.ContainsFunc([]string{"delete", "list", "watch"},
				func(verb string) bool { return !slices.Contains(resource.Verbs, verb) }) {
				count++
			}
		}
	}
	return count, nil
}

// definitions returns the definitions of the kinds of one group.
func definitions(group, kinds int) []byte {
	var text bytes.Buffer
	for i := range kinds {
		fmt.Fprintf(&text, `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widget%[1]ds.group%[2]d.example.com}
spec:
  group: group%[2]d.example.com
  scope: Namespaced
  names: {kind: Widget%[1]d, plural: widget%[1]ds}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, i, group)
	}
	return text.Bytes()
}

// createQuiet creates some objects of several kinds, in which nothing happens: the API server
// tells a watch of them only once a minute how far it has come.
func (s *session) createQuiet(ctx context.Context) error {
	core := s.client.CoreV1()
	rights := s.client.RbacV1()
	for i := range quietObjects {
		identity := metav1.ObjectMeta{Name: fmt.Sprintf("quiet-%d", i), Namespace: s.namespace}
		for _, create := range quietKinds(core, rights, identity) {
			if err := create(ctx); err != nil {
				return fmt.Errorf("create object of a quiet kind: %w", err)
			}
		}
	}
	return nil
}

// quietKinds returns functions that create an object of each of several kinds.
func quietKinds(core corev1.CoreV1Interface, rights rbacclient.RbacV1Interface,
	identity metav1.ObjectMeta) []func(context.Context) error {
	return []func(context.Context) error{
		func(ctx context.Context) error {
			_, err := core.Secrets(identity.Namespace).Create(ctx, &v1.Secret{ObjectMeta: identity}, metav1.CreateOptions{})
			return err
		},
		func(ctx context.Context) error {
			_, err := core.ServiceAccounts(identity.Namespace).Create(ctx, &v1.ServiceAccount{ObjectMeta: identity},
				metav1.CreateOptions{})
			return err
		},
		func(ctx context.Context) error {
			_, err := core.LimitRanges(identity.Namespace).Create(ctx, &v1.LimitRange{ObjectMeta: identity},
				metav1.CreateOptions{})
			return err
		},
		func(ctx context.Context) error {
			_, err := rights.Roles(identity.Namespace).Create(ctx, &rbacv1.Role{ObjectMeta: identity}, metav1.CreateOptions{})
			return err
		},
		func(ctx context.Context) error {
			binding := &rbacv1.RoleBinding{ObjectMeta: identity, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
				Kind: "Role", Name: identity.Name}}
			_, err := rights.RoleBindings(identity.Namespace).Create(ctx, binding, metav1.CreateOptions{})
			return err
		},
	}
}
