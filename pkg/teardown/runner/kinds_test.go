package runner

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

var snapshots = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"}

// custom returns an object that has no type.
func custom(version, kind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(version)
	object.SetKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetUID("u")
	object.SetResourceVersion("1")
	return object
}

// withKinds returns a runner of a cluster with the objects that have no type, and its discovery without these kinds.
func withKinds(t *testing.T, objects ...runtime.Object) (*Runner, *fake.Clientset) {
	t.Helper()
	r := newTestRunner(t, nil)
	r.Dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{snapshots: "VolumeSnapshotList", definitions: "CustomResourceDefinitionList"},
		objects...)
	client, is := r.Objects.(*fake.Clientset)
	if !is {
		t.Fatal("no fake client")
	}
	return r, client
}

func serve(client *fake.Clientset) {
	client.Resources = []*metav1.APIResourceList{{GroupVersion: snapshots.GroupVersion().String(),
		APIResources: []metav1.APIResource{{Name: snapshots.Resource}}}}
}

// #34 #66 The lists at the end found a kind that the session did not watch, again and again, and deleted none of it.
func TestKindThatIsInstalledLaterIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		snapshot := custom("snapshot.storage.k8s.io/v1", "VolumeSnapshot", "shop", "snap")
		snapshot.Object["status"] = map[string]any{}
		r, client := withKinds(t, snapshot)
		r.current = deletedAlive(true)
		r.current.Finalizers = []string{alive.Finalizer}
		s := newSession(r, nil, r.current, time.Time{})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var watches sync.WaitGroup
		round := func() view {
			t.Helper()
			if err := s.watchObjects(ctx, &watches); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return s.look()
		}
		if v := round(); v.work != teardown.Quiet {
			t.Fatalf("the work is %s", v.work)
		}
		serve(client)
		if err := s.recheck(ctx, view{now: s.Clock.Now()}); err != nil || s.end.clean != 0 {
			t.Errorf("%d clean lists, %v", s.end.clean, err)
		}
		if v := round(); len(v.steps) != 1 || v.steps[0].Kind != "VolumeSnapshot" {
			t.Errorf("the work is %s, steps %+v", v.work, v.steps)
		}
		stop()
		watches.Wait()
	})
}

// #08 #62 A kind that is not served has no objects only if no CRD defines it.
func TestKindIsAbsentOnlyByProof(t *testing.T) {
	crd := custom("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", snapshots.GroupResource().String())
	unnamed := func(code int) error {
		return apierrors.NewGenericServerResponse(code, "get", schema.GroupResource{}, "", "", 0, true)
	}
	for name, tc := range map[string]struct {
		objects []runtime.Object
		change  func(*fake.Clientset, *dynamicfake.FakeDynamicClient)
		kinds   int
		fails   bool
	}{
		"served":         {[]runtime.Object{crd}, func(c *fake.Clientset, _ *dynamicfake.FakeDynamicClient) { serve(c) }, 1, false},
		"absent":         {nil, func(*fake.Clientset, *dynamicfake.FakeDynamicClient) {}, 0, false},
		"not served yet": {[]runtime.Object{crd}, func(*fake.Clientset, *dynamicfake.FakeDynamicClient) {}, 0, true},
		"404 for its version": {nil, func(c *fake.Clientset, _ *dynamicfake.FakeDynamicClient) {
			serve(c)
			c.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, unnamed(http.StatusNotFound)
			})
		}, 0, true},
		"404 of a proxy": {nil, func(_ *fake.Clientset, d *dynamicfake.FakeDynamicClient) {
			d.PrependReactor("get", definitions.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, unnamed(http.StatusNotFound)
			})
		}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, client := withKinds(t, tc.objects...)
			dynamic, is := r.Dynamic.(*dynamicfake.FakeDynamicClient)
			if !is {
				t.Fatal("no fake client")
			}
			tc.change(client, dynamic)
			if kinds, err := r.custom(t.Context()); len(kinds) != tc.kinds || (err != nil) != tc.fails {
				t.Errorf("%d kinds, %v", len(kinds), err)
			}
		})
	}
}

// A group may prefer a version that has some of its kinds only, after an upgrade in part. The plan names the objects of all.
func TestKindOfAnotherVersionIsListed(t *testing.T) {
	r, client := withKinds(t, custom("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", snapshots.GroupResource().String()))
	serve(client)
	preferred := &metav1.APIResourceList{GroupVersion: "snapshot.storage.k8s.io/v2", APIResources: []metav1.APIResource{{Name: "others"}}}
	client.Resources = append([]*metav1.APIResourceList{preferred}, client.Resources...)
	if kinds, err := r.custom(t.Context()); len(kinds) != 1 || err != nil {
		t.Errorf("%d kinds, %v", len(kinds), err)
	}
}

// A kind that is defined and not served keeps no command waiting after its deadline.
func TestStoppedTeardownEndsWithoutLists(t *testing.T) {
	c := newScene()
	c.both(longAgo(2 * time.Hour))
	r := newTestRunner(t, c.live, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: clusterID}})
	client, is := r.Objects.(*fake.Clientset)
	if !is {
		t.Fatal("no fake client")
	}
	client.PrependReactor("get", "group", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInternalError(context.DeadlineExceeded)
	})
	r.current, r.synced, r.Command = c.watched, true, true
	s := c.session(r)
	s.watched, s.listed = 0, 0
	outcome, err := s.round(t.Context(), t.Context(), nil)
	if err != nil || outcome == nil || outcome.Phase != teardown.Stopped || s.wake.IsZero() {
		t.Errorf("%+v, %v, wakes at %s", outcome, err, s.wake)
	}
}
