package harness

import (
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// WithSelectedNode sets the selected node of a claim, as the scheduler does.
func WithSelectedNode(node string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{storage.AnnSelectedNode: node}
	}
}

// CreateNode creates a node that runs the driver; the labels are its topology segment.
func (s *Session) CreateNode(name string, labels map[string]string) {
	s.T.Helper()
	_, err := s.Client.CoreV1().Nodes().Create(s.Ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	s.Must(err, "create node")
	var keys []string
	for key := range labels {
		keys = append(keys, key)
	}
	_, err = s.Client.StorageV1().CSINodes().Create(s.Ctx, &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: s.Driver.DriverName, NodeID: name, TopologyKeys: keys}}},
	}, metav1.CreateOptions{})
	s.Must(err, "create CSI node")
}
