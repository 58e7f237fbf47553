package servertime

import (
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
				if off := c.Now().Sub(time.Now().Add(ahead)); off.Abs() > 50*time.Millisecond {
					t.Errorf("the clock is off by %v", off)
				}
				if off := c.Skew() + ahead; off.Abs() > 50*time.Millisecond {
					t.Errorf("the skew is %v", c.Skew())
				}
			})
		})
	}
}

func TestSlowAnswersWidenNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := &server{ahead: time.Hour, takes: 20 * time.Millisecond}, New()
		ask(t, c.Wrap(s), 50)
		s.takes = time.Minute
		ask(t, c.Wrap(s), 2)
		if off := c.Now().Sub(time.Now().Add(time.Hour)); off.Abs() > 50*time.Millisecond {
			t.Errorf("the clock is off by %v", off)
		}
	})
}

func TestServerWithNewTimeIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := &server{takes: 20 * time.Millisecond}, New()
		ask(t, c.Wrap(s), 10)
		s.ahead = time.Minute
		ask(t, c.Wrap(s), 1)
		if off := c.Now().Sub(time.Now().Add(time.Minute)); off.Abs() > time.Second {
			t.Errorf("the clock is off by %v", off)
		}
	})
}
