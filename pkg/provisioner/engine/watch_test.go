package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// The journal's Leases are watched for approvals by "exeunt journal finish", and for changes of
// others to the active Leases. A leader often begins while the API server is in trouble.
func TestJournalIsWatchedAfterAFailedRequest(t *testing.T) {
	e := newEngine(t, false) // its queues never end
	synctest.Test(t, func(t *testing.T) {
		var failed, watched atomic.Bool
		client := e.Client.(*fake.Clientset)
		client.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
			if !failed.Swap(true) {
				return true, nil, apierrors.NewInternalError(errors.New("scripted"))
			}
			return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}, nil
		})
		client.PrependReactor("list", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			watched.Store(true)
			return false, nil, nil
		})
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		defer stop()
		e.watchJournal(ctx)
		if !watched.Load() {
			t.Error("the Leases of the journal are not watched for the whole term: one request for the rights has failed")
		}
	})
}
