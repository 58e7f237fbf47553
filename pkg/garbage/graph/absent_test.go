package graph_test

import (
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// References can name one UID at any number of places: the first ones are forgotten, and read again.
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
	if state := w.state(t, "dependent-0"); !state.Unverified {
		t.Errorf("after 100 places: %+v", state)
	}
}
