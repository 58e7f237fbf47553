package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// apiServer answers lists of fixed objects, and records all other requests.
type apiServer struct {
	t *testing.T
	// refusals is the number of lists of claims that fail first.
	refusals int
	// claims are the events of the watch of claims.
	claims   chan metav1.WatchEvent
	requests chan string
	served   chan struct{} // closed once claims were listed
	// items are the objects of each resource.
	items map[string][]any
}

var (
	claimOfVolume = &v1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "claim", ResourceVersion: "5",
			Finalizers:  []string{"kubernetes.io/pvc-protection"},
			Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
		Spec:   v1.PersistentVolumeClaimSpec{VolumeName: "volume"},
		Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound},
	}
	waitingClaim = &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "waits", UID: "waits", ResourceVersion: "5",
			Finalizers: []string{"kubernetes.io/pvc-protection"}},
		Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending},
	}
	boundVolume = &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "volume", UID: "volume", ResourceVersion: "5",
			Finalizers: []string{"kubernetes.io/pv-protection"}},
		Spec: v1.PersistentVolumeSpec{
			ClaimRef:                      &v1.ObjectReference{Namespace: "ns", Name: "claim", UID: "claim"},
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete,
		},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeBound},
	}
)

func newAPIServer(t *testing.T, items map[string][]any) *apiServer {
	return &apiServer{t: t, items: items, claims: make(chan metav1.WatchEvent), requests: make(chan string, 1000),
		served: make(chan struct{})}
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodGet && query.Get("sendInitialEvents") == "true":
		http.Error(w, "no list by watching here", http.StatusUnprocessableEntity)
	case r.Method == http.MethodGet && query.Get("watch") != "":
		s.watch(w, r, resource)
	case r.Method == http.MethodGet && (resource == "persistentvolumeclaims" || resource == "persistentvolumes" ||
		resource == "storageclasses" || resource == "pods"):
		s.list(w, resource)
	case r.URL.Path == "/version": // the probe of WaitForAPIServer
		s.answer(w, map[string]string{})
	case r.Method == http.MethodGet && resource == "claim":
		s.requests <- "GET claim"
		s.answer(w, claimOfVolume)
	case r.Method == http.MethodPost && resource == "events":
		s.requests <- "POST event"
		http.Error(w, "no events", http.StatusForbidden)
	default:
		s.requests <- r.Method + " " + r.URL.Path
		http.Error(w, "not here", http.StatusNotFound)
	}
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, resource string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flusher := w.(http.Flusher)
	flusher.Flush()
	events := s.claims
	if resource != "persistentvolumeclaims" {
		events = nil
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case event := <-events:
			_ = json.NewEncoder(w).Encode(event)
			flusher.Flush()
		}
	}
}

func (s *apiServer) list(w http.ResponseWriter, resource string) {
	kinds := map[string]string{"persistentvolumeclaims": "PersistentVolumeClaimList",
		"persistentvolumes": "PersistentVolumeList", "storageclasses": "StorageClassList", "pods": "PodList"}
	version := map[bool]string{true: "storage.k8s.io/v1", false: "v1"}[resource == "storageclasses"]
	if resource == "persistentvolumeclaims" {
		if s.refusals--; s.refusals >= 0 {
			s.requests <- "LIST claims"
			http.Error(w, "not now", http.StatusInternalServerError)
			return
		}
		close(s.served)
	}
	s.answer(w, map[string]any{"kind": kinds[resource], "apiVersion": version,
		"metadata": map[string]string{"resourceVersion": "10"}, "items": s.items[resource]})
}

func (s *apiServer) answer(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object)
}

// optionsFor returns the options of a program that uses this server.
func optionsFor(t *testing.T, s *apiServer) *options {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],`+
		`"users":[{"name":"u","user":{}}],"clusters":[{"name":"c","cluster":{"server":%q}}]}`, server.URL)
	if err := os.WriteFile(kubeconfig, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	runner, err := newOptions()
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("pv-controller", pflag.ContinueOnError)
	runner.AddFlags(flags)
	if err := flags.Parse([]string{"--kubeconfig=" + kubeconfig, "--leader-elect=false",
		"--kube-api-content-type=application/json"}); err != nil {
		t.Fatal(err)
	}
	if err := runner.(*options).check(); err != nil {
		t.Fatal(err)
	}
	return runner.(*options)
}

// runAgainst runs the program until the test ends.
func runAgainst(t *testing.T, s *apiServer) {
	t.Helper()
	options := optionsFor(t, s)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- options.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// next returns the next request beside lists and watches.
func (s *apiServer) next() string {
	s.t.Helper()
	select {
	case what := <-s.requests:
		return what
	case <-time.After(time.Minute):
		s.t.Fatal("the program sends no further request")
		return ""
	}
}

// A cache without its first list looks as if all claims were deleted; so does a cache after
// a wrong answer of the API server. The live read finds the claim, and nothing is released.
func TestEmptyCacheOfClaimsReleasesNothing(t *testing.T) {
	s := newAPIServer(t, map[string][]any{"persistentvolumeclaims": {claimOfVolume, waitingClaim},
		"persistentvolumes": {boundVolume}})
	s.refusals = 2
	runAgainst(t, s)
	for range 2 {
		if what := s.next(); what != "LIST claims" {
			t.Fatalf("request %s before claims were listed", what)
		}
	}
	<-s.served
	if what := s.next(); what != "POST event" { // about the waiting claim
		t.Errorf("request %s after the caches have synced, want the event of the waiting claim", what)
	}
	for range 3 {
		s.sendEvent("DELETED")
		if what := s.next(); what != "GET claim" {
			t.Errorf("request %s for a missing claim, want one live read of the claim", what)
		}
		s.sendEvent("ADDED")
	}
}

// sendEvent sends an event of the claim to the watch of claims.
func (s *apiServer) sendEvent(what string) {
	event := metav1.WatchEvent{Type: what}
	event.Object.Object = claimOfVolume
	s.claims <- event
}
