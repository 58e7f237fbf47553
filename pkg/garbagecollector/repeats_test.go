package garbagecollector

import (
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// foreground returns the object while it is deleted in the foreground.
func foreground(object metav1.ObjectMeta) metav1.ObjectMeta {
	return terminating(object, metav1.FinalizerDeleteDependents)
}

// A webhook undoes or refuses each write, and other programs change the object all the time, so that an event follows.
func TestWriteWithoutLastingEffectIsPaused(t *testing.T) {
	same := func(object metav1.ObjectMeta) metav1.ObjectMeta { return object }
	for name, tc := range map[string]struct {
		write  string
		status int
		owners []string
		change func(metav1.ObjectMeta) metav1.ObjectMeta
	}{
		"a reference is put back":  {"PATCH", http.StatusOK, []string{"live", "absent"}, same},
		"a finalizer is put back":  {"PATCH", http.StatusOK, nil, foreground},
		"a patch is refused":       {"PATCH", http.StatusForbidden, []string{"live", "absent"}, same},
		"a deletion is refused":    {"DELETE", http.StatusForbidden, []string{"absent"}, same},
		"a deletion has no effect": {"DELETE", http.StatusOK, []string{"absent"}, same},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t)
			s.lack("absent")
			c := connected(t, s, Config{})
			c.observe(configMap("live", "1"), tc.change(configMap("middle", "10", tc.owners...)))
			c.deleted("absent")
			pass(c, "middle")
			version := 10
			s.handle(tc.write+" "+configMapPath+"middle", func(w http.ResponseWriter, _ *http.Request) {
				if tc.status != http.StatusOK {
					respond(w, tc.status, denial(tc.status, metav1.StatusReasonForbidden))
					return
				}
				version++ // one write at a time
				respond(w, http.StatusOK, partial(tc.change(configMap("middle", strconv.Itoa(version), tc.owners...))))
			})
			var err error
			for range 30 {
				err = c.worker.reconcile(t.Context(), "middle")
				version++
				c.observe(tc.change(configMap("middle", strconv.Itoa(version), tc.owners...)))
			}
			var reverted *controller.RevertedError
			if got := s.count(tc.write + " " + configMapPath + "middle"); got > 5 || !errors.As(err, &reverted) {
				t.Errorf("%d writes, then %v", got, err)
			}
		})
	}
}

// A webhook takes the change back, so that nothing is stored and no event follows: without a retry the dependent keeps its
// reference, and the deleted owner its finalizer, for ever.
func TestUndoneWriteWithoutEventIsRepeated(t *testing.T) {
	for name, middle := range map[string]metav1.ObjectMeta{
		"reference": configMap("middle", "10", "live", "absent"),
		"finalizer": foreground(configMap("middle", "10")),
	} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t)
			s.lack("absent")
			c := connected(t, s, Config{})
			c.observe(configMap("live", "1"), middle)
			c.deleted("absent")
			pass(c, "middle")
			answer := middle
			s.handle("PATCH "+configMapPath+"middle",
				func(w http.ResponseWriter, _ *http.Request) { respond(w, http.StatusOK, partial(answer)) })
			var reverted *controller.RevertedError
			if err := c.worker.reconcile(t.Context(), "middle"); !errors.As(err, &reverted) {
				t.Errorf("reconcile = %v, so that nothing judges the object again", err)
			}
			answer = configMap("middle", "11", "live")
			if err := c.worker.reconcile(t.Context(), "middle"); err != nil {
				t.Errorf("reconcile = %v once the write has its effect", err)
			}
			if sent := s.count("PATCH " + configMapPath + "middle"); sent != 2 {
				t.Errorf("%d writes, want 2", sent)
			}
		})
	}
}

// Owners go one after the other: the patches look the same, and are not.
func TestReferencesOfManyOwnersAreRemovedWithoutPause(t *testing.T) {
	s := newAPIServer(t)
	c := connected(t, s, Config{})
	owners := []string{"live"}
	for i := range 10 {
		owners = append(owners, "absent-"+strconv.Itoa(i))
	}
	c.observe(configMap("live", "1"), configMap("middle", "10", owners...))
	version := 10
	s.handle("PATCH "+configMapPath+"middle", func(w http.ResponseWriter, _ *http.Request) {
		version++
		owners = append(owners[:1:1], owners[2:]...)
		respond(w, http.StatusOK, partial(configMap("middle", strconv.Itoa(version), owners...)))
	})
	for i := range 10 {
		name := "absent-" + strconv.Itoa(i)
		for _, other := range owners[1:] {
			if other != name {
				c.observe(configMap(other, strconv.Itoa(version)))
			}
		}
		s.lack(name)
		c.deleted(name)
		if err := c.worker.reconcile(t.Context(), "middle"); err != nil {
			t.Fatal(i, err)
		}
	}
	if len(owners) != 1 {
		t.Errorf("owners %v", owners)
	}
}

func TestRepeatedWriteWaitsForItsPause(t *testing.T) {
	c := New(Config{Clock: clock.RealClock{}})
	c.worker.finish(t.Context(), "one", &controller.RevertedError{After: time.Hour})
	if c.worker.queue.NumRequeues("one") != 0 || c.worker.queue.Len() != 0 {
		t.Error("the object is not judged after its pause alone")
	}
}

// Otherwise an object would wait for minutes after its owner can be read again.
func TestUnreadableOwnerIsReadSoonerThanUndoneWriteIsRepeated(t *testing.T) {
	c := New(Config{Clock: clock.RealClock{}})
	c.worker.finish(t.Context(), "one", errors.Join(errors.New("unreadable"), &controller.RevertedError{After: time.Hour}))
	if c.worker.queue.NumRequeues("one") != 1 {
		t.Error("the object is judged after the pause of the write only")
	}
}
