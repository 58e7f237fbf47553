package journal_test

import (
	"fmt"
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	. "github.com/exeunt-io/exeunt/pkg/journal"
)

func TestUnbroken(t *testing.T) {
	const ten = 600
	for name, tc := range map[string]struct {
		recorded, current Custody
		want              bool
	}{
		"the same term":                      {Custody{LeaderLease: "a", Transitions: 5}, Custody{LeaderLease: "a", Transitions: 5}, true},
		"the next term":                      {Custody{LeaderLease: "a", Transitions: 5}, Custody{LeaderLease: "a", Transitions: 6}, true},
		"a leader in between":                {Custody{LeaderLease: "a", Transitions: 5}, Custody{LeaderLease: "a", Transitions: 7}, false},
		"an earlier term":                    {Custody{LeaderLease: "a", Transitions: 5}, Custody{LeaderLease: "a", Transitions: 4}, false},
		"another leader Lease":               {Custody{LeaderLease: "a", Transitions: 5}, Custody{LeaderLease: "b", Transitions: 5}, false},
		"transitions that overflow":          {Custody{LeaderLease: "a", Transitions: math.MaxInt32}, Custody{LeaderLease: "a", Transitions: math.MinInt32}, false},
		"alone and at once":                  {Custody{Written: 7}, Custody{Written: 7}, true},
		"alone, ten minutes later":           {Custody{Written: 7}, Custody{Written: 7 + ten}, true},
		"alone, later":                       {Custody{Written: 7}, Custody{Written: 8 + ten}, false},
		"alone, the clock set back":          {Custody{Written: 7}, Custody{Written: 6}, false},
		"alone, seconds that overflow":       {Custody{Written: math.MinInt64 + 7}, Custody{Written: 7}, false},
		"alone, nanoseconds that overflow":   {Custody{Written: -18446744073}, Custody{Written: 7}, false},
		"alone after a leader":               {Custody{LeaderLease: "a", Transitions: 5}, Custody{Written: 7}, false},
		"a leader after one alone":           {Custody{Written: 7}, Custody{LeaderLease: "a"}, false},
		"nothing recorded, alone":            {ParseCustody(""), Custody{Written: 7}, false},
		"nothing recorded, a leader":         {ParseCustody(""), Custody{LeaderLease: "a"}, false},
		"alone, without a time":              {Custody{}, Custody{Written: 7}, false},
		"an empty record":                    {ParseCustody("{}"), Custody{}, false},
		"a record of a type that is unknown": {ParseCustody(`{"leaderLease":"a","transitions":"5"}`), Custody{LeaderLease: "a", Transitions: 5}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Unbroken(tc.recorded, tc.current); got != tc.want {
				t.Errorf("Unbroken(%+v, %+v) = %v, want %v", tc.recorded, tc.current, got, tc.want)
			}
		})
	}
}

// TestUnbrokenMeansNoOtherLeader replays every sequence of up to six leaders of two
// leader Leases, each of ours or of another program.
func TestUnbrokenMeansNoOtherLeader(t *testing.T) {
	for leaders := range 1 << 6 {
		for recreated := range 1 << 6 {
			terms := make([]Custody, 6)
			for i := range terms {
				if i > 0 {
					terms[i] = Custody{LeaderLease: terms[i-1].LeaderLease, Transitions: terms[i-1].Transitions + 1}
				}
				if i == 0 || recreated>>i&1 == 1 {
					terms[i] = Custody{LeaderLease: types.UID(fmt.Sprint("lease-", i))}
				}
			}
			for i := range terms {
				for j := i; j < len(terms); j++ {
					between := false
					for k := i + 1; k < j; k++ {
						between = between || leaders>>k&1 == 1
					}
					if between && Unbroken(terms[i], terms[j]) {
						t.Fatalf("%+v and %+v with a foreign leader in between are unbroken", terms[i], terms[j])
					}
				}
			}
		}
	}
}

func TestCustodySurvivesItsAnnotation(t *testing.T) {
	for _, want := range []Custody{{LeaderLease: "a", Transitions: 5}, {LeaderLease: "a"}, {Written: 7},
		{LeaderLease: "a", Transitions: 1, Written: 2}} {
		if got := ParseCustody(want.String()); got != want {
			t.Errorf("custody = %+v, want %+v", got, want)
		}
	}
	for _, text := range []string{"", "{", "null", "{}", "[]", `{"leaderLease":7}`, `{"transitions":9}`, `{"written":1.5}`,
		`{"written":0}`, `{"leaderLease":"a","transitions":"9"}`} {
		got := ParseCustody(text)
		if got != (Custody{LeaderLease: "unknown"}) {
			t.Errorf("custody %q = %+v, want an unknown leader Lease", text, got)
		}
		for _, current := range []Custody{{}, {LeaderLease: "a"}, {LeaderLease: "a", Transitions: 9}, {Written: 1}} {
			if Unbroken(got, current) {
				t.Errorf("custody %q = %+v is unbroken with %+v", text, got, current)
			}
		}
	}
}

func TestPrecedesOnlyWithinOneLeaderLease(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b Custody
		want bool
	}{
		"an earlier term":      {Custody{LeaderLease: "a", Transitions: 1}, Custody{LeaderLease: "a", Transitions: 2}, true},
		"the same term":        {Custody{LeaderLease: "a", Transitions: 2}, Custody{LeaderLease: "a", Transitions: 2}, false},
		"a later term":         {Custody{LeaderLease: "a", Transitions: 3}, Custody{LeaderLease: "a", Transitions: 2}, false},
		"another leader Lease": {Custody{LeaderLease: "b", Transitions: 1}, Custody{LeaderLease: "a", Transitions: 2}, false},
		"no leader Lease":      {Custody{Transitions: 1}, Custody{Transitions: 2}, false},
		"no leader election":   {Custody{Written: 1}, Custody{Written: 2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.a.Precedes(tc.b); got != tc.want {
				t.Errorf("Precedes = %v, want %v", got, tc.want)
			}
		})
	}
}
