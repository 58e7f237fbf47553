package controller

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// sent sends a write as often as it may be sent for the time, and returns how often.
func (r *Repeats) sent(t *testing.T, effect string, during time.Duration) int {
	t.Helper()
	count, end := 0, time.Now().Add(during)
	for time.Now().Before(end) {
		var reverted *RevertedError
		if err := r.Check("uid", []byte(effect)); errors.As(err, &reverted) {
			<-time.After(reverted.After)
			continue
		}
		r.Record("uid", []byte(effect))
		count++
	}
	return count
}

func TestPausesBetweenEqualWritesDouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Repeats{}
		if got := r.sent(t, "a", 25*time.Second); got != 7 { // at 0, 0, 0, 1, 3, 7 and 15 seconds
			t.Errorf("%d writes in 25 seconds", got)
		}
		if err := r.Check("other", []byte("a")); err != nil {
			t.Errorf("the write of another object: %v", err)
		}
		if got := r.sent(t, "a", 2*time.Hour); got < 20 || got > 40 {
			t.Errorf("%d writes in two hours, with pauses of at most five minutes", got)
		}
	})
}

func TestRepeatAfterTenMinutesIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Repeats{}
		for range unpausedRepeats {
			r.Record("uid", []byte("a"))
		}
		if r.Check("uid", []byte("a")) == nil {
			t.Error("the fourth write does not wait")
		}
		<-time.After(repeatIsForgotten + time.Second)
		if err := r.Check("uid", []byte("a")); err != nil {
			t.Errorf("after ten minutes: %v", err)
		}
	})
}

func TestMemoryOfWritesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Repeats{}
		for i := range 100 {
			r.Record("uid", []byte{byte(i)})
			<-time.After(time.Minute)
		}
		if known := len(r.recent) + len(r.earlier); known > 25 {
			t.Errorf("%d writes of 100 minutes are known", known)
		}
		for i := range 100 {
			uid := types.UID(rune(i))
			r.Record(uid, []byte("a"))
			r.Record(uid, []byte("a"))
			<-time.After(time.Minute)
		}
		if known := len(r.effects); known > 25 {
			t.Errorf("the effects of %d writes of 100 minutes are known", known)
		}
	})
}
