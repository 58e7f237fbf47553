package nodes

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/faultproxy"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// TestClockIsOff runs the program with a clock that is five minutes ahead or behind (#08): a proxy shifts each time
// between the program and the API server. The deadline is that of the API server's clock, and so is the Stop.
func TestClockIsOff(t *testing.T) {
	port := harness.FreePort(t)
	e := startEnding(t, 4, "--instances=socket", "--instances-socket=SOCKET", fmt.Sprint("--secure-port=", port),
		"--authorization-always-allow-paths=/metrics")
	for _, ahead := range []time.Duration{5 * time.Minute, -5 * time.Minute} {
		e.Must(e.terminator.Kill(), "kill node-terminator")
		<-e.terminator.Done()
		_, e.kubeconfig = e.NewFaultProxy(sandbox.NodeTerminatorAccount, faultproxy.Config{
			Wrap: shift(ahead).toServer, Change: shift(-ahead).fromServer})
		e.begin()
		stoppedAtDeadline(t, e)
		name := e.take("15m")
		e.pod(name, "web", annotated("cloudmock.exeunt.io/exit-after", "4s"))
		e.delete(name)
		want := e.node(name).DeletionTimestamp.Add(15 * time.Minute).UTC().Format(time.RFC3339)
		e.Until("the deadline is written", func() bool {
			now := e.node(name)
			return now != nil && now.Annotations[termination.TimestampAnnotation] == want
		})
		e.awaitGone(name)
		if skew := e.skew(port); (skew - ahead).Abs() > 2*time.Second {
			t.Errorf("the metric says that the clock is %v ahead, want %v", skew, ahead)
		}
	}
	e.expectNever(machines.Event{Event: machines.TwoWriters})
}

// skew returns the value of the metric.
func (e *ending) skew(port int) time.Duration {
	e.T.Helper()
	const metric = "\nnode_terminator_clock_skew_seconds "
	_, after, served := strings.Cut(e.ControllerMetrics(port), metric)
	if !served {
		e.T.Fatalf("no metric %q", metric)
	}
	value, _, _ := strings.Cut(after, "\n")
	seconds, err := strconv.ParseFloat(value, 64)
	e.Must(err, "parse metric")
	return time.Duration(seconds * float64(time.Second))
}

// times matches the times in objects.
var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// shift shifts times.
type shift time.Duration

// text returns the text with other times. Their length does not change.
func (by shift) text(text []byte) []byte {
	return times.ReplaceAllFunc(text, func(match []byte) []byte {
		at, err := time.Parse(time.RFC3339, string(match))
		if err != nil {
			return match
		}
		layout := "2006-01-02T15:04:05"
		if _, fraction, has := strings.Cut(string(match), "."); has {
			layout += "." + strings.Repeat("0", len(fraction)-1)
		}
		return []byte(at.Add(time.Duration(by)).UTC().Format(layout + "Z"))
	})
}

// toServer shifts the times of requests, and asks for answers in JSON, which fromServer can read.
func (by shift) toServer(forward http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var accepted []string
		for one := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
			if !strings.Contains(one, "protobuf") {
				accepted = append(accepted, one)
			}
		}
		r.Header.Set("Accept", strings.Join(accepted, ","))
		r.Header.Del("Accept-Encoding")
		if strings.Contains(r.Header.Get("Content-Type"), "json") {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				panic(http.ErrAbortHandler) // the program has gone
			}
			r.Body = io.NopCloser(bytes.NewReader(by.text(body)))
		}
		forward.ServeHTTP(w, r)
	})
}

// fromServer shifts the times of answers, and of the events of watches.
func (by shift) fromServer(response *http.Response) error {
	date, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return fmt.Errorf("an answer without a date: %w", err)
	}
	response.Header.Set("Date", date.Add(time.Duration(by)).UTC().Format(http.TimeFormat))
	if !strings.Contains(response.Header.Get("Content-Type"), "json") {
		return nil
	}
	shifting, out := io.Pipe()
	go func(source io.Reader) {
		lines := bufio.NewReader(source)
		for {
			line, err := lines.ReadBytes('\n')
			if _, gone := out.Write(by.text(line)); err == nil {
				err = gone
			}
			if err != nil {
				_ = out.CloseWithError(err)
				return
			}
		}
	}(response.Body)
	response.Body = shiftedBody{shifting, response.Body}
	return nil
}

// shiftedBody is the body of an answer with other times.
type shiftedBody struct {
	*io.PipeReader
	source io.Closer
}

// Close ends the answer of the API server.
func (b shiftedBody) Close() error { return errors.Join(b.PipeReader.Close(), b.source.Close()) }
