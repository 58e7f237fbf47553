package garbagecollector

import (
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// denials are answers that an admission webhook may give to any write of an object that lives. The API server hands
// its code and details on.
var denials = map[string]*metav1.Status{
	"404":                           denial(http.StatusNotFound, metav1.StatusReasonNotFound),
	"409":                           denial(http.StatusConflict, metav1.StatusReasonConflict),
	"410":                           denial(http.StatusGone, metav1.StatusReasonGone),
	"422 without causes":            denial(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid),
	"403":                           denial(http.StatusForbidden, metav1.StatusReasonForbidden),
	"400":                           denial(http.StatusBadRequest, metav1.StatusReasonBadRequest),
	"409 that says that it existed": denial(http.StatusConflict, metav1.StatusReasonAlreadyExists),
}

func denial(code int, reason metav1.StatusReason) *metav1.Status {
	status := failure(code, reason, "configmaps", "middle")
	status.Message = `admission webhook "w.example.com" denied the request: configmaps "middle" not found`
	return status
}

// withMiddle returns a collector whose ConfigMap middle is to be deleted or patched, because owners of it are absent.
// The API server has it, and answers the write with the status.
func withMiddle(t *testing.T, write string, status int, answer any, owners ...string) (*apiServer, *Collector) {
	t.Helper()
	s := newAPIServer(t)
	middle := configMap("middle", "5", owners...)
	s.answer("GET "+configMapPath+"middle", http.StatusOK, partial(middle))
	s.answer("GET "+configMapPath+"absent", http.StatusNotFound,
		failure(http.StatusNotFound, metav1.StatusReasonNotFound, "configmaps", "absent"))
	s.answer(write+" "+configMapPath+"middle", status, answer)
	s.answer("DELETE "+dependentPath, http.StatusOK, &metav1.Status{})
	c := connected(t, s, Config{Clock: clocktesting.NewFakeClock(time.Unix(0, 0))})
	c.observe(configMap("live", "1"), middle, configMap("dependent", "6", "middle"))
	return s, c
}

func TestRefusedWriteIsNoAbsence(t *testing.T) {
	for write, owners := range map[string][]string{"PATCH": {"live", "absent"}, "DELETE": {"absent"}} {
		for name, status := range denials {
			t.Run(write+" "+name, func(t *testing.T) {
				s, c := withMiddle(t, write, int(status.Code), status, owners...)
				if err := c.worker.reconcile(t.Context(), "middle"); err == nil {
					t.Error("the refused write is not repeated")
				}
				if got := s.count(write + " " + configMapPath + "middle"); got != 1 {
					t.Errorf("%d writes without a backoff", got)
				}
				if err := c.worker.reconcile(t.Context(), "dependent"); err != nil || s.count("DELETE "+dependentPath) > 0 {
					t.Errorf("the dependent of an object that lives is deleted: %v, %v", err, s.requests)
				}
				if !c.graph.Has("middle") {
					t.Error("the object that lives is forgotten")
				}
			})
		}
	}
}

func TestObjectGoneAtRefusedWriteIsForgotten(t *testing.T) {
	status := denials["404"]
	s, c := withMiddle(t, "DELETE", int(status.Code), status, "absent")
	s.answer("GET "+configMapPath+"middle", http.StatusNotFound,
		failure(http.StatusNotFound, metav1.StatusReasonNotFound, "configmaps", "middle"))
	if err := c.worker.reconcile(t.Context(), "middle"); err != nil || c.graph.Has("middle") {
		t.Errorf("reconcile = %v, known %v", err, c.graph.Has("middle"))
	}
}

// A proxy, or an aggregated API server, may answer with another object.
func TestAnswerAboutOtherObjectIsNoSuccess(t *testing.T) {
	other := configMap("middle", "9")
	other.UID = "other"
	for write, owners := range map[string][]string{"PATCH": {"live", "absent"}, "DELETE": {"absent"}} {
		t.Run(write, func(t *testing.T) {
			_, c := withMiddle(t, write, http.StatusOK, partial(other), owners...)
			if err := c.worker.reconcile(t.Context(), "middle"); err == nil {
				t.Error("the write is not repeated")
			}
			if c.graph.Has("other") || !c.graph.Has("middle") {
				t.Error("the answer changed the graph")
			}
		})
	}
}

// An aggregated API server may answer a deletion before it carries it out, or without doing so.
func TestAnswerOfAggregatedAPIServerIsNoAbsence(t *testing.T) {
	widgets, path := aggregatedWidgets()
	s := newAPIServer(t)
	middle := configMap("dependent", "5", "absent")
	s.answer("GET "+path, http.StatusOK, partial(middle))
	s.answer("GET "+configMapPath+"absent", http.StatusNotFound,
		failure(http.StatusNotFound, metav1.StatusReasonNotFound, "configmaps", "absent"))
	s.answer("DELETE "+path, http.StatusOK, &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{UID: "dependent"}})
	c := connected(t, s, Config{Clock: clocktesting.NewFakeClock(time.Unix(0, 0))})
	c.change(func(g *graph.Graph) {
		g.Serve(widgets)
		g.Observe(widgets, &middle)
	})
	err := c.worker.reconcile(t.Context(), "dependent")
	if !c.graph.Has("dependent") {
		t.Errorf("the object counts as gone without a read: %v, %v", err, s.requests)
	}
}

// The live read, or the event DELETED, of an owner was mistaken, or the owner was restored: its controller goes on.
func TestOwnerSeenAfterAbsenceIsReadAgain(t *testing.T) {
	s, c := withMiddle(t, "PATCH", http.StatusOK, partial(configMap("middle", "9", "live")), "live", "absent")
	c.change(func(g *graph.Graph) {
		g.Deleted("middle", graph.Coordinates{GroupKind: configMaps.GroupKind(), Namespace: "ns", Name: "middle"})
	})
	s.answer("GET "+configMapPath+"middle", http.StatusOK, partial(configMap("middle", "8", "live")))
	c.observe(configMap("middle", "8", "live"))
	if err := c.worker.reconcile(t.Context(), "dependent"); err != nil || s.count("DELETE "+dependentPath) > 0 {
		t.Errorf("reconcile = %v: the dependent of an owner that was seen again is deleted: %v", err, s.requests)
	}
	if got := s.count("GET " + configMapPath + "middle"); got == 0 {
		t.Error("the owner counts as live without a read: the event may be late")
	}
}
