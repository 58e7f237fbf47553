package deadline_test

import (
	"math"
	"strings"
	"testing"
	"time"

	. "github.com/exeunt-io/exeunt/pkg/deadline"
)

var requested = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func TestParsePeriod(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30m": 30 * time.Minute, "1h30m": 90 * time.Minute, "0s": 0, "90s": 90 * time.Second, "2562047h": 2562047 * time.Hour,
	} {
		period, err := ParsePeriod(text)
		if length, limited := period.Length(); err != nil || !limited || length != want {
			t.Errorf("ParsePeriod(%q) = %v, %v, want %v", text, period, err, want)
		}
	}
	if period, err := ParsePeriod("Never"); err != nil || period != (Period{}) {
		t.Errorf("ParsePeriod(Never) = %v, %v", period, err)
	}
	for _, text := range []string{"", "1d", "abc", "-5m", "1.5h", "never", "30", "9999999h", "30m\n", " 30m", "5ms"} {
		if period, err := ParsePeriod(text); err == nil {
			t.Errorf("ParsePeriod(%q) = %v, want an error", text, period)
		}
	}
}

func TestTighten(t *testing.T) {
	limited := Of(requested, Limited(15*time.Minute))
	never := Of(requested, Period{})
	for name, tc := range map[string]struct {
		deadline   Deadline
		annotation string
		want       time.Time
	}{
		"no annotation":              {limited, "", requested.Add(15 * time.Minute)},
		"earlier":                    {limited, "2026-11-29T12:05:00Z", requested.Add(5 * time.Minute)},
		"earlier, another time zone": {limited, "2026-11-29T14:05:00+02:00", requested.Add(5 * time.Minute)},
		"later":                      {limited, "2026-11-29T12:15:01Z", requested.Add(15 * time.Minute)},
		"just past":                  {limited, "2026-11-29T11:59:00Z", requested.Add(-time.Minute)},
		"stale":                      {limited, "2026-11-29T11:58:59Z", requested.Add(15 * time.Minute)},
		"a year old":                 {limited, "2025-11-29T12:00:00Z", requested.Add(15 * time.Minute)},
		"no time":                    {limited, "soon", requested.Add(15 * time.Minute)},
		"no deadline":                {never, "", time.Time{}},
		"no deadline, annotation":    {never, "2026-11-29T13:00:00Z", requested.Add(time.Hour)},
	} {
		if got := Tighten(tc.deadline, tc.annotation); !got.End.Equal(tc.want) {
			t.Errorf("%s: the deadline is %v, want %v", name, got.End, tc.want)
		}
	}
}

func TestEarlierDeletionCounts(t *testing.T) {
	claim := Of(requested, Limited(time.Hour))
	node := Of(requested.Add(time.Minute), Limited(time.Minute))
	want := Deadline{Requested: requested, End: requested.Add(2 * time.Minute)}
	for _, got := range []Deadline{Earlier(claim, node), Earlier(node, claim)} {
		if got != want {
			t.Errorf("Earlier = %v, want %v", got, want)
		}
	}
	if got := Earlier(Of(requested, Period{}), node); got != want {
		t.Errorf("Earlier of no deadline = %v, want %v", got, want)
	}
}

func TestEarlierOfNoDeadline(t *testing.T) {
	never, short, long := Of(requested, Period{}), Of(requested, Limited(time.Minute)), Of(requested, Limited(time.Hour))
	for _, tc := range []struct{ a, b, want Deadline }{
		{short, never, short}, {never, short, short}, {short, long, short}, {long, short, short}, {never, never, never},
	} {
		if got := Earlier(tc.a, tc.b); got != tc.want {
			t.Errorf("Earlier(%v, %v) = %v", tc.a, tc.b, got)
		}
	}
}

func TestAnnotation(t *testing.T) {
	if got := Of(requested.In(time.FixedZone("", 7200)), Limited(time.Minute)).Annotation(); got != "2026-11-29T12:01:00Z" {
		t.Errorf("the annotation is %q", got)
	}
	if got := Of(requested, Period{}).Annotation(); got != "" {
		t.Errorf("without a deadline the annotation is %q", got)
	}
}

func TestDue(t *testing.T) {
	for name, tc := range map[string]struct {
		at   time.Time
		want bool
	}{
		"before": {requested.Add(1), false}, "at": {requested, true}, "after": {requested.Add(-1), true}, "never": {time.Time{}, false},
	} {
		if got := Due(tc.at, requested); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestLongLabelIsCutInMessage(t *testing.T) {
	exact := strings.Repeat("x", 40)
	if _, err := ParsePeriod(exact); !strings.Contains(err.Error(), `"`+exact+`"`) {
		t.Error(err)
	}
	if _, err := ParsePeriod(exact + "y"); !strings.Contains(err.Error(), `"`+exact+`..."`) {
		t.Error(err)
	}
}

func TestTimes(t *testing.T) {
	at := func(s int) time.Time { return requested.Add(time.Duration(s) * time.Second) }
	for name, tc := range map[string]struct {
		period   string
		first    time.Time
		attached bool
		want     Times
	}{
		"no deadline":                                {"Never", at(0), true, Times{}},
		"nothing attached":                           {"15m", at(1), false, Times{GraceEnds: at(895), Stop: at(900)}},
		"a volume attached":                          {"15m", at(1), true, Times{GraceEnds: at(870), Stop: at(900)}},
		"a quarter of a short period":                {"8s", at(1), true, Times{GraceEnds: at(6), Stop: at(8)}},
		"first action at P":                          {"15m", at(895), false, Times{GraceEnds: at(895), Stop: at(905), Late: true}},
		"first action after a day":                   {"15m", at(86400), false, Times{GraceEnds: at(895), Stop: at(86410), Late: true}},
		"no period at all":                           {"0s", at(0), false, Times{GraceEnds: at(0), Stop: at(10), Late: true}},
		"first action after P, attached":             {"15m", at(880), true, Times{GraceEnds: at(870), Stop: at(900)}},
		"first action just before the end, attached": {"15m", at(895), true, Times{GraceEnds: at(895), Stop: at(905), Late: true}},
	} {
		period, err := ParsePeriod(tc.period)
		if err != nil {
			t.Fatal(err)
		}
		if got := Of(requested, period).Times(tc.first, tc.attached); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// Otherwise a volume that is attached or detached would move the end of the machine, and cut grace that was given.
func TestVolumesDoNotMoveStop(t *testing.T) {
	for seconds := range 1000 {
		first := requested.Add(time.Duration(seconds) * time.Second)
		d := Of(requested, Limited(15*time.Minute))
		with, without := d.Times(first, true), d.Times(first, false)
		if with.Stop != without.Stop || with.Late != without.Late || with.Stop.Before(d.End) {
			t.Errorf("first action after %d s: %+v with a volume, %+v without", seconds, with, without)
		}
	}
}

func TestGrace(t *testing.T) {
	times := Of(requested, Limited(15*time.Minute)).Times(requested, false)
	late := Of(requested, Limited(0)).Times(requested, false)
	for name, tc := range map[string]struct {
		times Times
		grace time.Duration
		after time.Duration
		want  int64
	}{
		"whole grace":           {times, 10 * time.Minute, 0, 600},
		"what is left until P":  {times, 10 * time.Minute, 300 * time.Second, 595},
		"just after L":          {times, 10 * time.Minute, 295*time.Second + 499*time.Millisecond, 600},
		"half a second after L": {times, 10 * time.Minute, 295*time.Second + 501*time.Millisecond, 599},
		"nothing left":          {times, 10 * time.Minute, time.Hour, 1},
		"a pod without grace":   {times, 0, 0, 1},
		"a late first action":   {late, 10 * time.Minute, 0, 1},
		"no deadline":           {Times{}, Seconds(600), time.Hour, 600},
		"no deadline, no grace": {Times{}, 0, 0, 1},
	} {
		if got := tc.times.Grace(tc.grace, requested.Add(tc.after)); got != tc.want {
			t.Errorf("%s: %d seconds, want %d", name, got, tc.want)
		}
	}
}

func TestLongGraceIsForcedAtOnce(t *testing.T) {
	times := Of(requested, Limited(15*time.Minute)).Times(requested, false)
	for _, seconds := range []int64{900, 9223372036, 9223372037, math.MaxInt64} {
		if !Due(times.Forced(Seconds(seconds)), requested) {
			t.Errorf("a grace period of %d seconds is forced at %v", seconds, times.Forced(Seconds(seconds)))
		}
	}
	if Due(Times{}.Forced(Seconds(math.MaxInt64)), requested) {
		t.Error("a termination without a deadline forces a pod")
	}
}

// The invariant that users rely on: whatever they write, the end moves earlier only.
func FuzzTightenNeverLater(f *testing.F) {
	f.Add(int64(900), "2026-11-29T12:05:00Z")
	f.Add(int64(-1), "9999-12-31T23:59:59Z")
	f.Fuzz(func(t *testing.T, seconds int64, annotation string) {
		period := Period{}
		if seconds >= 0 {
			period = Limited(Seconds(seconds))
		}
		before := Of(requested, period)
		after := Tighten(before, annotation)
		if !before.None() && after.End.After(before.End) || !before.None() && after.None() {
			t.Errorf("%v became %v by %q", before, after, annotation)
		}
		if again := Tighten(after, after.Annotation()); !again.End.Equal(after.End.Truncate(time.Second)) && !again.End.Equal(after.End) {
			t.Errorf("the own annotation of %v reads %v", after, again)
		}
	})
}
