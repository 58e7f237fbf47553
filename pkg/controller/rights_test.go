package controller_test

import (
	"errors"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

var leases = coordinationv1.Resource("leases")

// review answers access reviews: allowed lists the allowed verbs.
func review(err error, allowed ...string) *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor("create", "selfsubjectaccessreviews",
		func(action clienttesting.Action) (bool, runtime.Object, error) {
			asked := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).
				Spec.ResourceAttributes
			answer := &authorizationv1.SelfSubjectAccessReview{}
			for _, verb := range allowed {
				if verb == asked.Verb && asked.Namespace == "ns" && asked.Group == leases.Group &&
					asked.Resource == leases.Resource {
					answer.Status.Allowed = true
				}
			}
			return true, answer, err
		})
	return client
}

func TestMayWatchNeedsListAndWatch(t *testing.T) {
	for name, tc := range map[string]struct {
		client *fake.Clientset
		may    bool
		fails  bool
	}{
		"both verbs":            {review(nil, "list", "watch"), true, false},
		"list only":             {review(nil, "list"), false, false},
		"watch only":            {review(nil, "watch"), false, false},
		"no verb":               {review(nil), false, false},
		"asking is forbidden":   {review(apierrors.NewForbidden(leases, "", errors.New("no"))), false, false},
		"API server is offline": {review(apierrors.NewServiceUnavailable("offline")), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			may, err := controller.MayWatch(t.Context(), tc.client, leases, "ns")
			if may != tc.may || (err != nil) != tc.fails {
				t.Errorf("MayWatch = %v, %v, want %v", may, err, tc.may)
			}
		})
	}
}

func TestServesFindsResourceOfVersion(t *testing.T) {
	classes := storagev1.SchemeGroupVersion.WithResource("volumeattributesclasses")
	for name, tc := range map[string]struct {
		version string
		served  []metav1.APIResource
		want    bool
	}{
		"served":          {"storage.k8s.io/v1", []metav1.APIResource{{Name: "storageclasses"}, {Name: "volumeattributesclasses"}}, true},
		"other resources": {"storage.k8s.io/v1", []metav1.APIResource{{Name: "storageclasses"}}, false},
		"other version":   {"storage.k8s.io/v1beta1", []metav1.APIResource{{Name: "volumeattributesclasses"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			client.Resources = []*metav1.APIResourceList{{GroupVersion: tc.version, APIResources: tc.served}}
			if got, err := controller.Serves(client.Discovery(), classes); err != nil || got != tc.want {
				t.Errorf("Serves = %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}
