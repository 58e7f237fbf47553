package leader

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

// A proxy answers the renewal with 404, and the creation that follows fails. The elector then sends the event that it no
// longer leads.
func TestFailedCreationOfLeaseCausesNoPanic(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("create", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	lock := resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: "kube-system", Name: "program"},
		Client:     leaseGetter{client.CoordinationV1(), newTestTerm("pod"), lasting.RenewDeadline.Duration},
		LockConfig: resourcelock.ResourceLockConfig{Identity: "pod", EventRecorder: record.NewFakeRecorder(1)},
	}
	if err := lock.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "pod"}); err == nil {
		t.Fatal("the creation succeeds")
	}
	lock.RecordEvent("stopped leading")
	client.ClearActions()
	err := lock.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "pod"})
	if err == nil || len(client.Actions()) > 0 {
		t.Errorf("a lease that was never read is written: %v, %v", err, client.Actions())
	}
}
