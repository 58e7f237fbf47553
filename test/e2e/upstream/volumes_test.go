package upstream

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// besideUpstream is WithOwnDriver with upstream's sidecar instead of our provisioner.
func besideUpstream(s *harness.Session, name, driver, provisioner string) *harness.Session {
	s.T.Helper()
	s.Must(s.GrantUpstream(s.Ctx), "grant upstream's rights")
	own := *s.Cluster
	own.Dir = s.T.TempDir()
	var err error
	own.Driver, err = sandbox.StartDriver(s.Ctx, sandbox.DriverConfig{Binaries: harness.Binaries(), Dir: own.Dir,
		Name: name, Args: strings.Fields(driver)})
	s.Must(err, "start driver")
	s.T.Cleanup(func() { s.StopProcess(own.Driver) })
	own.Provisioner, err = s.Plane.StartUpstreamProvisioner(s.Ctx, own.Driver,
		sandbox.Controller{Name: name, Args: strings.Fields(provisioner)})
	s.Must(err, "start upstream's provisioner")
	s.T.Cleanup(func() { s.StopProcess(own.Provisioner) })
	return &harness.Session{Cluster: &own, T: s.T, Ctx: s.Ctx, Namespace: s.Namespace}
}

// describeVolume returns a volume as text, without names and handles.
func describeVolume(s *harness.Session, claim string) string {
	s.T.Helper()
	volume := s.AwaitBound(claim)
	created := s.StoredVolume(volume)
	annotations := map[string]string{}
	for key, value := range volume.Annotations {
		if !strings.HasPrefix(key, "exeunt.io/") {
			annotations[key] = value
		}
	}
	spec := volume.Spec.DeepCopy()
	spec.ClaimRef = nil
	for _, term := range spec.NodeAffinity.Required.NodeSelectorTerms { // upstream's order is random
		slices.SortFunc(term.MatchExpressions, func(a,
			b v1.NodeSelectorRequirement) int {
			return strings.Compare(a.Key, b.Key)
		})
	}
	text, err := json.MarshalIndent(map[string]any{
		"annotations": annotations, "finalizers": slices.Sorted(slices.Values(volume.Finalizers)), "spec": spec,
		"parameters": created.Parameters, "topology": created.Topology, "source": created.Source,
		"capacity": created.Capacity,
	}, "", " ")
	s.Must(err, "encode volume")
	const identity = "storage.kubernetes.io/csiProvisionerIdentity"
	return strings.NewReplacer(volume.Name, "VOLUME", harness.Handle(volume), "HANDLE", s.Driver.DriverName, "DRIVER",
		s.Namespace, "NAMESPACE", spec.CSI.VolumeAttributes[identity], "IDENTITY").Replace(string(text))
}

func TestVolumesMatchUpstream(t *testing.T) {
	const driver = "--with=topology --topology=zone=a,rack=1 --topology=zone=a,rack=2 --topology=zone=b,rack=1"
	const flags = "--controller-publish-readonly --extra-create-metadata --default-fstype=ext4 --volume-name-prefix=vol"
	ours := harness.Join(t, harness.Setup{})
	theirs := harness.NewSession(t, ours.Cluster)
	sessions := []*harness.Session{ours.WithOwnDriver(ours.Namespace+".ours", driver, flags),
		besideUpstream(theirs, theirs.Namespace+".theirs", driver, flags)}
	node := createNodesForAll(sessions[0], sessions)
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
		"near": harness.WithSelectedNode(node),
	}
	for _, s := range sessions {
		createComparedClasses(s)
		for name, change := range cases {
			class := s.Namespace
			if name == "near" {
				class += "-wait"
			}
			s.CreateClaim(name, class, change)
		}
	}
	for name := range cases {
		if diff := cmp.Diff(describeVolume(sessions[1], name), describeVolume(sessions[0], name)); diff != "" {
			t.Errorf("%s: upstream's volume, and ours:\n%s", name, diff)
		}
	}
}

// createNodesForAll creates three nodes with the drivers of all sessions, and returns the
// name of a node.
func createNodesForAll(s *harness.Session, sessions []*harness.Session) string {
	s.T.Helper()
	for suffix, place := range map[string]map[string]string{"1": {"zone": "a", "rack": "1"},
		"2": {"zone": "a", "rack": "2"}, "3": {"zone": "b", "rack": "1"}} {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-" + suffix, Labels: place}}
		drivers := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}
		for _, other := range sessions {
			drivers.Spec.Drivers = append(drivers.Spec.Drivers, storagev1.CSINodeDriver{Name: other.Driver.DriverName,
				NodeID: node.Name, TopologyKeys: []string{"zone", "rack"}})
		}
		_, err := s.Client.CoreV1().Nodes().Create(s.Ctx, node, metav1.CreateOptions{})
		s.Must(err, "create node")
		_, err = s.Client.StorageV1().CSINodes().Create(s.Ctx, drivers, metav1.CreateOptions{})
		s.Must(err, "create CSINode")
	}
	return s.Namespace + "-2"
}

// createComparedClasses creates two classes that set every field of a class.
func createComparedClasses(s *harness.Session) {
	s.T.Helper()
	s.CreateClass(func(c *storagev1.StorageClass) {
		c.MountOptions = []string{"noatime"}
		c.Parameters = map[string]string{"tier": "gold", "FSType": "xfs", "csiNodePublishSecretName": "old",
			"csiNodePublishSecretNamespace": "ns"}
		for _, use := range []string{"controller-publish", "node-stage", "controller-expand", "node-expand",
			"controller-modify"} {
			c.Parameters["csi.storage.k8s.io/"+use+"-secret-name"] = use + "-${pvc.name}-${pv.name}"
			c.Parameters["csi.storage.k8s.io/"+use+"-secret-namespace"] = "${pvc.namespace}"
		}
	})
	s.CreateClass(func(c *storagev1.StorageClass) {
		wait, retain := storagev1.VolumeBindingWaitForFirstConsumer, v1.PersistentVolumeReclaimRetain
		c.Name, c.VolumeBindingMode, c.ReclaimPolicy = c.Name+"-wait", &wait, &retain
	})
}
