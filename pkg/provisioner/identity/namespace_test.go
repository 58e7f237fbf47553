package identity

import (
	"net/http"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestJournalNamespace(t *testing.T) {
	for name, tc := range map[string]struct {
		user, pod, flag string
		elected         bool
		want            string
	}{
		"no pod, service account":         {user: "system:serviceaccount:storage:provisioner", want: "storage"},
		"no pod, administrator":           {user: "admin", want: "default"},
		"pod":                             {user: "system:serviceaccount:storage:provisioner", pod: "other", want: "other"},
		"flag":                            {user: "system:serviceaccount:storage:provisioner", flag: "leases", want: "leases"},
		"leader election, no pod":         {user: "system:serviceaccount:storage:provisioner", elected: true, want: "default"},
		"no pod, incomplete account name": {user: "system:serviceaccount:storage", want: "default"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("POD_NAMESPACE", tc.pod)
			client := fake.NewClientset()
			client.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: tc.user}}}, nil
			})
			if got, err := JournalNamespace(t.Context(), client, tc.elected, tc.flag); err != nil || got != tc.want {
				t.Errorf("namespace %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

func TestJournalNamespaceNeedsAnAnswerOfTheServer(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	client := fake.NewClientset()
	client.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewServiceUnavailable("away")
	})
	if got, err := JournalNamespace(t.Context(), client, false, ""); err == nil {
		t.Errorf("namespace %q, want an error", got)
	}
}

func TestUnknownPathIsNoOldAPIServer(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	for served, want := range map[bool]string{true: "", false: "default"} {
		client := fake.NewClientset()
		if client.Resources = []*metav1.APIResourceList{{GroupVersion: "authentication.k8s.io/v1"}}; served {
			client.Resources[0].APIResources = []metav1.APIResource{{Name: "selfsubjectreviews"}}
		}
		client.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewGenericServerResponse(http.StatusNotFound, "post",
				authenticationv1.Resource("selfsubjectreviews"), "", "404 page not found", 0, true)
		})
		if got, err := JournalNamespace(t.Context(), client, false, ""); got != want && err == nil || (err != nil) != served {
			t.Errorf("served %v: namespace %q, %v", served, got, err)
		}
	}
}
