package controller

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// A stopped worker finishes its object, and reports it.
func TestEventsAreSentAfterTheContextEnded(t *testing.T) {
	client, sent := fake.NewClientset(), make(chan struct{}, 1)
	client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		sent <- struct{}{}
		return true, &v1.Event{}, nil
	})
	ctx, end := context.WithCancel(t.Context())
	recorder, stop := Recorder(ctx, client, "test")
	defer stop()
	end()
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim"}}
	recorder.Event(claim, v1.EventTypeNormal, "Finished", "the work was finished")
	select {
	case <-sent:
	case <-time.After(5 * time.Second):
		t.Error("the event was dropped")
	}
}
