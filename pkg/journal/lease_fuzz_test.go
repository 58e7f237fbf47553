package journal_test

import (
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"

	. "github.com/exeunt-io/exeunt/pkg/journal"
)

// Custody is the same after a round trip, an unreadable custody is unbroken with none, and
// two terms never precede each other.
func FuzzCustody(f *testing.F) {
	f.Add(`{"leaderLease":"u","transitions":3}`, "u", int32(4), int64(0))
	f.Add(`{"written":9223372036854775807}`, "", int32(0), int64(-9223372036854775808))
	f.Add(`{"leaderLease":"unknown"}`, "unknown", int32(0), int64(0))
	f.Add("", "", int32(-2147483648), int64(1))
	f.Fuzz(func(t *testing.T, text, lease string, transitions int32, written int64) {
		read := ParseCustody(text)
		if again := ParseCustody(read.String()); again != read {
			t.Errorf("custody %q is %v, after a round trip %v", text, read, again)
		}
		current := Custody{LeaderLease: types.UID(lease), Transitions: transitions, Written: written}
		if utf8.ValidString(lease) && (lease != "" || written > 0) && ParseCustody(current.String()) != current {
			t.Errorf("custody %v is %v after a round trip", current, ParseCustody(current.String()))
		}
		if Unbroken(read, current) && (read.LeaderLease != current.LeaderLease || read.Transitions > current.Transitions &&
			lease != "") {
			t.Errorf("custody from %v to %v is unbroken", read, current)
		}
		if read.Precedes(current) && (current.Precedes(read) || Unbroken(current, read)) {
			t.Errorf("%v precedes %v, and the reverse", read, current)
		}
	})
}
