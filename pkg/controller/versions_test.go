package controller_test

import (
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/partial"
	"github.com/exeunt-io/exeunt/test/controllertest"
)

func TestPartialNodeIsCachedAsWholeNode(t *testing.T) {
	node := controllertest.WithManagedFields(&v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node", UID: "uid", ResourceVersion: "7",
			Labels: map[string]string{"zone": "a", "host": "node"}, Annotations: map[string]string{"a": "b"}},
		Spec:   v1.NodeSpec{PodCIDR: "10.0.0.0/24"},
		Status: v1.NodeStatus{Images: []v1.ContainerImage{{Names: []string{"image"}, SizeBytes: 1}}},
	})
	part := controllertest.Decode(t, partial.Rules{"Node": controller.NodeRule()}, node)
	if len(part.Status.Images) != 0 || part.Annotations != nil {
		t.Errorf("more was decoded than the cache keeps: %v", part)
	}
	got, gotErr := controller.TrimNode(part)
	want, wantErr := controller.TrimNode(node)
	if gotErr != nil || wantErr != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("cached %v (%v), want %v (%v)", got, gotErr, want, wantErr)
	}
}
