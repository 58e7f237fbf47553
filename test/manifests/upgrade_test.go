package manifests

import (
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/termination"
)

// lookups are the objects that templates find.
type lookups struct{ dynamic.Interface }

// GetClientFor returns the client of a kind. Templates look up Nodes and Deployments.
func (l lookups) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	for resource, namespaced := range map[string]bool{"Node": false, "Deployment": true} {
		if kind == resource {
			group := schema.FromAPIVersionAndKind(apiVersion, kind).GroupVersion()
			return l.Resource(group.WithResource(strings.ToLower(kind) + "s")), namespaced, nil
		}
	}
	return nil, false, fmt.Errorf("there is no kind %s", kind)
}

// upgraded renders an upgrade of the release in a cluster with these objects.
func upgraded(t *testing.T, given values, objects ...runtime.Object) (map[string]string, error) {
	t.Helper()
	c := loaded(t)
	release := common.ReleaseOptions{Name: "exeunt", Namespace: deploy.Namespace, Revision: 2, IsUpgrade: true}
	checked, err := util.ToRenderValues(c, withRegistry(given), release, present())
	if err != nil {
		return nil, err
	}
	return engine.RenderWithClientProvider(c, checked, lookups{fake.NewSimpleDynamicClient(scheme.Scheme, objects...)})
}

// Helm runs no hook of an uninstall in an upgrade, and without the program nobody removes its finalizer.
func TestDisablingTerminatorIsRefusedWithFinalizers(t *testing.T) {
	ours := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: deploy.Namespace, Name: "node-terminator",
		Labels: map[string]string{"app.kubernetes.io/instance": "exeunt"}}}
	others := ours.DeepCopy()
	others.Labels = nil
	free := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "free"}}
	held := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "held",
		Finalizers: []string{"example.com/other", termination.Finalizer}}}
	for name, tc := range map[string]struct {
		given   values
		objects []runtime.Object
		refused bool
	}{
		"it runs, a node has the finalizer":  {values{}, []runtime.Object{ours, free, held}, true},
		"it is taken out by null":            {values{"nodeTerminator": nil}, []runtime.Object{ours, held}, true},
		"it runs, no node has the finalizer": {values{}, []runtime.Object{ours, free}, false},
		"it stays":                           {terminatorOn, []runtime.Object{ours, held}, false},
		"another installation runs":          {values{}, []runtime.Object{others, held}, false},
		"it does not run":                    {values{}, []runtime.Object{held}, false},
		"it runs, and there is no node":      {values{}, []runtime.Object{ours}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := upgraded(t, tc.given, tc.objects...)
			if (err != nil) != tc.refused || err != nil && !strings.Contains(err.Error(), "exeunt rollback nodes --confirm") {
				t.Errorf("refused: %v, want %t", err, tc.refused)
			}
		})
	}
}

func TestNotesNameTheWayToDisableTerminator(t *testing.T) {
	notes := notesOf(t, terminatorOn)
	for _, want := range []string{"kubectl exeunt rollback nodes --confirm",
		registry + "/exeunt:" + loaded(t).Metadata.AppVersion} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not name %s:\n%s", want, notes)
		}
	}
}

// --reuse-values puts the values of the older release in the place of those of the chart.
func TestReusedValuesOfOlderReleaseAreAccepted(t *testing.T) {
	for _, missing := range []string{"garbageCollector", "nodeTerminator", "alive", "admissionPolicy", "monitoring"} {
		t.Run(missing, func(t *testing.T) {
			c := loaded(t)
			delete(c.Values, missing)
			release := common.ReleaseOptions{Name: "exeunt", Namespace: deploy.Namespace, Revision: 2, IsUpgrade: true}
			given := withRegistry(values{})
			if missing != "monitoring" {
				given["monitoring"] = values{"podMonitor": true}
			}
			checked, err := util.ToRenderValues(c, given, release, present())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := (engine.Engine{}).Render(c, checked); err != nil {
				t.Error(err)
			}
		})
	}
}
