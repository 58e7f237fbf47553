package main

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/internal/program"
)

func TestJournalIsInTheNamespaceOfTheServiceAccount(t *testing.T) {
	for name, tc := range map[string]struct {
		user, pod, flag string
		elected         bool
		want            string
	}{
		"outside of a cluster, an account":         {user: "system:serviceaccount:storage:provisioner", want: "storage"},
		"outside of a cluster, an administrator":   {user: "admin", want: "default"},
		"in a pod":                                 {user: "system:serviceaccount:storage:provisioner", pod: "other", want: "other"},
		"as the flag says":                         {user: "system:serviceaccount:storage:provisioner", flag: "leases", want: "leases"},
		"beside the leader lease":                  {user: "system:serviceaccount:storage:provisioner", elected: true, want: "default"},
		"an account with a name that is not whole": {user: "system:serviceaccount:storage", want: "default"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("POD_NAMESPACE", tc.pod)
			client := fake.NewClientset()
			client.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: tc.user}}}, nil
			})
			w := &wiring{clients: &program.Clients{Objects: client}, options: &options{election: electionOptions{enabled: tc.elected, namespace: tc.flag}}}
			if got, err := w.journalNamespace(t.Context()); err != nil || got != tc.want {
				t.Errorf("namespace %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

func TestJournalIsNotKeptElsewhereWhileTheServerIsAway(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	client := fake.NewClientset()
	client.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewServiceUnavailable("away")
	})
	w := &wiring{clients: &program.Clients{Objects: client}, options: &options{}}
	if got, err := w.journalNamespace(t.Context()); err == nil {
		t.Errorf("namespace %q, want an error", got)
	}
}
