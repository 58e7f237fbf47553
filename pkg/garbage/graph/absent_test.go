package graph_test

import (
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// References can name one UID at any number of places. Places that no reference names any more are forgotten.
func TestAbsencesOfOneOwnerAreBounded(t *testing.T) {
	w := newWorld()
	w.observe(configMaps, "owner")
	for i := range 100 {
		place, dependent := "place-"+strconv.Itoa(i), "dependent-"+strconv.Itoa(i)
		w.observe(pods, dependent, ownedBy(configMaps, "owner", func(r *metav1.OwnerReference) { r.Name = place }))
		w.Deleted("owner", at(configMaps, "ns", place))
		if !w.state(t, dependent).Absent {
			t.Fatalf("no owner is at %s", place)
		}
	}
	if state := w.state(t, "dependent-0"); !state.Absent || state.Unverified {
		t.Errorf("after 100 places: %+v", state)
	}
	for i := range 100 {
		w.observe(pods, "dependent-"+strconv.Itoa(i))
	}
	for i := range 100 {
		place := "later-" + strconv.Itoa(i)
		w.observe(pods, place, ownedBy(configMaps, "owner", func(r *metav1.OwnerReference) { r.Name = place }))
		w.Deleted("owner", at(configMaps, "ns", place))
	}
	w.observe(pods, "dependent-0", ownedBy(configMaps, "owner", func(r *metav1.OwnerReference) { r.Name = "place-0" }))
	if state := w.state(t, "dependent-0"); !state.Unverified {
		t.Errorf("a place that no reference named is still known: %+v", state)
	}
}
