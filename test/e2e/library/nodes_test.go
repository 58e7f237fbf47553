package library

import (
	"context"
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// nodeProvisioner is a hookedProvisioner that serves the claims of one node.
type nodeProvisioner struct {
	hookedProvisioner
	node string
}

// ShouldProvision implements [controller.Qualifier].
func (p *nodeProvisioner) ShouldProvision(_ context.Context, claim *v1.PersistentVolumeClaim) bool {
	return claim.Annotations[storage.AnnSelectedNode] == p.node
}

// Provision implements [controller.Provisioner].
func (p *nodeProvisioner) Provision(ctx context.Context,
	options controller.ProvisionOptions) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	switch end, err := p.ask(ctx, onNode(p.node), options.PVName); {
	case err != nil:
		return nil, controller.ProvisioningInBackground, err
	case end == answerLost:
		return nil, controller.ProvisioningInBackground, errors.New("the storage system did not answer in time")
	}
	return p.hookedProvisioner.Provision(ctx, options)
}

// onNode is the call of Provision by the process of that node.
func onNode(node string) string { return provisioned + " on " + node }

// A DaemonSet on v10 runs without leader election. Each process has a journal of its own.
func TestOneProcessOnEachNode(t *testing.T) {
	nodes := []string{"a", "b"}
	s := newFixture(t, exeunt)
	s.setReaction(func(c call) result {
		if c.method == onNode(s.name+"-a") || c.method == onNode(s.name+"-b") {
			return answerLost // the entries stay open
		}
		return succeeds
	})
	class := s.name + "-wait"
	s.createClass(class, remove, storagev1.VolumeBindingWaitForFirstConsumer)
	processes := map[string]*sandbox.Process{}
	for _, name := range nodes {
		node := s.name + "-" + name
		_, err := s.Client.CoreV1().Nodes().Create(s.Ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}},
			metav1.CreateOptions{})
		s.Must(err, "create node")
		s.settings.Node = node
		s.start()
		processes[name] = s.process
		t.Cleanup(func() { _ = processes[name].Kill() })
		claim := s.NewClaim(name, class)
		claim.Annotations = map[string]string{storage.AnnSelectedNode: node}
		claim, err = s.Client.CoreV1().PersistentVolumeClaims(s.name).Create(s.Ctx, claim, metav1.CreateOptions{})
		s.Must(err, "create claim")
		s.Until("Provision was called", func() bool { return s.count(onNode(node), volumeOf(claim)) > 0 })
	}
	s.kill() // that of the last node
	s.start()
	processes[nodes[1]] = s.process
	s.succeed()
	for _, name := range nodes {
		volume := s.AwaitBound(name)
		for _, other := range nodes {
			if calls := s.count(onNode(s.name+"-"+other), volume.Name); (calls > 0) != (other == name) {
				t.Errorf("the process of node %s called Provision %d times for the claim of node %s", other, calls, name)
			}
		}
		select {
		case <-processes[name].Done():
			t.Errorf("the process of node %s has ended: %v", name, processes[name].Err())
		default:
		}
	}
}
