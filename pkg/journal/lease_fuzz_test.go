package journal_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

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
		if Unbroken(read, current) && (read.LeaderLease != current.LeaderLease || read.Transitions > current.Transitions && lease != "") {
			t.Errorf("custody from %v to %v is unbroken", read, current)
		}
		if read.Precedes(current) && (current.Precedes(read) || Unbroken(current, read)) {
			t.Errorf("%v precedes %v, and the reverse", read, current)
		}
	})
}

// Every Lease of a journal has a valid name and belongs to this journal alone.
func FuzzLeaseName(f *testing.F) {
	f.Add("csi.example.com", "node-1", "csi.example.com", "", 0)
	f.Add("csi.example.com-node-1", "", "csi.example.com", "node-1", 12)
	f.Add("", "", "\xff", "/", -1)
	f.Add(strings.Repeat("x", 300), "", "csi-0123abcd", "", 1<<40)
	f.Fuzz(func(t *testing.T, driver, node, otherDriver, otherNode string, number int) {
		journal, other := Journal{Namespace: "ns", Driver: driver, Node: node}, Journal{Namespace: "ns", Driver: otherDriver, Node: otherNode}
		if number < 0 {
			return
		}
		for _, kind := range []Kind{KindActive, KindUnresolved} {
			lease := journal.Lease(kind, number, "me", Custody{Written: 1}, nil)
			if flaws := validation.IsDNS1123Subdomain(lease.Name); len(flaws) > 0 {
				t.Errorf("Lease of %v is named %q: %v", journal, lease.Name, flaws)
			}
			if got, n, ours := journal.KindOf(lease); got != kind || n != number || !ours {
				t.Errorf("Lease %q of %v is of kind %v, number %d, ours %v", lease.Name, journal, got, n, ours)
			}
			if _, _, ours := other.KindOf(lease); ours && other != journal && other.Owner() != journal.Owner() {
				t.Errorf("Lease %q of %v is one of %v", lease.Name, journal, other)
			}
			if other != journal && other.LeaseName(kind, number) == lease.Name {
				t.Errorf("%v and %v share Lease %q", journal, other, lease.Name)
			}
			if found, _, _, is := Find(lease); !strings.Contains(driver, "/") && (!is || found != journal) {
				t.Errorf("Lease %q of %v is found as %v, %v", lease.Name, journal, found, is)
			}
		}
	})
}
