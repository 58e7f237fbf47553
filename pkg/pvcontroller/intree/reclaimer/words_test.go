package reclaimer

import (
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
)

// using is a pod that uses the claim of the volume.
func using(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: v1.PodSpec{NodeName: "node", Volumes: []v1.Volume{{
		Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}},
	}}}}
}

// The key words are those of kube-controller-manager 1.36 in the same event.
func TestVolumeEventsHaveUpstreamKeyWords(t *testing.T) {
	const deletes, recycles = v1.PersistentVolumeReclaimDelete, v1.PersistentVolumeReclaimRecycle
	hostPath := releasedVolume(deletes, static, func(v *v1.PersistentVolume) { v.Spec.HostPath.Path = "/data/v" })
	unsafe := (&intree.HostPath{Root: "/tmp"}).Delete(t.Context(), hostPath)
	for name, tc := range map[string]struct {
		event event
		words []string
	}{
		"unknown policy":         {failure(releasedVolume("Shred"), plugin.UnknownPolicy), []string{"Warning VolumeUnknownReclaimPolicy", "Volume has unrecognized PersistentVolumeReclaimPolicy"}},
		"no recycler":            {failure(releasedVolume(recycles), plugin.NoPlugin), []string{"Warning VolumeFailedRecycle", "No recycler plugin found for the volume"}},
		"no deleter by name":     {failure(releasedVolume(deletes), plugin.NoPlugin), []string{"Warning VolumeFailedDelete", "no volume plugin matched name: " + diskName}},
		"no deleter by source":   {failure(releasedVolume(deletes, static), plugin.NoPlugin), []string{"Warning VolumeFailedDelete", `error getting deleter volume plugin for volume "v"`, "volume plugin matched"}},
		"path is not below /tmp": {deletionFailure(unsafe), []string{"Warning VolumeFailedDelete", "host_path deleter only supports /tmp/.+", "/data/v"}},
		"recycler pod failed":    {recyclingFailure(podFailure("evicted")), []string{"Warning VolumeFailedRecycle", "Recycle failed: failed to recycle volume: evicted"}},
		"recycler pod is silent": {recyclingFailure(podFailure("")), []string{"Warning VolumeFailedRecycle", "Recycle failed: failed to recycle volume: ", "pod failed, pod.Status.Message unknown"}},
		"no recycler pod":        {recyclingFailure(podRefusal(errors.New("quota"))), []string{"Warning VolumeFailedRecycle", "Recycle failed: unexpected error creating recycler pod: "}},
		"recycled":               {recycledEvent(), []string{"Normal VolumeRecycled", "Volume recycled"}},
		"recycler pod":           {recyclerEvent("pulling image"), []string{"Normal RecyclerPod", "Recycler pod: pulling image"}},
		"still in use":           {stillInUse(intree.ErrInUse), []string{"Normal VolumeDelete", "in use"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := tc.event.Type + " " + tc.event.Reason + " " + tc.event.Message
			for _, words := range tc.words {
				if !strings.Contains(text, words) {
					t.Errorf("event %q lacks %q", text, words)
				}
			}
		})
	}
}

func TestEventNamesPodsOfUsedVolume(t *testing.T) {
	volume := releasedVolume(v1.PersistentVolumeReclaimRecycle)
	finished := using("done")
	finished.Status.Phase = v1.PodSucceeded
	s := newFixture(t, volume, using("b"), using("a"), finished)
	s.reportWait(observation{volume: volume}, plugin.VolumeUsed)
	if event := strings.Join(s.events.events, "; "); !strings.Contains(event, "Normal VolumeFailedRecycle: Volume is used by pods: ns/a,ns/b") {
		t.Errorf("event %q", event)
	}
}
