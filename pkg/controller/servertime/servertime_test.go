package servertime

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// server answers with the time of a clock that is ahead of ours.
type server struct{ ahead, takes time.Duration }

func (s *server) RoundTrip(*http.Request) (*http.Response, error) {
	<-time.After(s.takes / 2)
	date := time.Now().Add(s.ahead).UTC().Format(http.TimeFormat)
	<-time.After(s.takes / 2)
	return &http.Response{Header: http.Header{"Date": {date}}, Body: http.NoBody}, nil
}

func ask(t *testing.T, transport http.RoundTripper, times int) {
	t.Helper()
	for range times {
		response, err := transport.RoundTrip(nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		<-time.After(330 * time.Millisecond)
	}
}

func TestAnswersSetTheClock(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"ahead": 5 * time.Minute, "behind": -5 * time.Minute, "a moment": 700 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c := &server{ahead: ahead, takes: 20 * time.Millisecond}, New()
				ask(t, c.Wrap(s), 50)
				expectLate(t, c, s, 100*time.Millisecond)
				if off := c.Skew() + ahead; off.Abs() > 50*time.Millisecond {
					t.Errorf("the skew is %v", c.Skew())
				}
			})
		})
	}
}

// expectLate wants Now to be late by this time at most, and never ahead, and Latest to be early by no more.
func expectLate(t *testing.T, c *Clock, s *server, most time.Duration) {
	t.Helper()
	if late := time.Now().Add(s.ahead).Sub(c.Now()); late < 0 || late > most {
		t.Errorf("the clock is %v late, want 0 to %v", late, most)
	}
	if early := c.Latest().Sub(time.Now().Add(s.ahead)); early < 0 || early > most {
		t.Errorf("the latest time is %v early, want 0 to %v", early, most)
	}
}

// A Date header has whole seconds, so one answer leaves a second open. Nothing may happen before its time.
func TestClockIsNeverAhead(t *testing.T) {
	for fraction := 10 * time.Millisecond; fraction < time.Second; fraction += 100 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			s, c := &server{ahead: 5 * time.Minute, takes: 20 * time.Millisecond}, New()
			<-time.After(fraction)
			ask(t, c.Wrap(s), 1)
			expectLate(t, c, s, 1020*time.Millisecond)
		})
	}
}

func TestClockThatRunsSlowerIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := &server{takes: 20 * time.Millisecond}, New()
		transport := c.Wrap(s)
		for range 2000 {
			ask(t, transport, 1)
			<-time.After(6370 * time.Millisecond)
			s.ahead -= 2 * time.Millisecond
			expectLate(t, c, s, 1100*time.Millisecond)
		}
	})
}

// counted asks once through the transport, and counts that.
func counted(transport http.RoundTripper, asked *int) func(context.Context) error {
	return func(context.Context) error {
		*asked++
		response, err := transport.RoundTrip(nil)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
}

func TestQuestionsSharpenTheClock(t *testing.T) {
	for fraction := 10 * time.Millisecond; fraction < time.Second; fraction += 90 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			s, c := &server{ahead: -time.Hour, takes: 20 * time.Millisecond}, New()
			<-time.After(fraction)
			transport, asked := c.Wrap(s), 0
			ask(t, transport, 1)
			c.Sharpen(t.Context(), counted(transport, &asked))
			expectLate(t, c, s, 100*time.Millisecond)
			if asked < 3 || asked > mostQuestions {
				t.Errorf("%d questions", asked)
			}
			before := asked
			c.Sharpen(t.Context(), counted(transport, &asked))
			if asked > before {
				t.Error("what is known is asked for again")
			}
		})
	}
}

// Each answer takes long, so that it leaves more open than is wanted.
func TestQuestionsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := &server{takes: 600 * time.Millisecond}, New()
		transport, asked := c.Wrap(s), 0
		ask(t, transport, 1)
		for range 10 {
			c.Sharpen(t.Context(), counted(transport, &asked))
		}
		if asked > mostQuestions {
			t.Errorf("%d questions", asked)
		}
		expectLate(t, c, s, time.Second)
	})
}

func TestSlowAnswersWidenNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := &server{ahead: time.Hour, takes: 20 * time.Millisecond}, New()
		ask(t, c.Wrap(s), 50)
		s.takes = time.Minute
		ask(t, c.Wrap(s), 2)
		expectLate(t, c, s, 200*time.Millisecond)
	})
}

func TestServerWithNewTimeIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := &server{takes: 20 * time.Millisecond}, New()
		ask(t, c.Wrap(s), 10)
		s.ahead = time.Minute
		ask(t, c.Wrap(s), 1)
		expectLate(t, c, s, 1020*time.Millisecond)
	})
}
