package deadline_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	. "github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// at returns the time with the number of seconds after noon.
func at(seconds int) time.Time {
	return time.Date(2026, 1, 1, 12, 0, seconds, 0, time.UTC)
}

// object returns an object with a deletion timestamp, if it is not the zero time, a grace period and an annotation.
func object(timestamp time.Time, seconds *int64, annotation string) *metav1.ObjectMeta {
	meta := &metav1.ObjectMeta{DeletionGracePeriodSeconds: seconds}
	if !timestamp.IsZero() {
		meta.DeletionTimestamp = &metav1.Time{Time: timestamp}
	}
	if annotation != "" {
		meta.Annotations = map[string]string{Annotation: annotation}
	}
	return meta
}

var zero = ptr.To[int64](0)

var deletions = map[string]struct {
	object              *metav1.ObjectMeta
	kind                Kind
	requested, deadline time.Time
}{
	"not deleted":                       {object(time.Time{}, nil, ""), NotDeleted, time.Time{}, time.Time{}},
	"not deleted, with a window":        {object(time.Time{}, nil, Window{at(0), at(300)}.String()), NotDeleted, time.Time{}, time.Time{}},
	"plain":                             {object(at(0), zero, ""), Unspecified, at(0), at(30)},
	"plain, without a grace period":     {object(at(0), nil, ""), Unspecified, at(0), at(30)},
	"plain, negative":                   {object(at(0), ptr.To[int64](-1), ""), Unspecified, at(0), at(30)},
	"graceful, served":                  {object(at(300), ptr.To[int64](300), ""), Graceful, at(0), at(300)},
	"graceful, served with window":      {object(at(300), ptr.To[int64](300), Window{at(0), at(300)}.String()), Graceful, at(0), at(300)},
	"graceful, stored":                  {object(at(0), zero, Window{at(0), at(300)}.String()), Graceful, at(0), at(300)},
	"graceful, clocks differ by 60 s":   {object(at(0), zero, Window{at(60), at(300)}.String()), Graceful, at(0), at(300)},
	"graceful, clocks differ the other": {object(at(60), zero, Window{at(0), at(300)}.String()), Graceful, at(60), at(300)},
	"window starts 61 s later":          {object(at(0), zero, Window{at(61), at(300)}.String()), Unspecified, at(0), at(30)},
	"window of another deletion":        {object(at(61), zero, Window{at(0), at(300)}.String()), Unspecified, at(61), at(91)},
	"deadline before the timestamp":     {object(at(10), zero, Window{at(0), at(5)}.String()), Graceful, at(10), at(5)},
	"forced":                            {object(at(0), zero, Window{at(0), at(0)}.String()), Forced, at(0), at(0)},
	"forced by another clock":           {object(at(9), zero, Window{at(0), at(0)}.String()), Forced, at(9), at(9)},
	"68 years":                          {object(at(0), zero, Window{at(0), at(math.MaxInt32)}.String()), Graceful, at(0), at(math.MaxInt32)},
	"more than 68 years":                {object(at(0), zero, Window{at(0), at(math.MaxInt32 + 1)}.String()), Unspecified, at(0), at(30)},
	"more than 68 years, served":        {object(at(0), ptr.To[int64](math.MaxInt64), ""), Graceful, at(-math.MaxInt32), at(0)},
	"reversed":                          {object(at(0), zero, Window{at(1), at(0)}.String()), Unspecified, at(0), at(30)},
	"one time":                          {object(at(0), zero, "2026-01-01T12:00:00Z"), Unspecified, at(0), at(30)},
	"three times":                       {object(at(0), zero, Window{at(0), at(9)}.String()+"/2026-01-01T12:00:00Z"), Unspecified, at(0), at(30)},
	"fraction of a second":              {object(at(0), zero, "2026-01-01T12:00:00Z/2026-01-01T12:05:00.5Z"), Unspecified, at(0), at(30)},
	"fraction of a second that is 0":    {object(at(0), zero, "2026-01-01T12:00:00Z/2026-01-01T12:05:00.000000000Z"), Unspecified, at(0), at(30)},
	"200 KB":                            {object(at(0), zero, strings.Repeat("2026-01-01T12:00:00Z/", 10000)), Unspecified, at(0), at(30)},
	"other spelling of UTC":             {object(at(0), zero, "2026-01-01T12:00:00+00:00/2026-01-01T12:05:00+00:00"), Graceful, at(0), at(300)},
	"other time zone":                   {object(at(0), zero, "2026-01-01T14:00:00+02:00/2026-01-01T14:05:00+02:00"), Graceful, at(0), at(300)},
}

func TestOf(t *testing.T) {
	for name, tc := range deletions {
		t.Run(name, func(t *testing.T) {
			got := Of(tc.object)
			if got.Kind() != tc.kind || !got.Requested().Equal(tc.requested) || !got.Deadline(30*time.Second).Equal(tc.deadline) {
				t.Errorf("Of() = %v, requested %v, deadline %v; want %v, %v, %v",
					got.Kind(), got.Requested(), got.Deadline(30*time.Second), tc.kind, tc.requested, tc.deadline)
			}
			if got.Forced() != (tc.kind == Forced) {
				t.Errorf("Forced() = %t", got.Forced())
			}
		})
	}
}

func TestParseRefusesWhatIsNoWindow(t *testing.T) {
	const noon, long = "2026-01-01T12:00:00Z", "2026-01-01T12:00:00.000000000Z"
	for _, annotation := range []string{"", "/", noon, "x/" + noon, noon + "/x", long + "/" + noon, noon + "/" + long,
		noon + "/2026-01-01T11:59:59Z", noon + "/" + noon + "/" + noon} {
		if window, ok := Parse(annotation); ok {
			t.Errorf("Parse(%q) = %v", annotation, window)
		}
	}
}

func TestRemainingAndForDependents(t *testing.T) {
	plain, forced := Of(object(at(0), nil, "")), Read(at(0), Window{at(0), at(0)}.String())
	graceful := Read(at(0), Window{at(0), at(300)}.String())
	for name, tc := range map[string]struct {
		deletion  Deletion
		now       time.Time
		byDefault time.Duration
		remaining time.Duration
		pass      int64
	}{
		"not deleted":                  {Deletion{}, at(0), time.Minute, math.MaxInt64, 60},
		"not deleted, bad default":     {Deletion{}, at(0), -time.Minute, math.MaxInt64, 1},
		"not deleted, no default":      {Deletion{}, at(0), 0, math.MaxInt64, 1},
		"plain, default":               {plain, at(10), time.Minute, 50 * time.Second, 50},
		"plain, default has passed":    {plain, at(61), time.Minute, 0, 1},
		"plain, no default":            {plain, at(0), 0, 0, 1},
		"plain, bad default":           {plain, at(0), -time.Minute, 0, 1},
		"plain, endless default":       {plain, at(0), math.MaxInt64, math.MaxInt64, math.MaxInt32},
		"graceful":                     {graceful, at(100), time.Hour, 200 * time.Second, 200},
		"graceful, part of a second":   {graceful, at(299).Add(time.Millisecond), time.Hour, 999 * time.Millisecond, 1},
		"graceful, deadline passed":    {graceful, at(301), time.Hour, 0, 1},
		"graceful, clock is behind":    {graceful, at(-100), time.Hour, 400 * time.Second, 400},
		"forced":                       {forced, at(0), time.Hour, 0, 0},
		"forced, clock is behind 10 s": {forced, at(-10), time.Hour, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.deletion.Remaining(tc.now, tc.byDefault); got != tc.remaining {
				t.Errorf("Remaining() = %v, want %v", got, tc.remaining)
			}
			if got := tc.deletion.ForDependents(tc.now, tc.byDefault); got != tc.pass {
				t.Errorf("ForDependents() = %d, want %d", got, tc.pass)
			}
		})
	}
}

func TestNamesOfKinds(t *testing.T) {
	for want, kind := range map[string]Kind{"NotDeleted": NotDeleted, "Unspecified": Unspecified, "Graceful": Graceful,
		"Forced": Forced, "invalid": Forced + 1} {
		if got := kind.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}

// FuzzOf reads any object: nothing panics, a deadline is never before its request but by a window, and what is passed
// on is 0 only for a forced deletion.
func FuzzOf(f *testing.F) {
	for _, annotation := range []string{"", "/", Window{at(0), at(300)}.String(), Window{at(0), at(0)}.String(),
		"2026-01-01T14:00:00+02:00/9999-12-31T23:59:59Z"} {
		f.Add(at(0).Unix(), int64(0), true, annotation)
		f.Add(at(300).Unix(), int64(300), true, annotation)
	}
	f.Add(int64(math.MaxInt64), int64(math.MinInt64), true, "0000-01-01T00:00:00Z/9999-12-31T23:59:59Z")
	f.Fuzz(func(t *testing.T, timestamp, seconds int64, deleted bool, annotation string) {
		meta := object(time.Unix(timestamp, 0), &seconds, annotation)
		if !deleted {
			meta.DeletionTimestamp = nil
		}
		got := Of(meta)
		if (got.Kind() == NotDeleted) == (meta.DeletionTimestamp != nil) {
			t.Errorf("kind %v, deletion timestamp %v", got.Kind(), meta.DeletionTimestamp)
		}
		if pass := got.ForDependents(at(0), time.Minute); pass < 0 || pass > MaxSeconds || (pass == 0) != got.Forced() {
			t.Errorf("%v passes on %d s", got.Kind(), pass)
		}
		if got.Remaining(at(0), time.Minute) < 0 {
			t.Errorf("remaining %v", got.Remaining(at(0), time.Minute))
		}
		window, ok := Parse(annotation)
		for _, year := range []int{window.Start.UTC().Year(), window.End.UTC().Year()} {
			ok = ok && year >= 0 && year <= 9999 // what RFC 3339 can write
		}
		if again, _ := Parse(window.String()); ok && (!again.Start.Equal(window.Start) || !again.End.Equal(window.End)) {
			t.Errorf("Parse(%q) = %v, written and read %v", annotation, window, again)
		}
	})
}

// Other languages read RFC 3339 as it is written; time.Parse reads more.
func TestWindowIsReadByRFC3339Only(t *testing.T) {
	noon := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]Kind{
		"2026-01-02T03:04:05Z/2026-01-02T03:09:05Z":           Graceful,
		"2026-01-02T03:04:05+00:00/2026-01-02T03:09:05-00:00": Graceful,
		"2026-01-03T02:34:05+23:30/2026-01-02T03:09:05Z":      Graceful,
		"2026-01-03T03:04:05+24:00/2026-01-03T03:09:05+24:00": Unspecified,
		"2026-01-01T03:04:05-24:00/2026-01-01T03:09:05-24:00": Unspecified,
		"2026-01-02T04:04:05+00:60/2026-01-02T03:09:05Z":      Unspecified,
		"2026-01-02T3:04:05Z/2026-01-02T3:09:05Z":             Unspecified,
		"2026-01-02T03:04:05Z/2026-01-02T03:09:05,0Z":         Unspecified,
		"2026-01-02T03:04:05Z/2026-01-02T03:09:05.0Z":         Unspecified,
	} {
		read := Read(noon, text)
		if read.Kind() != want {
			t.Errorf("%s: %v, want %v", text, read.Kind(), want)
		}
		if _, err := json.Marshal(read.Deadline(0)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
