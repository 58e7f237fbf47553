package harness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// Cloud is a running cloudmock: machines that are simulated nodes, see test/cloudmock/machines. Tests that share its
// cluster share it, and each has nodes of its own.
type Cloud struct {
	*sandbox.Cloud

	mu     sync.Mutex
	taken  int
	faults map[string][]machines.Fault // by node
}

// CloudMock is one test's use of a cloud.
type CloudMock struct {
	*Session
	*Cloud
	// Nodes are the nodes of the test. Pods with the node selector "e2e: NAMESPACE" are bound to them.
	Nodes []string
}

// JoinCloud returns a session in the cluster that all tests with the setup share, and this number of nodes, which are
// ready. The test runs in parallel with others. The setup has NoPrograms and Machines.
func JoinCloud(t *testing.T, setup Setup, nodes int, options ...Option) *CloudMock {
	t.Helper()
	return newCloudMock(Join(t, setup, options...), nodes)
}

// OwnCloud is JoinCloud with a cluster that no other test uses.
func OwnCloud(t testing.TB, setup Setup, nodes int, options ...Option) *CloudMock {
	t.Helper()
	return newCloudMock(Own(t, setup, options...), nodes)
}

func newCloudMock(s *Session, nodes int) *CloudMock {
	s.T.Helper()
	c := &CloudMock{Session: s, Cloud: s.cloud}
	c.mu.Lock()
	for range nodes {
		c.Nodes = append(c.Nodes, fmt.Sprintf("mock-%d", c.taken))
		c.taken++
	}
	c.mu.Unlock()
	for _, node := range c.Nodes {
		_, err := c.Client.CoreV1().Nodes().Patch(c.Ctx, node, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"labels":{"e2e":%q}}}`, c.Namespace), metav1.PatchOptions{})
		c.Must(err, "label node")
	}
	c.Until("the nodes are ready", func() bool { return !slices.ContainsFunc(c.Nodes, c.isUnfit) })
	return c
}

// isUnfit reports whether the node is not ready, or has a taint.
func (c *CloudMock) isUnfit(node string) bool {
	return !c.IsReady(node) || len(c.Node(node).Spec.Taints) > 0
}

// Node returns a Node.
func (c *CloudMock) Node(name string) *v1.Node {
	c.T.Helper()
	node, err := c.Client.CoreV1().Nodes().Get(c.Ctx, name, metav1.GetOptions{})
	c.Must(err, "read node")
	return node
}

// IsReady reports whether the node is ready.
func (c *CloudMock) IsReady(node string) bool {
	c.T.Helper()
	return slices.ContainsFunc(c.Node(node).Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
}

// startCloud starts kube-controller-manager with all its loops, and the machines of the setup.
func (c *Cluster) startCloud(ctx context.Context, how Setup) error {
	if _, err := c.sandbox.StartNodeLoops(ctx, strings.Fields(how.LoopFlags)...); err != nil {
		return err
	}
	flags := append([]string{"--lease-duration=6s"}, strings.Fields(how.MachineFlags)...)
	cloud, err := c.sandbox.StartCloud(ctx, how.Machines, flags...)
	c.cloud = &Cloud{Cloud: cloud, faults: map[string][]machines.Fault{}}
	return err
}

// SetFaults replaces the faults of the test's nodes, and returns once they are in force.
func (c *CloudMock) SetFaults(faults ...machines.Fault) {
	c.T.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, node := range c.Nodes {
		delete(c.faults, node)
	}
	for _, fault := range faults {
		c.faults[fault.Node] = append(c.faults[fault.Node], fault)
	}
	c.Must(c.Cloud.SetFaults(c.Ctx, slices.Concat(slices.Collect(maps.Values(c.faults))...)...), "set faults")
}

// Events returns what has happened to the test's nodes, and to what matches: fields that are empty match everything.
func (c *CloudMock) Events(match machines.Event) []machines.Event {
	c.T.Helper()
	events, err := c.Cloud.Events()
	c.Must(err, "read log of machines")
	return slices.DeleteFunc(events, func(e machines.Event) bool {
		return !slices.Contains(c.Nodes, e.Node) || !matches(match, e)
	})
}

func matches(match, e machines.Event) bool {
	return (match.Node == "" || match.Node == e.Node) && (match.Pod == "" || match.Pod == e.Pod) &&
		(match.UID == "" || match.UID == e.UID) && (match.Volume == "" || match.Volume == e.Volume) &&
		(match.Event == "" || match.Event == e.Event)
}

// AwaitEvent waits until something that matches has happened, and returns the first of it.
func (c *CloudMock) AwaitEvent(match machines.Event) machines.Event {
	c.T.Helper()
	var events []machines.Event
	c.Until(fmt.Sprintf("there is an event as %+v", match), func() bool {
		events = c.Events(match)
		return len(events) > 0
	})
	return events[0]
}

// Story returns what has happened to what matches as one line: "started mounted".
func (c *CloudMock) Story(match machines.Event) string {
	c.T.Helper()
	var words []string
	for _, e := range c.Events(match) {
		words = append(words, string(e.Event))
	}
	return strings.Join(words, " ")
}

// Instances returns a client of the machines.
func (c *CloudMock) Instances() *instances.Client {
	c.T.Helper()
	client, err := instances.Open(c.Socket)
	c.Must(err, "open socket")
	return client
}

// Instance returns how the socket names the machine of a node.
func (c *CloudMock) Instance(node string) instances.Instance {
	c.T.Helper()
	object := c.Node(node)
	return instances.Instance{ProviderID: object.Spec.ProviderID, Node: node, NodeUID: object.UID}
}

// CreateDisk creates a PersistentVolume of the machines' driver for claims of the class that is named as the test's
// namespace. It returns the handle, which is the name of the volume, too.
func (c *CloudMock) CreateDisk(name string) string {
	c.T.Helper()
	name = c.Namespace + "-" + name
	_, err := c.Client.CoreV1().PersistentVolumes().Create(c.Ctx, &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimRetain,
			StorageClassName:              c.Namespace,
			AccessModes:                   []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Capacity:                      v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Mi")},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{
				Driver: machines.DriverName, VolumeHandle: name}},
		},
	}, metav1.CreateOptions{})
	c.Must(err, "create volume")
	return name
}

// Elapsed returns the time from one event to another.
func Elapsed(from, to machines.Event) time.Duration { return to.Time.Sub(from.Time) }
