package reference

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery/cached/memory"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/restmapper"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// newResolver returns a Resolver for a few kinds.
func newResolver() *Resolver {
	client := memory.NewMemCacheClient(&fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "persistentvolumes", SingularName: "persistentvolume", Kind: "PersistentVolume", ShortNames: []string{"pv"}},
			{Name: "persistentvolumeclaims", SingularName: "persistentvolumeclaim", Kind: "PersistentVolumeClaim", Namespaced: true, ShortNames: []string{"pvc"}},
			{Name: "pods", SingularName: "pod", Kind: "Pod", Namespaced: true, ShortNames: []string{"po"}},
		}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
			{Name: "deployments", SingularName: "deployment", Kind: "Deployment", Namespaced: true, ShortNames: []string{"deploy"}},
		}},
		{GroupVersion: "rbac.authorization.k8s.io/v1", APIResources: []metav1.APIResource{
			{Name: "clusterroles", SingularName: "clusterrole", Kind: "ClusterRole"},
		}},
	}}})
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(client)
	return &Resolver{
		Namespace: "here", discovery: client, mapper: restmapper.NewShortcutExpander(mapper, client, func(string) {}),
	}
}

// describe returns the objects as resource namespace/name.
func describe(refs []cluster.Ref) []string {
	var all []string
	for _, ref := range refs {
		all = append(all, fmt.Sprintf("%s %s %s/%s", ref.Resource.GroupResource(), ref.Kind, ref.Namespace, ref.Name))
	}
	return all
}

func TestWordsNameObjects(t *testing.T) {
	volume := "persistentvolumes PersistentVolume /x"
	for words, want := range map[string][]string{
		"persistentvolume/x":       {volume},
		"PersistentVolume/x":       {volume},
		"persistentvolumes x":      {volume},
		"pv/x po/y":                {volume, "pods Pod here/y"},
		"pv x y":                   {volume, "persistentvolumes PersistentVolume /y"},
		"pv,pvc x":                 {volume, "persistentvolumeclaims PersistentVolumeClaim here/x"},
		"deployments.apps/x":       {"deployments.apps Deployment here/x"},
		"deployment.apps/x":        {"deployments.apps Deployment here/x"},
		"deployments.v1.apps x":    {"deployments.apps Deployment here/x"},
		"Deployment.v1.apps/x":     {"deployments.apps Deployment here/x"},
		"clusterrole/system:nodes": {"clusterroles.rbac.authorization.k8s.io ClusterRole /system:nodes"},
	} {
		got, err := newResolver().Words(strings.Fields(words))
		if diff := cmp.Diff(want, describe(got)); err != nil || diff != "" {
			t.Errorf("Words(%s): %v\n%s", words, err, diff)
		}
	}
}

func TestWrongWordsAreExplained(t *testing.T) {
	for words, want := range map[string]string{
		"pv":                "which pv? give its name, as in pv/NAME",
		"pv/x y":            "name all objects as KIND/NAME, or give one KIND and its NAMEs",
		"pv/":               `"pv/" does not name an object, want KIND/NAME`,
		"/x":                `"/x" does not name an object`,
		"pv/x/y":            `"pv/x/y" does not name an object`,
		"persistentvolum/x": `the API server serves no kind "persistentvolum", did you mean persistentvolume?`,
		"widgets/x":         `the API server serves no kind "widgets"; kubectl api-resources lists all`,
	} {
		if got, err := newResolver().Words(strings.Fields(words)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Words(%s) = %v, %v, want the error %q", words, got, err, want)
		}
	}
}

func TestFilesNameObjects(t *testing.T) {
	volume, claim := "persistentvolumes PersistentVolume /x", "persistentvolumeclaims PersistentVolumeClaim here/c"
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"empty":             {"", nil},
		"names":             {"pv/x\n\n# comment\npvc/c # mine\n", []string{volume, claim}},
		"names, Windows":    {"pv/x\r\npvc/c\r\n", []string{volume, claim}},
		"YAML":              {"apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: x}\n", []string{volume}},
		"several documents": {"---\n# comment\n---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: x}\n---\npvc/c\n", []string{volume, claim}},
		"JSON":              {`{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"x"}}`, []string{volume}},
		"JSON stream": {`{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"x"}}
{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c"}}`, []string{volume, claim}},
		"list":          {`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"x"}}]}`, []string{volume}},
		"typed list":    {`{"apiVersion":"v1","kind":"PersistentVolumeList","items":[{"metadata":{"name":"x"}}]}`, []string{volume}},
		"own namespace": {"apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: there}\n", []string{"pods Pod there/p"}},
		"older version": {"apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: d}\n", []string{"deployments.apps Deployment here/d"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := newResolver().Read(strings.NewReader(tc.text))
			if diff := cmp.Diff(tc.want, describe(got)); err != nil || diff != "" {
				t.Errorf("Read: %v\n%s", err, diff)
			}
		})
	}
}

func TestWrongFilesAreExplained(t *testing.T) {
	for text, want := range map[string]string{
		"hello":                     "document 1: there is neither a manifest nor lines KIND/NAME",
		"{":                         "document 1: read JSON: unexpected EOF",
		"a: [":                      "document 1: read YAML: ",
		"a: b":                      "document 1: a manifest has no apiVersion or no kind",
		"widget/x":                  `document 1: the API server serves no kind "widget"`,
		"apiVersion: v1\nkind: Pod": "document 1: a manifest of kind Pod has no name",
		"pv/x\n---\napiVersion: v1\nkind: Pods\nmetadata: {name: p}":       `document 2: the API server serves no kind "Pods", did you mean pods?`,
		"apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: there}": "document 1: Pod p is in namespace there, and --namespace is here",
	} {
		resolver := newResolver()
		resolver.Enforced = true
		if got, err := resolver.Read(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Read(%q) = %v, %v, want the error %q", text, got, err, want)
		}
	}
}

// The definition of a kind may go before other objects of a manifest, which are still to be explained.
func TestManifestsOfKindsThatAreGoneLeaveOthers(t *testing.T) {
	const widget, pod = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
	list := `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}},` +
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}]}`
	for name, text := range map[string]string{"documents": widget + "---\n" + pod + "---\n" + widget, "list": list} {
		got, err := newResolver().Read(strings.NewReader(text))
		var unserved *UnservedError
		want := `document 1: the API server serves no kind "Widget"; kubectl api-resources lists all`
		if diff := cmp.Diff([]string{"pods Pod here/p"}, describe(got)); diff != "" || !errors.As(err, &unserved) ||
			err.Error() != want {
			t.Errorf("%s: error %v, want %s\n%s", name, err, want, diff)
		}
	}
}
