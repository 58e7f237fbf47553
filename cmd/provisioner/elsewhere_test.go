package main

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/provisioner/provisioning"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// The events of a claim without a process of its own are those of all processes, or nobody releases
// what the claim needed.
func TestClaimIsServedElsewhere(t *testing.T) {
	t.Setenv("NODE_NAME", "own")
	for name, tc := range map[string]struct {
		provisioner, node string
		perNode, want     bool
	}{
		"own driver":                   {"csi.example.com", "", false, false},
		"in-tree plugin of the driver": {"kubernetes.io/example", "", false, false},
		"another driver":               {"other.example.com", "", false, true},
		"waits for a pod, or static":   {"", "", false, false},
		"own node":                     {"csi.example.com", "own", true, false},
		"another node":                 {"csi.example.com", "other", true, true},
		"no node yet":                  {"csi.example.com", "", true, false},
		"no provisioner yet":           {"", "", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			names := provisioning.Names{Driver: "csi.example.com", Migrated: []string{"kubernetes.io/example"}}
			w := &wiring{shared: shared{names: names, options: &options{}}}
			w.options.node.enabled = tc.perNode
			claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
				storage.AnnStorageProvisioner: tc.provisioner, storage.AnnSelectedNode: tc.node,
			}}}
			if got := w.servedElsewhere(claim); got != tc.want {
				t.Errorf("served elsewhere: %v, want %v", got, tc.want)
			}
		})
	}
}
