package blocker_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	. "github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

// The state of a Lease only grows older, a held Lease was renewed, and the Lease is not changed.
func FuzzJudgeLease(f *testing.F) {
	fuzzobj.AddSeeds(f, 40, 16, int64(30))
	f.Fuzz(func(t *testing.T, data []byte, seconds int64) {
		d := fuzzobj.New(data)
		lease, now := d.Lease("leader"), d.Time()
		before := lease.DeepCopy()
		state := JudgeLease(lease, now)
		if state != LeaseHeld && state != LeaseExpired && state != LeaseExpiredTwice {
			t.Errorf("state of %v = %v", lease.Spec, state)
		}
		if LeaseHolder(lease) == "" && state == LeaseHeld {
			t.Errorf("state of a Lease without a holder = %v", state)
		}
		age := map[LeaseState]int{LeaseHeld: 0, LeaseExpired: 1, LeaseExpiredTwice: 2}
		if later := now.Add(time.Duration(max(0, min(seconds, 1<<31))) * time.Second); age[JudgeLease(lease,
			later)] < age[state] {
			t.Errorf("state of %v is %v, and %v at the later time %v", lease.Spec, state, JudgeLease(lease, later), later)
		}
		if diff := cmp.Diff(before, lease); diff != "" {
			t.Errorf("changed the Lease:\n%s", diff)
		}
	})
}

// Names of reasons and verdicts are read back only as themselves, and the text of an event
// fits into an event.
func FuzzTexts(f *testing.F) {
	f.Add("waiting", "PodUsesClaim", 3)
	f.Add("", "", -1)
	f.Add(strings.Repeat("日", 500), "x", 1)
	f.Fuzz(func(t *testing.T, one, two string, number int) {
		for _, text := range []string{one, two} {
			var verdict Verdict
			if err := verdict.UnmarshalText([]byte(text)); err == nil && verdict.String() != text {
				t.Errorf("verdict %q is read as %v", text, verdict)
			}
			var reason Reason
			if err := reason.UnmarshalText([]byte(text)); err == nil && reason.String() != text {
				t.Errorf("reason %q is read as %v", text, reason)
			}
		}
		if !utf8.ValidString(one) || !utf8.ValidString(two) {
			return // the API server has UTF-8 only
		}
		message := EventText(Reason(number), one, two)
		if len(message) > 1024 || !utf8.ValidString(message) || !strings.HasPrefix(message, Reason(number).String()) {
			t.Errorf("event text of %d bytes: %q", len(message), message)
		}
	})
}
