package reclaimer

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
)

// The fake API server ignores field selectors, so there are events of one pod at a time.
func TestPodEventsAreRepeatedOnce(t *testing.T) {
	volume := releasedVolume(v1.PersistentVolumeReclaimRecycle)
	s := newFixture(t, volume)
	defer s.shutDown()
	for try := range 5 {
		pod := (&intree.HostPath{}).RecyclerPod(volume)
		said := &v1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "said", UID: types.UID(fmt.Sprint(try))},
			Message:    fmt.Sprintf("try %d", try), Type: v1.EventTypeNormal,
		}
		if try > 0 {
			s.must(s.Client.CoreV1().Events(pod.Namespace).Delete(t.Context(), said.Name, metav1.DeleteOptions{}))
		}
		_, err := s.Client.CoreV1().Events(pod.Namespace).Create(t.Context(), said, metav1.CreateOptions{})
		s.must(err)
		for range 3 {
			s.repeatPodEvents(t.Context(), observation{volume: volume, pod: pod})
		}
	}
	if reported := len(s.memory.Get(volume.UID).reported); reported != 1 {
		t.Errorf("%d events are remembered, of 5 pods of which 4 are gone", reported)
	}
	var want []string
	for try := range 5 {
		want = append(want, fmt.Sprintf("Normal RecyclerPod: Recycler pod: try %d", try))
	}
	if !slices.Equal(s.events.events, want) {
		t.Errorf("events %q, want %q", s.events.events, want)
	}
}
