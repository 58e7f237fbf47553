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

// Every event of the reclaimer is written out here, to be read. A volume has no namespace; its pods are named with theirs.
func TestEventsAreSentences(t *testing.T) {
	const deletes, recycles = v1.PersistentVolumeReclaimDelete, v1.PersistentVolumeReclaimRecycle
	s := newFixture(t)
	below := releasedVolume(deletes, func(v *v1.PersistentVolume) { v.Name = "other" })
	above := releasedVolume(deletes, func(v *v1.PersistentVolume) { v.Name, v.Spec.HostPath.Path = "other", "/data" })
	for name, tc := range map[string]struct {
		event event
		want  string
	}{
		"unknown policy": {failure(releasedVolume("Shred"), plugin.UnknownPolicy),
			`Volume has unrecognized PersistentVolumeReclaimPolicy "Shred"; the volume is left as it is`},
		"no recycler": {failure(releasedVolume(recycles), plugin.NoPlugin), "No recycler plugin found for the volume; the volume is left as it is"},
		"no deleter by name": {failure(releasedVolume(deletes), plugin.NoPlugin),
			"no volume plugin matched name: kubernetes.io/disk; the data is left as it is: delete it by hand, or set the policy of the volume to Retain to keep it"},
		"no deleter by source": {failure(releasedVolume(deletes, static), plugin.NoPlugin),
			`error getting deleter volume plugin for volume "v": no deletable volume plugin matched; the data is left as it is: delete it by hand, or set the policy of the volume to Retain to keep it`},
		"recycler pod failed":    {recyclingFailure(podFailure("evicted")), "Recycle failed: failed to recycle volume: evicted"},
		"recycler pod is silent": {recyclingFailure(podFailure("")), "Recycle failed: failed to recycle volume: the recycler pod failed, pod.Status.Message unknown"},
		"recycler pod refused":   {recyclingFailure(podRefusal(errors.New("exceeded quota"))), "Recycle failed: unexpected error creating recycler pod: exceeded quota"},
		"recycled":               {recycledEvent(), "Volume recycled"},
		"recycler pod":           {recyclerEvent("pod tools/recycler-for-v has the name of the recycler pod but was created for other data; it is deleted first"), "Recycler pod: pod tools/recycler-for-v has the name of the recycler pod but was created for other data; it is deleted first"},
		"still in use":           {stillInUse(intree.ErrInUse), "the volume is still in use"},
		"deletion failed":        {deletionFailure(errors.New("disk is busy")), "disk is busy"},
		"data below":             {s.sharedEvent(releasedVolume(deletes), below), `The volume is not reclaimed, because the data of volume "other" is at the same place or below it; if that volume is in use, set the policy of this one to Retain`},
		"data inside":            {s.sharedEvent(releasedVolume(deletes), above), `The volume is not reclaimed, because its data is inside the directory of volume "other"; if that volume is in use, set the policy of this one to Retain`},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.event.Message != tc.want {
				t.Errorf("event\n%s, want\n%s", tc.event.Message, tc.want)
			}
		})
	}
	for _, namespace := range []string{"ns", "elsewhere"} {
		pod := using("web")
		pod.Namespace = namespace
		volume := releasedVolume(recycles)
		volume.Spec.ClaimRef.Namespace = namespace
		s := newFixture(t, volume, pod)
		s.reportWait(observation{volume: volume}, plugin.VolumeUsed)
		want := "Normal VolumeFailedRecycle: Volume is used by pods: " + namespace + "/web; the volume is recycled once none of them runs"
		if len(s.events.events) != 1 || s.events.events[0] != want {
			t.Errorf("events %q, want %q", s.events.events, want)
		}
	}
}

// using is a pod that uses the claim of the volume.
func using(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec: v1.PodSpec{NodeName: "node", Volumes: []v1.Volume{{
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
		"unknown policy": {failure(releasedVolume("Shred"), plugin.UnknownPolicy),
			[]string{"Warning VolumeUnknownReclaimPolicy", "Volume has unrecognized PersistentVolumeReclaimPolicy"}},
		"no recycler": {failure(releasedVolume(recycles), plugin.NoPlugin),
			[]string{"Warning VolumeFailedRecycle", "No recycler plugin found for the volume"}},
		"no deleter by name": {failure(releasedVolume(deletes), plugin.NoPlugin),
			[]string{"Warning VolumeFailedDelete", "no volume plugin matched name: " + diskName}},
		"no deleter by source": {failure(releasedVolume(deletes, static), plugin.NoPlugin),
			[]string{"Warning VolumeFailedDelete", `error getting deleter volume plugin for volume "v"`,
				"volume plugin matched"}},
		"path is not below /tmp": {deletionFailure(unsafe), []string{"Warning VolumeFailedDelete", "host_path deleter only supports /tmp/.+", "/data/v"}},
		"recycler pod failed": {recyclingFailure(podFailure("evicted")),
			[]string{"Warning VolumeFailedRecycle", "Recycle failed: failed to recycle volume: evicted"}},
		"recycler pod is silent": {recyclingFailure(podFailure("")),
			[]string{"Warning VolumeFailedRecycle", "Recycle failed: failed to recycle volume: ",
				"pod failed, pod.Status.Message unknown"}},
		"no recycler pod": {recyclingFailure(podRefusal(errors.New("quota"))),
			[]string{"Warning VolumeFailedRecycle", "Recycle failed: unexpected error creating recycler pod: "}},
		"recycled":     {recycledEvent(), []string{"Normal VolumeRecycled", "Volume recycled"}},
		"recycler pod": {recyclerEvent("pulling image"), []string{"Normal RecyclerPod", "Recycler pod: pulling image"}},
		"still in use": {stillInUse(intree.ErrInUse), []string{"Normal VolumeDelete", "in use"}},
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
	if event := strings.Join(s.events.events, "; "); !strings.Contains(event,
		"Normal VolumeFailedRecycle: Volume is used by pods: ns/a,ns/b") {
		t.Errorf("event %q", event)
	}
}
