package storage

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// commandsOnly is an Explorer that writes commands.
type commandsOnly struct{ chain.Explorer }

func (commandsOnly) Commands() cluster.Commands { return cluster.Commands{} }

// Whoever pastes a next step must not lose data, nor the last object that names it.
func TestNextStepLosesNothingIfItIsPasted(t *testing.T) {
	bound := func(policy corev1.PersistentVolumeReclaimPolicy) *volumeChain {
		v := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: policy,
			ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data"}}}
		v.Name = "v"
		return &volumeChain{subject: subject[corev1.PersistentVolume]{commandsOnly{}, &unstructured.Unstructured{}, v},
			claim: &unstructured.Unstructured{}}
	}
	for name, next := range map[string]string{
		"claim of a volume to be deleted": bound(corev1.PersistentVolumeReclaimDelete).claimed(t.Context())[0].Next,
		"claim of a volume to be kept":    bound(corev1.PersistentVolumeReclaimRetain).claimed(t.Context())[0].Next,
		"volume that is kept":             bound(corev1.PersistentVolumeReclaimRetain).retained().Next,
		"a pod that has finished": nextOfPod(t.Context(), commandsOnly{},
			&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}),
		"pods on a node that is gone": attachmentText(commandsOnly{}, blocker.Blocker{Reason: blocker.NodeGone},
			&storagev1.VolumeAttachment{}, make([]corev1.Pod, 1)).Next,
		"a snapshot": giveUp(commandsOnly{}, "wait", "the snapshot is not taken", "shop",
			"volumesnapshot", "s"),
	} {
		if !strings.Contains(next, "\n# kubectl delete ") || strings.Contains(next, "\nkubectl delete ") ||
			!strings.Contains(next, "\nkubectl get ") {
			t.Errorf("%s: pasted, the next step deletes something, or shows nothing:\n%s", name, next)
		}
	}
}
