package storage

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// localDriver is the name of the driver on all nodes.
const localDriver = "local.example.com"

// deployedNode is a node with a driver in this process and a provisioner.
type deployedNode struct {
	name, socket string
	driver       *csimock.Server
	sidecar      *sandbox.Process
}

// startNodes starts nodes whose drivers create volumes and time out.
func startNodes(s *harness.Session, count int) []*deployedNode {
	s.T.Helper()
	class := harness.NewClass(localDriver, localDriver, v1.PersistentVolumeReclaimDelete,
		storagev1.VolumeBindingWaitForFirstConsumer)
	s.CreateStorageClass(class)
	dir, err := os.MkdirTemp("", "csi-")
	s.Must(err, "make directory")
	s.T.Cleanup(func() { _ = os.RemoveAll(dir) })
	var nodes []*deployedNode
	for i := range count {
		n := &deployedNode{name: fmt.Sprintf("node-%d", i), socket: filepath.Join(dir, fmt.Sprintf("%d.sock", i))}
		createFleetNode(s, n.name)
		n.driver, err = csimock.Start(s.T.Context(), csimock.Config{
			Name: localDriver, NodeID: n.name, Topologies: []map[string]string{{"host": n.name}},
			Capabilities: csimock.DefaultCapabilities().With(csimock.Topology),
			Faults:       []csimock.Fault{{Method: "CreateVolume", Code: codes.DeadlineExceeded, After: true}},
		}, n.socket)
		s.Must(err, "start driver")
		s.T.Cleanup(func() { _ = n.driver.Stop() })
		nodes = append(nodes, n)
	}
	startSidecars(s, nodes)
	return nodes
}

func createFleetNode(s *harness.Session, name string) {
	s.T.Helper()
	_, err := s.Client.CoreV1().Nodes().Create(s.Ctx,
		&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"host": name}}}, metav1.CreateOptions{})
	s.Must(err, "create node")
	_, err = s.Client.StorageV1().CSINodes().Create(s.Ctx, &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: localDriver, NodeID: name,
			TopologyKeys: []string{"host"}}}},
	}, metav1.CreateOptions{})
	s.Must(err, "create CSI node")
}

// startSidecars starts the provisioners of the nodes and waits until all of them work.
func startSidecars(s *harness.Session, nodes []*deployedNode) {
	s.T.Helper()
	for _, n := range nodes {
		n.sidecar = s.StartProvisioner(&sandbox.Driver{Socket: n.socket}, fmt.Sprintf("%s-%d", n.name, len(s.Processes())),
			[]string{"NODE_NAME=" + n.name},
			"--node-deployment", "--strict-topology", "--node-deployment-base-delay=200ms", "--node-deployment-max-delay=1s",
			"--timeout=1s", "--retry-interval-start=50ms", "--retry-interval-max=500ms", "--worker-threads=4")
	}
	for _, n := range nodes {
		s.AwaitLog(n.sidecar, `"Working"`)
	}
}

func killSidecars(s *harness.Session, nodes []*deployedNode) {
	s.T.Helper()
	for _, n := range nodes {
		s.Must(n.sidecar.Kill(), "kill provisioner")
		s.ExpectEnd(n.sidecar)
	}
}

// entriesOfNodes returns the journal entries of all nodes.
func entriesOfNodes(s *harness.Session) []journal.Entry {
	s.T.Helper()
	list, err := s.Client.CoordinationV1().Leases(deploy.Namespace).
		List(s.Ctx, metav1.ListOptions{LabelSelector: journal.KindLabel})
	s.Must(err, "list leases")
	var all []journal.Entry
	for _, lease := range list.Items {
		found, unreadable := journal.Entries(&lease)
		all = append(all, found...)
		if len(unreadable) > 0 {
			s.T.Errorf("lease %s has unreadable entries", lease.Name)
		}
	}
	return all
}

// Three claims are deleted: one was requested from the driver of a node, one was not, one has no
// selected node. A backup program keeps the latter two. Then all provisioners restart.
func TestOnlyCallingNodeFinishesDeletedClaim(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{NoProvisioner: true}, harness.Within(3*harness.Timeout))
	nodes := startNodes(s, 20)
	selected := func(c *v1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{storage.AnnSelectedNode: "node-7"}
	}
	caller := nodes[7]
	called := s.CreateClaim("called", localDriver, selected)
	s.Until("the selected node has the volume", func() bool { return len(caller.driver.Volumes()) == 1 })
	s.DeleteClaim(called.Name)
	s.AwaitClaimGone(called.Name)
	killSidecars(s, nodes)
	kept := func(c *v1.PersistentVolumeClaim) { c.Finalizers = []string{"example.com/backup"} }
	s.CreateClaim("uncalled", localDriver, kept, selected)
	s.CreateClaim("anywhere", localDriver, kept)
	for _, name := range []string{"uncalled", "anywhere"} {
		s.AwaitClaim(name, "has a provisioner annotation or waits", func(c *v1.PersistentVolumeClaim) bool {
			return c.Annotations[storage.AnnStorageProvisioner] != "" || name == "anywhere" && c.Status.Phase == v1.ClaimPending
		})
		s.DeleteClaim(name)
	}
	startSidecars(s, nodes)
	for _, n := range nodes {
		n.driver.ClearFaults()
	}
	s.Until("neither volume nor entry exists", func() bool {
		return len(entriesOfNodes(s)) == 0 && !slices.ContainsFunc(nodes,
			func(n *deployedNode) bool { return len(n.driver.Volumes()) > 0 })
	})
	for _, n := range nodes {
		for _, call := range n.driver.Calls() {
			if n != caller && strings.HasSuffix(call.Method, "Volume") {
				t.Errorf("the driver of %s was called: %s for %s", n.name, call.Method, call.Name)
			}
		}
	}
	s.AwaitVolumeGone("pvc-" + string(called.UID))
}
