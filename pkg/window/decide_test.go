package window

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/graceful"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

// states yields every state that the command can observe.
func states(yield func(State) bool) {
	for bits := range 64 {
		for existing := graceful.Live; existing <= graceful.Graceful; existing++ {
			for request := graceful.NoGrace; request <= graceful.NotEarlier; request++ {
				s := of(existing, request)
				s.Sent, s.Written, s.DeleteOnly = bits&1 != 0, bits&2 != 0, bits&4 != 0
				s.Exposed, s.Annotated = bits&8 != 0, bits&16 != 0
				if bits&32 != 0 {
					s.Finalizers = graceful.NoneLeft
				}
				if existing == graceful.Graceful || !s.Exposed && (s.Sent || !s.DeleteOnly) {
					if !yield(s) {
						return
					}
				}
			}
		}
	}
}

func of(existing graceful.Existing, request graceful.Request) State {
	return State{State: graceful.State{Existing: existing, Request: request}}
}

// sent returns a state after the DELETE.
func sent(existing graceful.Existing, request graceful.Request, deleteOnly bool) State {
	s := of(existing, request)
	s.Sent, s.DeleteOnly = true, deleteOnly
	return s
}

// with returns the state after a change.
func with(s State, change func(*State)) State {
	change(&s)
	return s
}

func bare(s *State)      { s.Finalizers = graceful.NoneLeft }
func written(s *State)   { s.Written = true }
func exposed(s *State)   { s.Exposed = true }
func annotated(s *State) { s.Annotated = true }

// decided are states and what is decided about them.
func decided() map[string]decisionCase {
	const (
		grace, force = graceful.Earlier, graceful.Zero
		stock, ours  = false, true
	)
	return map[string]decisionCase{
		"plain deletion of a live object":     {of(graceful.Live, graceful.NoGrace), Decision{Delete, graceful.NoGraceRequested}},
		"#60 grace":                           {of(graceful.Live, grace), Decision{Annotate, graceful.Granted}},
		"#60 force":                           {of(graceful.Live, force), Decision{Annotate, graceful.ForceRequested}},
		"#60 grace is written":                {with(of(graceful.Live, grace), written), Decision{Delete, graceful.Granted}},
		"#60 no finalizer":                    {with(of(graceful.Live, grace), bare), Decision{Delete, graceful.NeedsFinalizer}},
		"#60 lives after the DELETE":          {sent(graceful.Live, grace, stock), Decision{Refuse, graceful.NotDeleted}},
		"#60 grace is gone":                   {sent(graceful.Plain, graceful.NotEarlier, stock), Decision{Annotate, graceful.Granted}},
		"#60 grace is gone, and not stored":   {sent(graceful.Plain, graceful.NotEarlier, ours), Decision{Refuse, NotInForce}},
		"#60 force is put in force by others": {with(of(graceful.Forced, force), written), Decision{Delete, graceful.ForceRequested}},
		"#61 earlier":                         {of(graceful.Graceful, grace), Decision{Delete, graceful.Shortened}},
		"#61 earlier, sent":                   {sent(graceful.Graceful, grace, stock), Decision{Annotate, graceful.Shortened}},
		"#61 earlier, sent, at ours now":      {sent(graceful.Graceful, grace, ours), Decision{Delete, graceful.Shortened}},
		"#61 earlier, done":                   {sent(graceful.Graceful, graceful.NotEarlier, ours), Decision{Nothing, graceful.NeverLater}},
		"#61 later":                           {of(graceful.Graceful, graceful.NotEarlier), Decision{Refuse, graceful.NeverLater}},
		"#61 force":                           {of(graceful.Graceful, force), Decision{Delete, graceful.ForceRequested}},
		"#61 force, sent":                     {sent(graceful.Graceful, force, stock), Decision{Annotate, graceful.ForceRequested}},
		"#61 force, sent, at ours now":        {sent(graceful.Graceful, force, ours), Decision{Delete, graceful.ForceRequested}},
		"#61 no grace":                        {of(graceful.Graceful, graceful.NoGrace), Decision{Nothing, graceful.DeadlineKept}},
		"#61 plain, force":                    {of(graceful.Plain, force), Decision{Delete, graceful.ForceRequested}},
		"#61 plain, force, sent":              {sent(graceful.Plain, force, stock), Decision{Annotate, graceful.ForceRequested}},
		"#61 plain, force, not stored":        {sent(graceful.Plain, force, ours), Decision{Delete, graceful.ForceRequested}},
		"#61 plain, grace":                    {of(graceful.Plain, graceful.NotEarlier), Decision{Refuse, graceful.OnlyForceShortens}},
		"#61 plain, no grace":                 {of(graceful.Plain, graceful.NoGrace), Decision{Nothing, graceful.AlreadyPlain}},
		"#61 forced, grace":                   {of(graceful.Forced, graceful.NotEarlier), Decision{Refuse, graceful.AlreadyForced}},
		"#61 forced, force":                   {of(graceful.Forced, force), Decision{Nothing, graceful.ForceRequested}},
		"#63 leftover of a command that died": {with(of(graceful.Live, graceful.NoGrace), annotated), Decision{Unannotate, graceful.NoGraceRequested}},
		"#63 force, at ours":                  {sent(graceful.Forced, force, stock), Decision{Nothing, graceful.ForceRequested}},
		"#17 in etcd, no finalizer":           {with(with(of(graceful.Graceful, graceful.NoGrace), bare), exposed), Decision{Delete, graceful.NoFinalizerLeft}},
		"#17 in etcd, force":                  {with(of(graceful.Graceful, force), exposed), Decision{Delete, graceful.ForceRequested}},
		"#17, #57 earlier":                    {with(of(graceful.Graceful, grace), exposed), Decision{Refuse, EndsAtStock}},
		"#57 earlier, sent":                   {with(sent(graceful.Graceful, grace, ours), exposed), Decision{Refuse, EndsAtStock}},
	}
}

type decisionCase struct {
	state State
	want  Decision
}

func TestDecide(t *testing.T) {
	for name, tc := range decided() {
		t.Run(name, func(t *testing.T) {
			if got := Decide(tc.state); got != tc.want {
				t.Errorf("Decide(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

func TestEveryStateIsDecidedSafely(t *testing.T) {
	actions := map[Action]int{}
	for s := range states {
		decision := Decide(s)
		actions[decision.Action]++
		server := graceful.Decide(s.State)
		moves := server.Action == graceful.SetForced || server.Action == graceful.SetDeadline
		live, bare := s.Existing == graceful.Live, s.Finalizers == graceful.NoneLeft
		// After the DELETE of an object that was not plain a plain deletion is one that lost its grace period.
		lost := s.Sent && s.Existing == graceful.Plain && !bare && s.Request.NamesGrace() && !moves
		var safe bool
		switch decision.Action {
		case Annotate: // a living object before the DELETE, another one after it
			safe = (moves || lost) && s.Request.NamesGrace() && !s.DeleteOnly && !bare && live != s.Sent && (!live || !s.Written)
		case Unannotate:
			safe = live && s.Request == graceful.NoGrace && s.Annotated && !s.Sent
		case Refuse:
			safe = live && s.Sent || lost && s.DeleteOnly || !live && !bare && s.Request.NamesGrace() &&
				(!s.Sent && !server.Accepted() || s.Exposed && s.Request == graceful.Earlier)
		case Nothing:
			safe = !live && !moves && !lost && (s.Sent || !bare && (!s.Request.NamesGrace() || server.Accepted()))
		case Delete: // a living object gets no other deadline than that of the annotation, and only force ends a grace period
			safe = (!live || !s.Sent) && (!s.Sent || moves && s.DeleteOnly) && (!live || !moves || s.Written) &&
				(!s.Exposed || bare || s.Request != graceful.Earlier)
		}
		if !safe {
			t.Errorf("%+v: %v, the server %v", s, decision, server)
		}
	}
	if len(actions) != 5 {
		t.Errorf("decided %v, want each action", actions)
	}
}

func TestEveryActionHasItsOwnName(t *testing.T) {
	enumtest.ExpectNames(t, Nothing, Unannotate)
}

// at is a time in a minute of the tests.
func at(seconds int) time.Time { return time.Date(2026, 1, 2, 3, 4, seconds, 0, time.UTC) }

// object returns an object with a finalizer, deleted at the time unless that is zero.
func object(deleted time.Time, annotation string) *metav1.ObjectMeta {
	found := &metav1.ObjectMeta{Name: "a", UID: "u", ResourceVersion: "7", Finalizers: []string{"example.com/f"}}
	if !deleted.IsZero() {
		zero := int64(0)
		found.DeletionTimestamp, found.DeletionGracePeriodSeconds = &metav1.Time{Time: deleted}, &zero
	}
	if annotation != "" {
		found.Annotations = map[string]string{deadline.Annotation: annotation}
	}
	return found
}

func window(start, end int) deadline.Window { return deadline.Window{Start: at(start), End: at(end)} }

func TestWindowKeepsItsStart(t *testing.T) {
	for name, tc := range map[string]struct {
		deleted    time.Time
		annotation string
		seconds    int64
		request    graceful.Request
		want       deadline.Window
	}{
		"live":                       {time.Time{}, "", 30, graceful.Earlier, window(10, 100)},
		"live, force":                {time.Time{}, "", 0, graceful.Zero, window(10, 10)},
		"live, old annotation":       {time.Time{}, window(0, 5).String(), 30, graceful.Earlier, window(10, 100)},
		"earlier":                    {at(1), window(0, 59).String(), 30, graceful.Earlier, window(0, 40)},
		"the same":                   {at(1), window(0, 40).String(), 30, graceful.NotEarlier, window(0, 40)},
		"later":                      {at(1), window(0, 30).String(), 30, graceful.NotEarlier, window(0, 40)},
		"force":                      {at(1), window(0, 40).String(), 0, graceful.Zero, window(0, 0)},
		"plain, force":               {at(1), "", 0, graceful.Zero, window(1, 1)},
		"plain, inert annotation":    {at(1), "2025-01-02T03:04:05Z/2025-01-02T03:04:05Z", 0, graceful.Zero, window(1, 1)},
		"a clock that is ahead":      {at(40), window(40, 59).String(), 5, graceful.Earlier, window(40, 41)},
		"nothing earlier is left":    {at(40), window(40, 41).String(), 5, graceful.NotEarlier, window(40, 41)},
		"malformed annotation":       {at(1), "soon", 30, graceful.NotEarlier, window(1, 40)},
		"of a forced deletion":       {at(1), window(1, 1).String(), 30, graceful.NotEarlier, window(1, 40)},
		"of a reversed window":       {at(1), window(5, 3).String(), 0, graceful.Zero, window(1, 1)},
		"annotation in another zone": {at(1), "2026-01-02T04:04:00+01:00/2026-01-02T04:04:59+01:00", 30, graceful.Earlier, window(0, 40)},
	} {
		t.Run(name, func(t *testing.T) {
			state, got := observe(object(tc.deleted, tc.annotation), &tc.seconds, at(10).Add(700*time.Millisecond))
			if diff := cmp.Diff(tc.want, got); diff != "" || state.Request != tc.request {
				t.Errorf("observe: %v, want %v\n%s", state.Request, tc.request, diff)
			}
		})
	}
}

// The window of each request is in force, and no deadline moves later.
func TestEveryWindowThatIsWrittenIsInForce(t *testing.T) {
	written := 0
	for _, deleted := range []time.Time{{}, at(0), at(10), at(20)} { // the clocks of servers differ
		for _, annotation := range []string{"", window(5, 20).String(), window(5, 50).String(), window(5, 5).String()} {
			for _, seconds := range []int64{0, 1, 5, 30, deadline.MaxSeconds, 1 << 62} {
				before := object(deleted, annotation)
				state, window := observe(before, &seconds, at(10))
				state.Sent = !deleted.IsZero()
				if Decide(state).Action != Annotate {
					continue
				}
				written++
				after := object(deleted, window.String())
				if deleted.IsZero() { // the DELETE follows, up to a minute later
					after = object(at(70), window.String())
				}
				read, old := deadline.Of(after), deadline.Of(before)
				if want := seconds == 0; read.Forced() != want || !want && read.Kind() != deadline.Graceful {
					t.Errorf("deleted %v, annotation %q, %d seconds: %v", deleted, annotation, seconds, read.Kind())
				}
				if deleted.IsZero() && seconds > 0 && read.Deadline(0).Sub(read.Requested()) < time.Duration(min(seconds, MaxSeconds))*time.Second {
					t.Errorf("%d seconds: a slow DELETE gives %v", seconds, read.Deadline(0).Sub(read.Requested()))
				}
				if old.Kind() == deadline.Graceful && seconds > 0 && !read.Deadline(0).Before(old.Deadline(0)) {
					t.Errorf("deleted %v, annotation %q, %d seconds: the deadline moves to %v", deleted, annotation, seconds,
						read.Deadline(0))
				}
			}
		}
	}
	if written == 0 {
		t.Error("no window is written: the test proves nothing")
	}
}

func TestLeftoverAnnotationIsSeenWhileItCouldCount(t *testing.T) {
	for annotation, want := range map[string]bool{
		"": false, "soon": false, window(0, 30).String(): true, window(9, 5).String(): false,
		window(310, 320).String(): true, window(311, 320).String(): false,
		"2026-01-02T03:59:00Z/2026-01-02T04:10:00Z": false,
	} {
		if state, _ := observe(object(time.Time{}, annotation), nil, at(10)); state.Annotated != want {
			t.Errorf("%q: annotated %t, want %t", annotation, state.Annotated, want)
		}
	}
	deleted := object(at(1), window(0, 30).String())
	deleted.DeletionGracePeriodSeconds = nil
	if state, _ := observe(deleted, nil, at(10)); state.Annotated || state.DeleteOnly {
		t.Errorf("the annotation of a deletion is no leftover: %+v", state)
	}
}

// An API server of upstream sets the deletion timestamp to its time if that is earlier, and the seconds to 0.
func TestGraceThatUpstreamsServerWouldEndIsExposed(t *testing.T) {
	inField := func(start, end int, window string) *metav1.ObjectMeta {
		found := object(at(end), window)
		*found.DeletionGracePeriodSeconds = int64(end - start)
		return found
	}
	for name, tc := range map[string]struct {
		object *metav1.ObjectMeta
		want   bool
	}{
		"live":                                  {object(time.Time{}, window(0, 30).String()), false},
		"plain":                                 {object(at(1), ""), false},
		"forced":                                {object(at(1), window(1, 1).String()), false},
		"forced, ahead":                         {object(at(90), window(90, 90).String()), false},
		"graceful":                              {object(at(1), window(0, 59).String()), false},
		"graceful, minutes ago":                 {object(at(-99), window(-100, 59).String()), false},
		"graceful, a minute ahead":              {object(at(70), window(70, 99).String()), false},
		"graceful, more than a minute ahead":    {object(at(71), window(71, 99).String()), true},
		"at ours":                               {inField(1, 59, window(0, 59).String()), false},
		"at ours, more than a minute ahead":     {inField(71, 99, window(71, 99).String()), true},
		"in etcd":                               {inField(1, 59, ""), true},
		"in etcd, with another annotation":      {inField(1, 59, window(1, 58).String()), true},
		"in etcd, with the annotation of force": {inField(1, 59, window(1, 1).String()), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isExposed(tc.object, deadline.Of(tc.object), at(10)); got != tc.want {
				t.Errorf("isExposed = %t, want %t", got, tc.want)
			}
		})
	}
}
