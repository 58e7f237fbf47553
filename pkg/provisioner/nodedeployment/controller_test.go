package nodedeployment_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/nodedeployment"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// driver returns the response or the error.
type driver struct {
	response *spec.GetCapacityResponse
	err      error
	calls    atomic.Int32
	request  atomic.Pointer[spec.GetCapacityRequest]
}

func (d *driver) GetCapacity(_ context.Context, request *spec.GetCapacityRequest) (*spec.GetCapacityResponse, error) {
	d.calls.Add(1)
	d.request.Store(request)
	return d.response, d.err
}

func claim(change ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	name := "class"
	c := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "uid", ResourceVersion: "1",
			Annotations: map[string]string{storage.AnnStorageProvisioner: "driver"}},
		Spec: v1.PersistentVolumeClaimSpec{
			StorageClassName: &name,
			Resources:        v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("10")}},
		},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func class(change ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	immediate := storagev1.VolumeBindingImmediate
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "class"}, Provisioner: "driver",
		VolumeBindingMode: &immediate}
	for _, f := range change {
		f(c)
	}
	return c
}

func allowed(host string) func(*storagev1.StorageClass) {
	return func(c *storagev1.StorageClass) {
		c.AllowedTopologies = []v1.TopologySelectorTerm{{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{{Key: "host", Values: []string{host}}}}}
	}
}

func selected(node string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) { c.Annotations[storage.AnnSelectedNode] = node }
}

// capacityRequest returns a request that names the class.
func capacityRequest(_ context.Context, _ *v1.PersistentVolumeClaim,
	class *storagev1.StorageClass) (*spec.GetCapacityRequest, error) {
	return &spec.GetCapacityRequest{Parameters: map[string]string{"of": class.Name}}, nil
}

// world is the controller of node "mine", with a fake API server.
type world struct {
	*nodedeployment.Controller
	client  *fake.Clientset
	driver  *driver
	classes cache.SharedIndexInformer
}

func newWorld(t *testing.T, delay time.Duration, claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass,
	change ...func(*nodedeployment.Config)) *world {
	t.Helper()
	client := fake.NewClientset(claim)
	if class != nil {
		if err := client.Tracker().Add(class); err != nil {
			t.Fatal(err)
		}
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	w := &world{client: client, driver: &driver{response: &spec.GetCapacityResponse{AvailableCapacity: 10}},
		classes: factory.Storage().V1().StorageClasses().Informer()}
	config := nodedeployment.Config{
		Client: client, Claims: factory.Core().V1().PersistentVolumeClaims().Informer(), Classes: w.classes,
		Driver: w.driver, CapacityRequest: capacityRequest, Serves: func(name string) bool { return name == "driver" },
		Node: "mine", HasTopology: true, Topology: map[string]string{"host": "mine"},
		BaseDelay: delay, MaxDelay: 2 * delay,
	}
	for _, f := range change {
		f(&config)
	}
	var err error
	if w.Controller, err = nodedeployment.New(config); err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSync(t.Context().Done())
	if err := w.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) node(t *testing.T) string {
	t.Helper()
	now, err := w.client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "claim", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return now.Annotations[storage.AnnSelectedNode]
}

func TestNodeIsSelected(t *testing.T) {
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	for name, tc := range map[string]struct {
		claim    *v1.PersistentVolumeClaim
		class    *storagev1.StorageClass
		response *spec.GetCapacityResponse
		err      error
		want     string
	}{
		"enough capacity":               {claim(), class(), &spec.GetCapacityResponse{AvailableCapacity: 10}, nil, "mine"},
		"capacity too small":            {claim(), class(), &spec.GetCapacityResponse{AvailableCapacity: 9}, nil, ""},
		"maximum volume size too small": {claim(), class(), &spec.GetCapacityResponse{AvailableCapacity: 100, MaximumVolumeSize: wrapperspb.Int64(9)}, nil, ""},
		"driver reports no capacity":    {claim(), class(), nil, errors.New("unimplemented"), "mine"},
		"driver does not run":           {claim(), class(), nil, status.Error(codes.Unavailable, "no connection"), ""},
		"WaitForFirstConsumer": {claim(), class(func(c *storagev1.StorageClass) { c.VolumeBindingMode = &wait }),
			&spec.GetCapacityResponse{AvailableCapacity: 10}, nil, ""},
		"topology not allowed": {claim(), class(allowed("yours")), &spec.GetCapacityResponse{AvailableCapacity: 10}, nil, ""},
		"other node selected":  {claim(selected("yours")), class(), &spec.GetCapacityResponse{AvailableCapacity: 10}, nil, "yours"},
		"other driver":         {claim(func(c *v1.PersistentVolumeClaim) { c.Annotations[storage.AnnStorageProvisioner] = "other" }), class(), &spec.GetCapacityResponse{AvailableCapacity: 10}, nil, ""},
		"claim with volume": {claim(func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "volume" }), class(),
			&spec.GetCapacityResponse{AvailableCapacity: 10}, nil, ""},
		"claim being deleted": {claim(func(c *v1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{}; c.Finalizers = []string{"x"} }), class(), &spec.GetCapacityResponse{AvailableCapacity: 10}, nil, ""},
		"unknown class":       {claim(), nil, &spec.GetCapacityResponse{AvailableCapacity: 10}, nil, ""},
		"beta annotation only": {claim(func(c *v1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{storage.AnnBetaStorageProvisioner: "driver"}
		}), class(), &spec.GetCapacityResponse{AvailableCapacity: 10}, nil, "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, time.Hour, tc.claim, tc.class)
			w.driver.response, w.driver.err = tc.response, tc.err
			if err := w.Reconcile(t.Context(), "ns/claim"); err != nil {
				t.Fatal(err)
			}
			if got := w.node(t); got != tc.want {
				t.Errorf("node %q, want %q", got, tc.want)
			}
		})
	}
}

func TestCapacityRequestIsThatOfTheVolume(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*nodedeployment.Config)
		want   *spec.GetCapacityRequest
		node   string
	}{
		"with topology": {
			func(*nodedeployment.Config) {},
			&spec.GetCapacityRequest{Parameters: map[string]string{"of": "class"},
				AccessibleTopology: &spec.Topology{Segments: map[string]string{"host": "mine"}}}, "mine",
		},
		"without topology": {
			func(c *nodedeployment.Config) { c.HasTopology, c.Topology = false, nil },
			&spec.GetCapacityRequest{Parameters: map[string]string{"of": "class"}}, "mine",
		},
		"invalid claim: CreateVolume reports the reason": {
			func(c *nodedeployment.Config) {
				c.CapacityRequest = func(context.Context, *v1.PersistentVolumeClaim,
					*storagev1.StorageClass) (*spec.GetCapacityRequest, error) {
					return nil, &provision.Refusal{}
				}
			}, nil, "mine",
		},
		"claim of another provisioner": {
			func(c *nodedeployment.Config) {
				c.CapacityRequest = func(context.Context, *v1.PersistentVolumeClaim, *storagev1.StorageClass) (*spec.GetCapacityRequest, error) {
					return nil, fmt.Errorf("ask: %w", &provision.LeftToOther{})
				}
			}, nil, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, time.Hour, claim(), class(), tc.change)
			if err := w.Reconcile(t.Context(), "ns/claim"); err != nil {
				t.Fatal(err)
			}
			if got := w.driver.request.Load(); !proto.Equal(got, tc.want) {
				t.Errorf("request %v, want %v", got, tc.want)
			}
			if got := w.node(t); got != tc.node {
				t.Errorf("node %q, want %q", got, tc.node)
			}
		})
	}
}

// Allowed topologies do not apply to a driver without topology.
func TestDriverWithoutTopologyIsAllowedEverywhere(t *testing.T) {
	elsewhere := class(func(c *storagev1.StorageClass) {
		c.AllowedTopologies = []v1.TopologySelectorTerm{{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{{Key: "host", Values: []string{"yours"}}}}}
	})
	w := newWorld(t, time.Hour, claim(), elsewhere, func(c *nodedeployment.Config) { c.HasTopology, c.Topology = false, nil })
	if err := w.Reconcile(t.Context(), "ns/claim"); err != nil {
		t.Fatal(err)
	}
	if got := w.node(t); got != "mine" {
		t.Errorf("node %q, want mine", got)
	}
}

// The patch tests the version of the claim, which the other node has changed.
func TestNodeThatWroteFirstStaysSelected(t *testing.T) {
	w := newWorld(t, time.Hour, claim(), class())
	w.client.PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(v1.Resource("persistentvolumeclaims"), "claim", errors.New("changed"))
	})
	w.client.PrependReactor("get", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		changed := claim()
		changed.ResourceVersion = "changed"
		return true, changed, nil
	})
	if err := w.Reconcile(t.Context(), "ns/claim"); err != nil {
		t.Errorf("a conflict is returned as an error: %v", err)
	}
	if got := w.node(t); got != "" {
		t.Errorf("node %q", got)
	}
}

func TestCapacityIsCheckedAgainAfterADelay(t *testing.T) {
	w := newWorld(t, 20*time.Millisecond, claim(), class())
	w.driver.response = &spec.GetCapacityResponse{AvailableCapacity: 1}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	go w.Run(ctx, 1)
	for w.driver.calls.Load() < 3 {
		select {
		case <-ctx.Done():
			t.Fatal("capacity is not checked again")
		case <-time.After(time.Millisecond):
		}
	}
	if got := w.node(t); got != "" {
		t.Errorf("node %q selected without capacity", got)
	}
}

func TestRemovedNodeIsSelectedAgain(t *testing.T) {
	w := newWorld(t, time.Millisecond, claim(selected("mine")), class())
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	go w.Run(ctx, 1)
	for version := range 10 { // each time the node turns out to be full
		unselected := claim()
		unselected.ResourceVersion = strconv.Itoa(version + 2)
		if _, err := w.client.CoreV1().PersistentVolumeClaims("ns").Update(ctx, unselected, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.awaitSelection(ctx, t)
	}
}

func (w *world) awaitSelection(ctx context.Context, t *testing.T) {
	t.Helper()
	for w.node(t) != "mine" {
		select {
		case <-ctx.Done():
			t.Fatal("the node was not selected")
		case <-time.After(time.Millisecond):
		}
	}
}

// The allowed topologies of a class can be changed, and no event of the claim follows.
func TestNodeThatTheClassAllowsLaterIsSelected(t *testing.T) {
	w := newWorld(t, time.Millisecond, claim(), class(allowed("yours")))
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	go w.Run(ctx, 1)
	changed := class(allowed("mine"))
	changed.ResourceVersion = "2"
	if _, err := w.client.StorageV1().StorageClasses().Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.awaitSelection(ctx, t)
}

func TestNodeThatReachesTheSourceIsSelected(t *testing.T) {
	for name, tc := range map[string]struct {
		reaches bool
		err     error
		want    string
	}{"reaches it": {true, nil, "mine"}, "does not reach it": {false, nil, ""}, "unknown": {false, errors.New("scripted"), ""}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, time.Hour, claim(), class(), func(c *nodedeployment.Config) {
				c.ReachesSource = func(context.Context, *v1.PersistentVolumeClaim) (bool, error) { return tc.reaches, tc.err }
			})
			if err := w.Reconcile(t.Context(), "ns/claim"); err != nil {
				t.Fatal(err)
			}
			if got := w.node(t); got != tc.want {
				t.Errorf("node %q, want %q", got, tc.want)
			}
		})
	}
}

// --node-deployment-base-delay=0 is allowed: a single node needs no delay before its first attempt. So is
// --node-deployment-max-delay=0.
func TestNodeWithoutCapacityAndDelayIsNotAskedInALoop(t *testing.T) {
	for _, longest := range []time.Duration{0, time.Minute} {
		w := newWorld(t, 0, claim(), class(), func(config *nodedeployment.Config) { config.MaxDelay = longest })
		w.driver.response = &spec.GetCapacityResponse{}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		w.Run(ctx, 1)
		if calls := w.driver.calls.Load(); calls > 20 {
			t.Errorf("with a longest delay of %v GetCapacity was called %d times within a second", longest, calls)
		}
	}
}

func TestRefusedSelectionIsReported(t *testing.T) {
	for _, code := range []int32{http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			events := record.NewFakeRecorder(10)
			w := newWorld(t, time.Hour, claim(), class(), func(c *nodedeployment.Config) { c.Reporter = controller.NewReporter(events) })
			w.client.PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: `admission webhook "w" denied the request`}}
			})
			for range 3 {
				if err := w.Reconcile(t.Context(), "ns/claim"); err == nil {
					t.Fatal("the refusal is no error")
				}
			}
			want := `Warning WriteRefused Selecting node mine for the claim failed, and is repeated with backoff: patch claim ns/claim: admission webhook "w" denied the request`
			if count := len(events.Events); count != 1 {
				t.Fatalf("%d events", count)
			}
			if got := <-events.Events; got != want {
				t.Errorf("event %q, want %q", got, want)
			}
		})
	}
}
