package load

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
)

func TestViewFollowsClaimsAndTheirVolumes(t *testing.T) {
	client := fake.NewClientset()
	v, err := openView(t.Context(), client, "ns")
	if err != nil {
		t.Fatal(err)
	}
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim"}}
	volumes, claims := client.CoreV1().PersistentVolumes(), client.CoreV1().PersistentVolumeClaims("ns")
	for name, namespace := range map[string]string{"own": "ns", "foreign": "other"} {
		volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{Namespace: namespace}}}
		if _, err := volumes.Create(t.Context(), volume, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := claims.Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	claim.Spec.VolumeName, claim.Status.Phase = "own", v1.ClaimBound
	for range 2 { // a further event of a bound claim counts nothing
		if _, err := claims.Update(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.awaitBound(t.Context(), 1); err != nil || v.volumeOf("claim") != "own" {
		t.Errorf("the claim has the volume %q, %v", v.volumeOf("claim"), err)
	}
	if err := errors.Join(volumes.Delete(t.Context(), "own", metav1.DeleteOptions{}),
		claims.Delete(t.Context(), "claim", metav1.DeleteOptions{})); err != nil {
		t.Fatal(err)
	}
	if err := v.awaitGone(t.Context()); err != nil || v.bound != 0 {
		t.Errorf("%d claims are bound after the deletion, %v", v.bound, err)
	}
}

func TestWaitThatFailsSaysWhatExists(t *testing.T) {
	v, err := openView(t.Context(), fake.NewClientset(), "ns")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := v.awaitBound(ctx, 2); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "0 claims") {
		t.Errorf("awaitBound returned %v", err)
	}
}

func TestIdleWatchIsOpenedAgain(t *testing.T) {
	versions := make(chan string)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		select {
		case versions <- request.URL.Query().Get("resourceVersion"):
		case <-request.Context().Done():
		}
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	v := &view{watched: newWatched(map[string]string{claimResource: "7"}), claims: map[string]*v1.PersistentVolumeClaim{}}
	opened := make(chan error, 1)
	go func() { opened <- watchIdly(ctx, v, client.CoreV1().RESTClient(), claimResource) }()
	if first := <-versions; first != "7" {
		t.Errorf("the first watch begins at %q", first)
	}
	v.note(claimResource, watch.Added, &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}})
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	<-versions // perhaps asked for before the event
	if third := <-versions; third != "9" {
		t.Errorf("a later watch begins at %q", third)
	}
}
