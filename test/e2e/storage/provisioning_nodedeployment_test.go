package storage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// localNode is a node with its own driver and provisioner.
type localNode struct {
	name    string
	driver  *sandbox.Driver
	sidecar *sandbox.Process
}

// startNode starts the driver and the provisioner of a node. The drivers of all nodes
// have the same name.
func startNode(s *harness.Session, name, capacity string) *localNode {
	s.T.Helper()
	dir := filepath.Join(s.Dir, name)
	s.Must(os.Mkdir(dir, 0o700), "make directory")
	s.CreateNode(name, map[string]string{"host": name})
	driver, err := sandbox.StartDriver(s.Ctx, sandbox.DriverConfig{
		Binaries: harness.Binaries(), Dir: dir,
		Args: []string{"--with=topology", "--topology=host=" + name, "--node-id=" + name, "--capacity=" + capacity},
	})
	s.Must(err, "start driver")
	s.T.Cleanup(func() {
		if err := driver.Stop(context.Background()); err != nil {
			s.T.Error(err)
		}
	})
	n := &localNode{name: name, driver: driver}
	startOn(s, n)
	return n
}

func startOn(s *harness.Session, n *localNode) {
	s.T.Helper()
	n.sidecar = s.StartProvisioner(n.driver, "provisioner-"+n.name, []string{"NODE_NAME=" + n.name}, "--node-deployment",
		"--strict-topology",
		"--node-deployment-base-delay=200ms", "--node-deployment-max-delay=1s", "--enable-capacity",
		"--capacity-ownerref-level=-1",
		"--kube-api-capacity-qps=1000", "--kube-api-capacity-burst=1000")
}

// volumes returns the handles of the node's driver.
func volumes(s *harness.Session, n *localNode) map[string]bool {
	s.T.Helper()
	connection, err := grpc.NewClient("unix://"+n.driver.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	s.Must(err, "connect to the driver")
	defer func() { _ = connection.Close() }()
	list, err := spec.NewControllerClient(connection).ListVolumes(s.Ctx, &spec.ListVolumesRequest{})
	s.Must(err, "list volumes")
	handles := map[string]bool{}
	for _, entry := range list.GetEntries() {
		handles[entry.GetVolume().GetVolumeId()] = true
	}
	return handles
}

// hostOf returns the only node that can reach the volume.
func hostOf(volume *v1.PersistentVolume) string {
	terms := volume.Spec.NodeAffinity.Required.NodeSelectorTerms
	if len(terms) != 1 || len(terms[0].MatchExpressions) != 1 || len(terms[0].MatchExpressions[0].Values) != 1 {
		return fmt.Sprintf("%+v", terms)
	}
	return terms[0].MatchExpressions[0].Values[0]
}

func TestEachOfThreeNodesServesItself(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{NoProvisioner: true})
	nodes := map[string]*localNode{}
	for name, capacity := range map[string]string{"node-1": "1Gi", "node-2": "1Gi", "full": "512Ki"} {
		nodes[name] = startNode(s, name, capacity)
	}
	awaitNodeCapacity(s, "full", "node-1", "node-2")

	bound := map[string]*v1.PersistentVolume{}
	for i := range 8 { // for any node with capacity
		s.CreateClaim(fmt.Sprintf("any-%d", i), harness.DeleteClass)
	}
	s.CreateClaim("chosen", harness.WaitClass, func(c *v1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{storage.AnnSelectedNode: "node-2"} // as the scheduler does
	})
	for _, claim := range []string{"any-0", "any-1", "any-2", "any-3", "any-4", "any-5", "any-6", "any-7", "chosen"} {
		bound[claim] = s.AwaitBound(claim)
		expectOnSelectedNode(s, nodes, claim, bound[claim])
	}
	if host := hostOf(bound["chosen"]); host != "node-2" {
		t.Errorf("the scheduler selected node-2, the volume is on %s", host)
	}

	expectVolumesOfDownNodeKept(s, nodes, bound)
	expectOneCallPerVolume(s, nodes, bound)
}

// expectOnSelectedNode checks that the volume is on the selected node only.
func expectOnSelectedNode(s *harness.Session, nodes map[string]*localNode, claim string, volume *v1.PersistentVolume) {
	s.T.Helper()
	selected := s.AwaitClaim(claim, "exists", func(*v1.PersistentVolumeClaim) bool { return true }).
		Annotations[storage.AnnSelectedNode]
	host := hostOf(volume)
	if host != selected || nodes[host] == nil || host == "full" {
		s.T.Fatalf("claim %s: node %s is selected, the volume is on %s", claim, selected, host)
	}
	if identity := volume.Spec.CSI.VolumeAttributes["storage.kubernetes.io/csiProvisionerIdentity"]; !strings.HasSuffix(identity, "-"+s.Driver.DriverName+"-"+host) {
		s.T.Errorf("claim %s is for %s: its volume has the identity %q", claim, host, identity)
	}
	for name, n := range nodes {
		if has := volumes(s, n)[harness.Handle(volume)]; has != (name == host) {
			s.T.Errorf("claim %s is for %s: node %s has the volume: %v", claim, host, name, has)
		}
	}
}

// expectVolumesOfDownNodeKept deletes all claims and volumes. The volumes of a node whose
// provisioner is down must stay until the provisioner runs again.
func expectVolumesOfDownNodeKept(s *harness.Session, nodes map[string]*localNode,
	bound map[string]*v1.PersistentVolume) {
	s.T.Helper()
	down := nodes[hostOf(bound["any-0"])]
	s.Must(down.sidecar.Kill(), "kill provisioner")
	<-down.sidecar.Done()
	s.ExpectEnd(down.sidecar)
	for claim, volume := range bound {
		s.DeleteVolume(volume.Name)
		s.DeleteClaim(claim)
	}
	for _, volume := range bound {
		if hostOf(volume) != down.name {
			s.AwaitVolumeGone(volume.Name)
		}
	}
	for _, volume := range bound {
		if hostOf(volume) == down.name && !volumes(s, down)[harness.Handle(volume)] {
			s.T.Errorf("volume %s of %s was deleted by another node", harness.Handle(volume), down.name)
		}
	}
	startOn(s, down)
	for _, volume := range bound {
		s.AwaitVolumeGone(volume.Name)
	}
	for name, n := range nodes {
		if left := volumes(s, n); len(left) != 0 {
			s.T.Errorf("node %s still has %v", name, left)
		}
	}
}

// expectOneCallPerVolume checks that every volume was created once, on the node of its
// host, and that no node got a DeleteVolume call for a volume of another node.
func expectOneCallPerVolume(s *harness.Session, nodes map[string]*localNode, bound map[string]*v1.PersistentVolume) {
	s.T.Helper()
	created, deleted := 0, 0
	for _, n := range nodes {
		created += s.CountDriverCalls(n.driver, "CreateVolume")
		deleted += s.CountDriverCalls(n.driver, "DeleteVolume")
	}
	if created != len(bound) || deleted != len(bound) {
		s.T.Errorf("%d volumes: CreateVolume was called %d times, DeleteVolume %d times", len(bound), created, deleted)
	}
	writes := 0
	events, err := sandbox.ReadAudit(s.Plane.AuditLog)
	s.Must(err, "read audit log")
	for _, event := range events {
		if event.Resource == "persistentvolumeclaims" && event.Writes() && event.Code < 300 &&
			strings.HasPrefix(event.User, "system:serviceaccount:"+deploy.Namespace+":provisioner") {
			writes++
		}
	}
	s.T.Logf("%d writes to %d claims by the provisioners", writes, len(bound))
}

// awaitNodeCapacity waits until each node has published its capacity.
func awaitNodeCapacity(s *harness.Session, names ...string) {
	s.T.Helper()
	var want []string
	for _, name := range names {
		size := int64(1) << 30
		if name == "full" {
			size = 512 << 10
		}
		want = append(want, fmt.Sprintf("wait/%s=%d", name, size))
	}
	for _, object := range s.AwaitCapacity("every node publishes its own", strings.Join(want, " ")) {
		host := object.NodeTopology.MatchLabels["host"]
		if got := object.Labels["csi.storage.k8s.io/managed-by"]; got != "external-provisioner-"+host {
			s.T.Errorf("the object of %s is managed by %s", host, got)
		}
	}
}
