package measure

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// The metrics of the API server.
const (
	requestMetric = "apiserver_request_total"
	selfMetric    = "apiserver_selfrequest_total"
	watchMetric   = "apiserver_watch_events_sizes"
)

// Counters count since the start of a process.
type Counters struct {
	// Requests are the finished requests for resources, without watches.
	Requests Requests
	// WatchBytes is the size of the events that were sent to watchers, by resource.
	WatchBytes map[string]float64
	// Calls are the finished calls of the CSI driver, by method.
	Calls map[string]float64
}

// Minus returns what was counted since earlier.
func (c Counters) Minus(earlier Counters) Counters {
	return Counters{
		Requests:   subtract(c.Requests, earlier.Requests),
		WatchBytes: subtract(c.WatchBytes, earlier.WatchBytes),
		Calls:      subtract(c.Calls, earlier.Calls),
	}
}

// ParseMetrics reads the counters in the /metrics of an API server. The requests that the API
// server sends to itself do not count.
func ParseMetrics(text io.Reader) (Counters, error) {
	wanted, err := filter(text)
	if err != nil {
		return Counters{}, fmt.Errorf("read metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(wanted)
	if err != nil {
		return Counters{}, fmt.Errorf("parse metrics: %w", err)
	}
	counters := Counters{Requests: Requests{}, WatchBytes: map[string]float64{}}
	for _, metric := range families[requestMetric].GetMetric() {
		if request := requestOf(labels(metric)); request.Resource != "" && request.Verb != "WATCH" {
			counters.Requests[request] += metric.GetCounter().GetValue()
		}
	}
	for _, metric := range families[selfMetric].GetMetric() {
		removeSelf(counters.Requests, requestOf(labels(metric)), metric.GetCounter().GetValue())
	}
	for _, metric := range families[watchMetric].GetMetric() {
		counters.WatchBytes[labels(metric)["resource"]] += metric.GetHistogram().GetSampleSum()
	}
	return counters, nil
}

// filter returns the lines about the metrics that ParseMetrics reads. The others are a
// hundred times as many.
func filter(text io.Reader) (io.Reader, error) {
	var wanted bytes.Buffer
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name := strings.TrimPrefix(strings.TrimPrefix(lines.Text(), "# TYPE "), "# HELP ")
		for _, metric := range []string{requestMetric, selfMetric, watchMetric} {
			if strings.HasPrefix(name, metric) {
				wanted.Write(lines.Bytes())
				wanted.WriteByte('\n')
			}
		}
	}
	return &wanted, lines.Err()
}

// labels returns the labels of a metric by name.
func labels(metric *dto.Metric) map[string]string {
	found := map[string]string{}
	for _, label := range metric.GetLabel() {
		found[label.GetName()] = label.GetValue()
	}
	return found
}

// requestOf returns the request that the labels describe.
func requestOf(labels map[string]string) Request {
	resource := labels["resource"]
	if sub := labels["subresource"]; resource != "" && sub != "" {
		resource += "/" + sub
	}
	code, err := strconv.Atoi(labels["code"])
	if err != nil {
		code = 0 // the API server sends a request to itself: the label is missing
	}
	return Request{Verb: labels["verb"], Resource: resource, Code: code}
}

// removeSelf removes requests that the API server sent to itself, whose status is not known,
// from those that succeeded.
func removeSelf(requests Requests, self Request, count float64) {
	for _, code := range []int{200, 201} {
		self.Code = code
		own := min(count, requests[self])
		if own == 0 {
			continue
		}
		count -= own
		if requests[self] -= own; requests[self] == 0 {
			delete(requests, self)
		}
	}
}
