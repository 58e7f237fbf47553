package nodedeployment_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
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

	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/nodedeployment"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// driver has so many bytes left, or fails.
type driver struct {
	response *spec.GetCapacityResponse
	err      error
	asked    atomic.Int32
	question atomic.Pointer[spec.GetCapacityRequest]
}

func (d *driver) GetCapacity(_ context.Context, question *spec.GetCapacityRequest) (*spec.GetCapacityResponse, error) {
	d.asked.Add(1)
	d.question.Store(question)
	return d.response, d.err
}

func claim(change ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	name := "class"
	c := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "uid", ResourceVersion: "1", Annotations: map[string]string{storage.AnnStorageProvisioner: "driver"}},
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
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "class"}, Provisioner: "driver", VolumeBindingMode: &immediate}
	for _, f := range change {
		f(c)
	}
	return c
}

func chosen(node string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) { c.Annotations[storage.AnnSelectedNode] = node }
}

// question is what the driver is asked about a class.
func question(_ context.Context, _ *v1.PersistentVolumeClaim, class *storagev1.StorageClass) (*spec.GetCapacityRequest, error) {
	return &spec.GetCapacityRequest{Parameters: map[string]string{"of": class.Name}}, nil
}

type world struct {
	*nodedeployment.Controller
	client  *fake.Clientset
	driver  *driver
	classes cache.SharedIndexInformer
}

func newWorld(t *testing.T, delay time.Duration, claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass, change ...func(*nodedeployment.Config)) *world {
	t.Helper()
	client := fake.NewClientset(claim)
	if class != nil {
		if err := client.Tracker().Add(class); err != nil {
			t.Fatal(err)
		}
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	w := &world{client: client, driver: &driver{response: &spec.GetCapacityResponse{AvailableCapacity: 10}}, classes: factory.Storage().V1().StorageClasses().Informer()}
	var err error
	config := nodedeployment.Config{
		Client: client, Claims: factory.Core().V1().PersistentVolumeClaims().Informer(), Classes: w.classes,
		Driver: w.driver, Question: question, Serves: func(name string) bool { return name == "driver" },
		Node: "mine", HasTopology: true, Topology: map[string]string{"host": "mine"},
		BaseDelay: delay, MaxDelay: 2 * delay,
	}
	for _, f := range change {
		f(&config)
	}
	w.Controller, err = nodedeployment.New(config)
	if err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSync(t.Context().Done())
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

func TestANodeChoosesItself(t *testing.T) {
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	for name, tc := range map[string]struct {
		claim    *v1.PersistentVolumeClaim
		class    *storagev1.StorageClass
		response *spec.GetCapacityResponse
		err      error
		want     string
	}{
		"where there is room":             {claim(), class(), &spec.GetCapacityResponse{AvailableCapacity: 10}, nil, "mine"},
		"not where there is too little":   {claim(), class(), &spec.GetCapacityResponse{AvailableCapacity: 9}, nil, ""},
		"not for a volume that large":     {claim(), class(), &spec.GetCapacityResponse{AvailableCapacity: 100, MaximumVolumeSize: wrapperspb.Int64(9)}, nil, ""},
		"where the driver does not tell":  {claim(), class(), nil, errors.New("unimplemented"), "mine"},
		"not where the scheduler chooses": {claim(), class(func(c *storagev1.StorageClass) { c.VolumeBindingMode = &wait }), &spec.GetCapacityResponse{AvailableCapacity: 10}, nil, ""},
		"not where it is not allowed": {claim(), class(func(c *storagev1.StorageClass) {
			c.AllowedTopologies = []v1.TopologySelectorTerm{{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{{Key: "host", Values: []string{"yours"}}}}}
		}), &spec.GetCapacityResponse{AvailableCapacity: 10}, nil, ""},
		"not where another one was chosen":  {claim(chosen("yours")), class(), &spec.GetCapacityResponse{AvailableCapacity: 10}, nil, "yours"},
		"not for another driver's":          {claim(func(c *v1.PersistentVolumeClaim) { c.Annotations[storage.AnnStorageProvisioner] = "other" }), class(), &spec.GetCapacityResponse{AvailableCapacity: 10}, nil, ""},
		"not for one that has its volume":   {claim(func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "volume" }), class(), &spec.GetCapacityResponse{AvailableCapacity: 10}, nil, ""},
		"not for one that is being deleted": {claim(func(c *v1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{}; c.Finalizers = []string{"x"} }), class(), &spec.GetCapacityResponse{AvailableCapacity: 10}, nil, ""},
		"not while nobody knows the class":  {claim(), nil, &spec.GetCapacityResponse{AvailableCapacity: 10}, nil, ""},
		"also by the older annotation alone": {claim(func(c *v1.PersistentVolumeClaim) {
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

func TestTheDriverIsAskedAboutTheVolumeThatItWouldHaveToMakeThere(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*nodedeployment.Config)
		want   *spec.GetCapacityRequest
		node   string
	}{
		"with its place": {
			func(*nodedeployment.Config) {},
			&spec.GetCapacityRequest{Parameters: map[string]string{"of": "class"}, AccessibleTopology: &spec.Topology{Segments: map[string]string{"host": "mine"}}}, "mine",
		},
		"without a place where there are none": {
			func(c *nodedeployment.Config) { c.HasTopology, c.Topology = false, nil },
			&spec.GetCapacityRequest{Parameters: map[string]string{"of": "class"}}, "mine",
		},
		"not about one that cannot be asked for: why is told where it is made": {
			func(c *nodedeployment.Config) {
				c.Question = func(context.Context, *v1.PersistentVolumeClaim, *storagev1.StorageClass) (*spec.GetCapacityRequest, error) {
					return nil, &provision.Refusal{}
				}
			}, nil, "mine",
		},
		"not about one that somebody else makes": {
			func(c *nodedeployment.Config) {
				c.Question = func(context.Context, *v1.PersistentVolumeClaim, *storagev1.StorageClass) (*spec.GetCapacityRequest, error) {
					return nil, fmt.Errorf("ask: %w", &provision.NotOurs{})
				}
			}, nil, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, time.Hour, claim(), class(), tc.change)
			if err := w.Reconcile(t.Context(), "ns/claim"); err != nil {
				t.Fatal(err)
			}
			if got := w.driver.question.Load(); !proto.Equal(got, tc.want) {
				t.Errorf("asked %v, want %v", got, tc.want)
			}
			if got := w.node(t); got != tc.node {
				t.Errorf("node %q, want %q", got, tc.node)
			}
		})
	}
}

// Topologies of a class are for drivers with topology: no node could say that it is there.
func TestWithoutTopologyEveryNodeIsAllowed(t *testing.T) {
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

// The patch rests on the whole claim: who was faster has changed it.
func TestAnotherNodeThatWasFasterIsNotOverruled(t *testing.T) {
	w := newWorld(t, time.Hour, claim(), class())
	w.client.PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(v1.Resource("persistentvolumeclaims"), "claim", errors.New("changed"))
	})
	if err := w.Reconcile(t.Context(), "ns/claim"); err != nil {
		t.Errorf("losing is no error: %v", err)
	}
	if got := w.node(t); got != "" {
		t.Errorf("node %q", got)
	}
}

func TestAClaimIsChosenForWithinItsDelayAndAskedForAgainWithoutRoom(t *testing.T) {
	w := newWorld(t, 20*time.Millisecond, claim(), class())
	w.driver.response = &spec.GetCapacityResponse{AvailableCapacity: 1}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	go w.Run(ctx, 1)
	for w.driver.asked.Load() < 3 {
		select {
		case <-ctx.Done():
			t.Fatal("the driver is not asked again whether there is room")
		case <-time.After(time.Millisecond):
		}
	}
	if got := w.node(t); got != "" {
		t.Errorf("node %q without room", got)
	}
}

func TestANodeThatWasGivenUpIsChosenAnew(t *testing.T) {
	w := newWorld(t, time.Millisecond, claim(chosen("mine")), class())
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	go w.Run(ctx, 1)
	given := claim()
	given.ResourceVersion = "2"
	if _, err := w.client.CoreV1().PersistentVolumeClaims("ns").Update(ctx, given, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for w.node(t) != "mine" {
		select {
		case <-ctx.Done():
			t.Fatal("no node was chosen again")
		case <-time.After(time.Millisecond):
		}
	}
}
