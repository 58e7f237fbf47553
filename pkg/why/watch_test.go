package why_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why"
)

// script plays an object over time: what an explanation finds at each second.
type script struct {
	start   time.Time
	changes chan struct{}
	asked   []time.Duration
	printed []string
	failed  []string
	at      func(second time.Duration) (blocker.Report, error)
}

func (s *script) watcher() why.Watcher {
	return why.Watcher{
		Explain: func(context.Context) (blocker.Report, error) {
			since := time.Since(s.start)
			s.asked = append(s.asked, since)
			return s.at(since)
		},
		Recreated: func(_ context.Context, before, now blocker.Object) blocker.Report {
			return blocker.Report{Object: now, Verdict: blocker.None,
				Blockers: []blocker.Blocker{{Reason: blocker.Recreated, Holder: before.UID}}}
		},
		Changed: func(report blocker.Report) error {
			text := report.Verdict.String()
			for root := range blocker.Roots(report.Blockers) {
				text += fmt.Sprint(" ", root.Reason)
			}
			s.printed = append(s.printed, text)
			return nil
		},
		Failed: func(err error) { s.failed = append(s.failed, err.Error()) },
	}
}

// pod returns the report of a pod with the UID, which waits for the reason.
func pod(uid string, reason blocker.Reason, evidence string) blocker.Report {
	return blocker.Report{
		Object: blocker.Object{Kind: "Pod", Name: "p", UID: uid}, Verdict: blocker.Waiting,
		Blockers: []blocker.Blocker{{Reason: reason, Verdict: blocker.Waiting,
			Evidence: []blocker.Evidence{{Text: evidence}}}},
	}
}

func gone() blocker.Report {
	return blocker.Report{Object: blocker.Object{Kind: "Pod", Name: "p"}, Verdict: blocker.Gone}
}

// run plays the script until the watch ends, or for a minute.
func (s *script) run(t *testing.T) blocker.Verdict {
	t.Helper()
	s.start, s.changes = time.Now(), make(chan struct{}, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	verdict, err := s.watcher().Run(ctx, s.changes)
	if err != nil {
		t.Fatal(err)
	}
	return verdict
}

func expectPrinted(t *testing.T, s *script, want ...string) {
	t.Helper()
	if !slices.Equal(s.printed, want) {
		t.Errorf("printed %q, want %q", s.printed, want)
	}
}

func TestWatchPrintsOnlyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{at: func(at time.Duration) (blocker.Report, error) {
			switch {
			case at < 20*time.Second:
				return pod("1", blocker.GracePeriod, at.String()), nil
			case at < 40*time.Second:
				return pod("1", blocker.KubeletStopping, at.String()), nil
			}
			return gone(), nil
		}}
		if verdict := s.run(t); verdict != blocker.Gone {
			t.Errorf("the verdict is %v, want gone", verdict)
		}
		expectPrinted(t, s, "waiting GracePeriod", "waiting KubeletStopping", "gone")
	})
}

// A namespace, or an owner without one, takes hundreds of lists: the API server does more than answer them.
func TestWatchRestsTwiceAsLongAsItReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		s.at = func(time.Duration) (blocker.Report, error) {
			select {
			case s.changes <- struct{}{}: // the object is written all the time
			default:
			}
			<-time.After(8 * time.Second)
			return pod("1", blocker.ContentRemains, ""), nil
		}
		s.run(t)
		if want := []time.Duration{0, 16 * time.Second, 32 * time.Second, 48 * time.Second}; !slices.Equal(s.asked, want) {
			t.Errorf("explained at %v, want %v", s.asked, want)
		}
		s.asked, s.at = nil, func(time.Duration) (blocker.Report, error) {
			<-time.After(8 * time.Second)
			return pod("1", blocker.ContentRemains, ""), nil
		}
		s.run(t)
		if want := []time.Duration{0, 24 * time.Second, 48 * time.Second}; !slices.Equal(s.asked, want) {
			t.Errorf("without a change explained at %v, want %v", s.asked, want)
		}
	})
}

func TestWatchReportsRecreatedObject(t *testing.T) {
	for name, after := range map[string]func(time.Duration) blocker.Report{
		"at once": func(time.Duration) blocker.Report { return pod("2", blocker.GracePeriod, "") },
		"after a while": func(at time.Duration) blocker.Report {
			if at < 12*time.Second {
				return gone()
			}
			return pod("2", blocker.GracePeriod, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{at: func(at time.Duration) (blocker.Report, error) {
					if at < 5*time.Second {
						return pod("1", blocker.GracePeriod, ""), nil
					}
					return after(at), nil
				}}
				if verdict := s.run(t); verdict != blocker.None {
					t.Errorf("the verdict is %v, want none", verdict)
				}
				expectPrinted(t, s, "waiting GracePeriod", "gone", "none Recreated")
			})
		})
	}
}

func TestUnreadableObjectIsNotRecreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{at: func(at time.Duration) (blocker.Report, error) {
			switch {
			case at >= 10*time.Second && at < 20*time.Second:
				return pod("", blocker.ObjectUnreadable, ""), nil
			case at < 30*time.Second:
				return pod("1", blocker.GracePeriod, ""), nil
			}
			return pod("2", blocker.GracePeriod, ""), nil
		}}
		s.run(t)
		expectPrinted(t, s, "waiting GracePeriod", "waiting ObjectUnreadable", "waiting GracePeriod", "gone",
			"none Recreated")
	})
}

func TestWatchOfMissingObjectEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{at: func(time.Duration) (blocker.Report, error) { return gone(), nil }}
		s.run(t)
		expectPrinted(t, s, "gone")
		if took := time.Since(s.start); took != 0 {
			t.Errorf("the watch took %v", took)
		}
	})
}

func TestWatchFollowsChangesOncePerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{at: func(time.Duration) (blocker.Report, error) { return pod("1", blocker.GracePeriod, ""), nil }}
		s.start, s.changes = time.Now(), make(chan struct{}, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
		defer cancel()
		go func() {
			for ctx.Err() == nil { // a writer that never rests
				select {
				case s.changes <- struct{}{}:
				case <-ctx.Done():
				}
			}
		}()
		if verdict, err := s.watcher().Run(ctx, s.changes); err != nil || verdict != blocker.Waiting {
			t.Errorf("the watch ended with %v, %v", verdict, err)
		}
		if len(s.asked) != 11 {
			t.Errorf("explained at %v, want once per second", s.asked)
		}
		expectPrinted(t, s, "waiting GracePeriod")
	})
}

func TestWatchSurvivesErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{at: func(at time.Duration) (blocker.Report, error) {
			switch {
			case at == 0:
				return pod("1", blocker.GracePeriod, ""), nil
			case at < 30*time.Second:
				return blocker.Report{}, errors.New("unreachable")
			}
			return gone(), nil
		}}
		s.run(t)
		expectPrinted(t, s, "waiting GracePeriod", "gone")
		if !slices.Equal(s.failed, []string{"unreachable"}) {
			t.Errorf("failures are %q, want one", s.failed)
		}
	})
}

func TestWatchEndsWithFirstError(t *testing.T) {
	broken := errors.New("no right")
	watcher := (&script{start: time.Now(),
		at: func(time.Duration) (blocker.Report, error) { return blocker.Report{}, broken }}).watcher()
	if _, err := watcher.Run(t.Context(), nil); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
}

// A load balancer answers 404 once.
func TestObjectThatIsNotGoneIsNoOtherOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{at: func(at time.Duration) (blocker.Report, error) {
			if at > 5*time.Second && at < 15*time.Second {
				return gone(), nil
			}
			return pod("1", blocker.GracePeriod, at.String()), nil
		}}
		if verdict := s.run(t); verdict != blocker.Waiting {
			t.Errorf("the watch ends with %s", verdict)
		}
		expectPrinted(t, s, "waiting GracePeriod", "gone", "waiting GracePeriod")
	})
}

func TestWatchPrintsDeadlineThatMovesEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{at: func(second time.Duration) (blocker.Report, error) {
			report := pod("1", blocker.GracePeriod, "")
			report.Deadline = &blocker.Deadline{Time: "2026-01-01T12:05:00Z"}
			if second >= 20*time.Second {
				report.Deadline.Time = "2026-01-01T12:01:00Z"
			}
			return report, nil
		}}
		s.run(t)
		expectPrinted(t, s, "waiting GracePeriod", "waiting GracePeriod")
	})
}
