package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEventIsAboutObject(t *testing.T) {
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", UID: "1",
		CreationTimestamp: metav1.NewTime(created)}}
	for name, tc := range map[string]struct {
		object corev1.ObjectReference
		at     time.Time
		want   bool
	}{
		"the same UID":                       {corev1.ObjectReference{UID: "1"}, created, true},
		"an earlier object of the name":      {corev1.ObjectReference{Kind: "PersistentVolume", UID: "0"}, created, false},
		"no UID":                             {corev1.ObjectReference{Kind: "PersistentVolume"}, created.Add(time.Second), true},
		"no UID, before the object":          {corev1.ObjectReference{Kind: "PersistentVolume"}, created.Add(-time.Second), false},
		"no UID, another kind with the name": {corev1.ObjectReference{Kind: "Pod"}, created.Add(time.Second), false},
	} {
		t.Run(name, func(t *testing.T) {
			event := corev1.Event{InvolvedObject: tc.object, LastTimestamp: metav1.NewTime(tc.at)}
			if got := isAbout(event, "PersistentVolume", volume); got != tc.want {
				t.Errorf("isAbout() = %v, want %v", got, tc.want)
			}
		})
	}
}
