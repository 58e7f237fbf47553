package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/sandbox"
)

// besideUpstream is beside with upstream's sidecar in the place of ours.
func (s *scene) besideUpstream(name, driver, provisioner string) *scene {
	s.t.Helper()
	s.must(s.grantUpstream(s.ctx), "grant upstream's rights")
	own := *s.cluster
	own.dir = s.t.TempDir()
	var err error
	own.driver, err = sandbox.StartDriver(s.ctx, sandbox.DriverConfig{Binaries: binaries(), Dir: own.dir, Name: name, Args: strings.Fields(driver)})
	s.must(err, "start driver")
	s.t.Cleanup(func() { s.end(own.driver) })
	own.provisioner, err = s.plane.StartUpstreamProvisioner(s.ctx, own.driver, sandbox.Controller{Name: name, Args: strings.Fields(provisioner)})
	s.must(err, "start upstream's provisioner")
	s.t.Cleanup(func() { s.end(own.provisioner) })
	return &scene{cluster: &own, t: s.t, ctx: s.ctx, namespace: s.namespace}
}

// portrait is a volume without what must differ from another claim's.
func (s *scene) portrait(claim string) string {
	s.t.Helper()
	volume := s.awaitBound(claim)
	made := s.inStorage(volume)
	annotations := map[string]string{}
	for key, value := range volume.Annotations {
		if !strings.HasPrefix(key, "exeunt.io/") {
			annotations[key] = value
		}
	}
	spec := volume.Spec.DeepCopy()
	spec.ClaimRef = nil
	for _, term := range spec.NodeAffinity.Required.NodeSelectorTerms { // upstream's order is that of a map
		slices.SortFunc(term.MatchExpressions, func(a, b v1.NodeSelectorRequirement) int { return strings.Compare(a.Key, b.Key) })
	}
	text, err := json.MarshalIndent(map[string]any{
		"annotations": annotations, "finalizers": slices.Sorted(slices.Values(volume.Finalizers)), "spec": spec,
		"parameters": made.Parameters, "topology": made.Topology, "source": made.Source, "capacity": made.Capacity,
	}, "", " ")
	s.must(err, "encode volume")
	const identity = "storage.kubernetes.io/csiProvisionerIdentity"
	return strings.NewReplacer(volume.Name, "VOLUME", handle(volume), "HANDLE", s.driver.DriverName, "DRIVER",
		s.namespace, "NAMESPACE", spec.CSI.VolumeAttributes[identity], "IDENTITY").Replace(string(text))
}

func TestVolumesLookAsUpstreamMakesThem(t *testing.T) {
	t.Parallel()
	const driver = "--with=topology --topology=zone=a,rack=1 --topology=zone=a,rack=2 --topology=zone=b,rack=1"
	const flags = "--controller-publish-readonly --extra-create-metadata --default-fstype=ext4 --volume-name-prefix=vol"
	ours, theirs := enter(t, shared(t, setup{honor: true})), enter(t, shared(t, setup{honor: true}))
	scenes := []*scene{ours.beside(ours.namespace+".ours", driver, flags), theirs.besideUpstream(theirs.namespace+".theirs", driver, flags)}
	node := scenes[0].createNodesForAll(scenes)
	cases := map[string]func(*v1.PersistentVolumeClaim){
		"files": func(*v1.PersistentVolumeClaim) {},
		"block": func(c *v1.PersistentVolumeClaim) {
			block := v1.PersistentVolumeBlock
			c.Spec.VolumeMode = &block
		},
		"read-only": func(c *v1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadOnlyMany}
		},
		"two-modes": func(c *v1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteMany, v1.ReadOnlyMany}
		},
		"data-web-0": func(*v1.PersistentVolumeClaim) {}, "data-web-1": func(*v1.PersistentVolumeClaim) {}, "logs-web-1": func(*v1.PersistentVolumeClaim) {},
		"near": chosen(node),
	}
	for _, s := range scenes {
		s.createComparedClasses()
		for name, change := range cases {
			class := s.namespace
			if name == "near" {
				class += "-wait"
			}
			s.createClaim(name, class, change)
		}
	}
	for name := range cases {
		if diff := cmp.Diff(scenes[1].portrait(name), scenes[0].portrait(name)); diff != "" {
			t.Errorf("%s: upstream's volume, and ours:\n%s", name, diff)
		}
	}
}

// createNodesForAll makes three nodes on which the drivers of all scenes run, and
// returns the name of one.
func (s *scene) createNodesForAll(scenes []*scene) string {
	s.t.Helper()
	for suffix, place := range map[string]map[string]string{"1": {"zone": "a", "rack": "1"}, "2": {"zone": "a", "rack": "2"}, "3": {"zone": "b", "rack": "1"}} {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-" + suffix, Labels: place}}
		drivers := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}
		for _, other := range scenes {
			drivers.Spec.Drivers = append(drivers.Spec.Drivers, storagev1.CSINodeDriver{Name: other.driver.DriverName, NodeID: node.Name, TopologyKeys: []string{"zone", "rack"}})
		}
		_, err := s.client.CoreV1().Nodes().Create(s.ctx, node, metav1.CreateOptions{})
		s.must(err, "create node")
		_, err = s.client.StorageV1().CSINodes().Create(s.ctx, drivers, metav1.CreateOptions{})
		s.must(err, "create CSINode")
	}
	return s.namespace + "-2"
}

// createComparedClasses makes two classes that use what a class can say.
func (s *scene) createComparedClasses() {
	s.t.Helper()
	s.createClass(func(c *storagev1.StorageClass) {
		c.MountOptions = []string{"noatime"}
		c.Parameters = map[string]string{"tier": "gold", "FSType": "xfs", "csiNodePublishSecretName": "old", "csiNodePublishSecretNamespace": "ns"}
		for _, use := range []string{"controller-publish", "node-stage", "controller-expand", "node-expand", "controller-modify"} {
			c.Parameters["csi.storage.k8s.io/"+use+"-secret-name"] = use + "-${pvc.name}-${pv.name}"
			c.Parameters["csi.storage.k8s.io/"+use+"-secret-namespace"] = "${pvc.namespace}"
		}
	})
	s.createClass(func(c *storagev1.StorageClass) {
		wait, retain := storagev1.VolumeBindingWaitForFirstConsumer, v1.PersistentVolumeReclaimRetain
		c.Name, c.VolumeBindingMode, c.ReclaimPolicy = c.Name+"-wait", &wait, &retain
	})
}
