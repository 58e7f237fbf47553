package garbagecollector

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// answered returns the metadata of the object with the UID u, as a write is answered.
func answered(change func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "u",
		DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}, DeletionGracePeriodSeconds: new(int64)}}
	change(object)
	return object
}

func TestAnswerSaysThatObjectIsGone(t *testing.T) {
	status := func(result string, uid types.UID) *metav1.Status {
		return &metav1.Status{Status: result, Details: &metav1.StatusDetails{Name: "one", UID: uid}}
	}
	grace := int64(30)
	for name, tc := range map[string]struct {
		answer runtime.Object
		want   bool
	}{
		"status":                   {status(metav1.StatusSuccess, "u"), true},
		"status of another object": {status(metav1.StatusSuccess, "v"), false},
		"status without a UID":     {status(metav1.StatusSuccess, ""), false},
		"failure":                  {status(metav1.StatusFailure, "u"), false},
		"status without details":   {&metav1.Status{Status: metav1.StatusSuccess}, false},
		"object without anything":  {answered(func(*metav1.PartialObjectMetadata) {}), true},
		"object with a finalizer":  {answered(func(o *metav1.PartialObjectMetadata) { o.Finalizers = []string{"example.com/f"} }), false},
		"object that ends slowly":  {answered(func(o *metav1.PartialObjectMetadata) { o.DeletionGracePeriodSeconds = &grace }), false},
		"namespace":                {answered(func(o *metav1.PartialObjectMetadata) { o.DeletionGracePeriodSeconds = nil }), false},
		"object that lives":        {answered(func(o *metav1.PartialObjectMetadata) { o.DeletionTimestamp = nil }), false},
		"another object":           {answered(func(o *metav1.PartialObjectMetadata) { o.UID = "v" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := saysGone(tc.answer, "u"); got != tc.want {
				t.Errorf("gone: %v, want %v", got, tc.want)
			}
		})
	}
}
