package garbage

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// only is the definition of the only kind of its group.
const only = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: onlies.last.exeunt.io}
spec:
  group: last.exeunt.io
  names: {kind: Only, plural: onlies, singular: only, listKind: OnlyList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// With the last definition of a group its APIService goes too.
func TestLastDefinitionOfGroupIsDeleted(t *testing.T) {
	t.Parallel()
	w := start(t, ours, false).world(t)
	onlies := kind{schema.GroupVersionResource{Group: "last.exeunt.io", Version: "v1", Resource: "onlies"}, "Only", true}
	must(t, sandbox.ApplyYAML(w.ctx, w.plane.RESTConfig(), []byte(only)), "define Only")
	w.await("the kind is served", func() bool {
		_, err := w.in(onlies).List(w.ctx, metav1.ListOptions{})
		return err == nil
	})
	owner := w.create(onlies, "owner")
	w.create(secrets, "dependent", ownedBy(reference(owner)))
	must(t, w.client.Resource(crds.GroupVersionResource).Delete(w.ctx, "onlies.last.exeunt.io", metav1.DeleteOptions{}),
		"delete definition")
	w.awaitGone(secrets, "dependent")
	w.await("the log says that the kind is gone", func() bool { return w.logs("A kind is gone") })
	owner = w.create(configMaps, "owner")
	w.create(secrets, "orphan", ownedBy(reference(owner)))
	w.delete(configMaps, "owner", orphan)
	w.awaitGone(configMaps, "owner")
	w.expectKept(secrets, "orphan")
}
