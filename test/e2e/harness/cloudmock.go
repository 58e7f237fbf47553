package harness

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// CloudMock is a running cloud: machines that are simulated nodes. See test/cloudmock/machines.
type CloudMock struct {
	*Session
	*sandbox.Process
	// Socket is that of the machines.
	Socket string

	dir string
}

// StartCloud starts kube-controller-manager with all its loops, and a cloud with this number of machines. Leases last
// 4 s unless flags of cloudmock say otherwise, and nodes that are silent for 10 s are not ready. The cluster must have
// no other loops, see Setup.NoPrograms.
func (s *Session) StartCloud(nodes int, flags ...string) *CloudMock {
	s.T.Helper()
	s.StartControllerManager("--node-monitor-grace-period=10s", "--node-monitor-period=1s")
	return s.StartMachines(nodes, flags...)
}

// StartControllerManager starts kube-controller-manager with all its loops.
func (s *Session) StartControllerManager(flags ...string) *sandbox.Process {
	s.T.Helper()
	process, err := s.Plane.StartControllerManager(s.Ctx, "*", sandbox.Controller{
		Args: append([]string{"--secure-port=0", "--kube-api-qps=5000", "--kube-api-burst=5000"}, flags...)})
	s.Must(err, "start kube-controller-manager")
	s.Add(process)
	s.T.Cleanup(func() { s.Must(s.sandbox.Kill(process), "kill kube-controller-manager") }) // SIGTERM is an error there
	return process
}

// StartMachines starts a cloud with this number of machines, and returns once all have registered their Nodes.
func (s *Session) StartMachines(nodes int, flags ...string) *CloudMock {
	s.T.Helper()
	path, err := Binaries().Path("cloudmock")
	s.Must(err, "find program")
	dir, err := os.MkdirTemp(s.Dir, "cloud-")
	s.Must(err, "make directory")
	c := &CloudMock{Session: s, Socket: filepath.Join(dir, "socket"), dir: dir}
	c.Process, err = s.sandbox.Run(s.Ctx, sandbox.Program{
		Path: path, LogFile: filepath.Join(s.Dir, filepath.Base(dir)+".log"), ReadyLine: "cloudmock: ready ",
		Args: append([]string{
			"--kubeconfig=" + s.Plane.AdminKubeconfig, "--socket=" + c.Socket, "--log=" + c.file("events"),
			"--faults=" + c.file("faults"), fmt.Sprintf("--nodes=%d", nodes), "--lease-duration=4s",
		}, flags...),
	})
	s.Must(err, "start cloudmock")
	return c
}

func (c *CloudMock) file(name string) string { return filepath.Join(c.dir, name) }

// SetFaults replaces all faults. They are in force a tenth of a second later.
func (c *CloudMock) SetFaults(faults ...machines.Fault) {
	c.T.Helper()
	text, err := json.Marshal(faults)
	c.Must(err, "encode faults")
	c.Must(os.WriteFile(c.file("new"), text, 0o600), "write faults")
	c.Must(os.Rename(c.file("new"), c.file("faults")), "replace faults")
}

// Events returns what has happened so far, to what matches: fields that are empty match everything.
func (c *CloudMock) Events(match machines.Event) []machines.Event {
	c.T.Helper()
	events, err := machines.ReadLog(c.file("events"))
	c.Must(err, "read log of machines")
	return slices.DeleteFunc(events, func(e machines.Event) bool { return !matches(match, e) })
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
	object, err := c.Client.CoreV1().Nodes().Get(c.Ctx, node, metav1.GetOptions{})
	c.Must(err, "read node")
	return instances.Instance{ProviderID: object.Spec.ProviderID, Node: node, NodeUID: object.UID}
}

// AwaitReadyNodes waits until so many nodes are ready and have no taint.
func (c *CloudMock) AwaitReadyNodes(count int) {
	c.T.Helper()
	c.Until(fmt.Sprintf("%d nodes are ready", count), func() bool {
		nodes, err := c.Client.CoreV1().Nodes().List(c.Ctx, metav1.ListOptions{})
		c.Must(err, "list nodes")
		ready := slices.DeleteFunc(nodes.Items, func(node v1.Node) bool {
			return len(node.Spec.Taints) > 0 || !slices.ContainsFunc(node.Status.Conditions,
				func(c v1.NodeCondition) bool { return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue })
		})
		return len(ready) == count
	})
}

// CreateDisk creates a PersistentVolume of the machines' driver, with its name as its handle, for claims of the class
// that is named as the test's namespace.
func (c *CloudMock) CreateDisk(name string) *v1.PersistentVolume {
	c.T.Helper()
	volume, err := c.Client.CoreV1().PersistentVolumes().Create(c.Ctx, &v1.PersistentVolume{
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
	return volume
}

// Elapsed returns the time from one event to another.
func Elapsed(from, to machines.Event) time.Duration { return to.Time.Sub(from.Time) }
