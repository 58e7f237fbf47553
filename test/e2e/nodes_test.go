package e2e

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
	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// localNode is a node with a driver of its own and a provisioner beside it.
type localNode struct {
	name    string
	driver  *sandbox.Driver
	sidecar *sandbox.Process
}

// startNode starts the driver and the provisioner of one node. All the drivers have
// one name.
func (s *scene) startNode(name, capacity string) *localNode {
	s.t.Helper()
	dir := filepath.Join(s.dir, name)
	s.must(os.Mkdir(dir, 0o700), "make directory")
	s.createNode(name, map[string]string{"host": name})
	driver, err := sandbox.StartDriver(s.ctx, sandbox.DriverConfig{
		Binaries: binaries(), Dir: dir,
		Args: []string{"--with=topology", "--topology=host=" + name, "--node-id=" + name, "--capacity=" + capacity},
	})
	s.must(err, "start driver")
	s.t.Cleanup(func() {
		if err := driver.Stop(context.Background()); err != nil {
			s.t.Error(err)
		}
	})
	n := &localNode{name: name, driver: driver}
	s.startOn(n)
	return n
}

func (s *scene) startOn(n *localNode) {
	s.t.Helper()
	n.sidecar = s.startSidecar(n.driver, "provisioner-"+n.name, []string{"NODE_NAME=" + n.name}, "--node-deployment", "--strict-topology",
		"--node-deployment-base-delay=200ms", "--node-deployment-max-delay=1s", "--enable-capacity", "--capacity-ownerref-level=-1",
		"--kube-api-capacity-qps=1000", "--kube-api-capacity-burst=1000")
}

// volumes are the handles that the node's driver has.
func (s *scene) volumes(n *localNode) map[string]bool {
	s.t.Helper()
	connection, err := grpc.NewClient("unix://"+n.driver.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	s.must(err, "connect to the driver")
	defer func() { _ = connection.Close() }()
	list, err := spec.NewControllerClient(connection).ListVolumes(s.ctx, &spec.ListVolumesRequest{})
	s.must(err, "list volumes")
	handles := map[string]bool{}
	for _, entry := range list.GetEntries() {
		handles[entry.GetVolume().GetVolumeId()] = true
	}
	return handles
}

// hostOf is the only node that reaches the volume.
func hostOf(volume *v1.PersistentVolume) string {
	terms := volume.Spec.NodeAffinity.Required.NodeSelectorTerms
	if len(terms) != 1 || len(terms[0].MatchExpressions) != 1 || len(terms[0].MatchExpressions[0].Values) != 1 {
		return fmt.Sprintf("%+v", terms)
	}
	return terms[0].MatchExpressions[0].Values[0]
}

func TestEachOfThreeNodesServesItself(t *testing.T) {
	t.Parallel()
	s := enter(t, private(t, setup{honor: true, bare: true}))
	nodes := map[string]*localNode{}
	for name, capacity := range map[string]string{"node-1": "1Gi", "node-2": "1Gi", "full": "512Ki"} {
		nodes[name] = s.startNode(name, capacity)
	}
	s.awaitNodeCapacity("full", "node-1", "node-2")

	bound := map[string]*v1.PersistentVolume{}
	for i := range 8 { // for any node that has room
		s.createClaim(fmt.Sprintf("any-%d", i), deleteClass)
	}
	s.createClaim("chosen", waitClass, func(c *v1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{storage.AnnSelectedNode: "node-2"} // as the scheduler does
	})
	for _, claim := range []string{"any-0", "any-1", "any-2", "any-3", "any-4", "any-5", "any-6", "any-7", "chosen"} {
		bound[claim] = s.awaitBound(claim)
		chosen := s.awaitClaim(claim, "is kept", func(*v1.PersistentVolumeClaim) bool { return true }).Annotations[storage.AnnSelectedNode]
		host := hostOf(bound[claim])
		if host != chosen || nodes[host] == nil || host == "full" {
			t.Fatalf("claim %s: node %s was chosen, the volume is at %s", claim, chosen, host)
		}
		if identity := bound[claim].Spec.CSI.VolumeAttributes["storage.kubernetes.io/csiProvisionerIdentity"]; !strings.HasSuffix(identity, "-"+s.driver.DriverName+"-"+host) {
			t.Errorf("claim %s is for %s: its volume was made by %q", claim, host, identity)
		}
		for name, n := range nodes {
			if has := s.volumes(n)[handle(bound[claim])]; has != (name == host) {
				t.Errorf("claim %s is for %s: node %s has it: %v", claim, host, name, has)
			}
		}
	}
	if host := hostOf(bound["chosen"]); host != "node-2" {
		t.Errorf("the scheduler chose node-2, the volume is at %s", host)
	}

	// The node whose provisioner is down keeps what it has until it is back.
	down := nodes[hostOf(bound["any-0"])]
	s.must(down.sidecar.Kill(), "kill provisioner")
	<-down.sidecar.Done()
	s.forget(down.sidecar)
	for claim, volume := range bound {
		s.deleteVolume(volume.Name)
		s.deleteClaim(claim)
	}
	for _, volume := range bound {
		if hostOf(volume) != down.name {
			s.awaitVolumeGone(volume.Name)
		}
	}
	for _, volume := range bound {
		if hostOf(volume) == down.name && !s.volumes(down)[handle(volume)] {
			t.Errorf("volume %s of %s was deleted by somebody else", handle(volume), down.name)
		}
	}
	s.startOn(down)
	for _, volume := range bound {
		s.awaitVolumeGone(volume.Name)
	}
	for name, n := range nodes {
		if left := s.volumes(n); len(left) != 0 {
			t.Errorf("node %s still has %v", name, left)
		}
	}
	s.expectOneCallPerVolume(nodes, bound)
}

// expectOneCallPerVolume: nothing was made twice or elsewhere, and nobody was asked to
// delete what is not his.
func (s *scene) expectOneCallPerVolume(nodes map[string]*localNode, bound map[string]*v1.PersistentVolume) {
	s.t.Helper()
	made, deleted := 0, 0
	for _, n := range nodes {
		made += s.callsOf(n.driver, "CreateVolume")
		deleted += s.callsOf(n.driver, "DeleteVolume")
	}
	if made != len(bound) || deleted != len(bound) {
		s.t.Errorf("%d volumes: CreateVolume was called %d times, DeleteVolume %d times", len(bound), made, deleted)
	}
	writes := 0
	events, err := sandbox.ReadAudit(s.plane.AuditLog)
	s.must(err, "read audit log")
	for _, event := range events {
		if event.Resource == "persistentvolumeclaims" && event.Writes() && event.Code < 300 && strings.HasPrefix(event.User, "system:serviceaccount:"+deploy.Namespace+":provisioner") {
			writes++
		}
	}
	s.t.Logf("%d writes to %d claims by the provisioners", writes, len(bound))
}

// awaitNodeCapacity waits until each node publishes what it has.
func (s *scene) awaitNodeCapacity(names ...string) {
	s.t.Helper()
	var want []string
	for _, name := range names {
		size := int64(1) << 30
		if name == "full" {
			size = 512 << 10
		}
		want = append(want, fmt.Sprintf("wait/%s=%d", name, size))
	}
	for _, object := range s.awaitCapacity("every node publishes its own", strings.Join(want, " ")) {
		host := object.NodeTopology.MatchLabels["host"]
		if got := object.Labels["csi.storage.k8s.io/managed-by"]; got != "external-provisioner-"+host {
			s.t.Errorf("the object of %s is managed by %s", host, got)
		}
	}
}
