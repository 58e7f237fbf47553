package measure_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	. "github.com/exeunt-io/exeunt/test/bench/measure"
)

// metricsText is an extract of the /metrics of kube-apiserver v1.36.
const metricsText = `# HELP apiserver_request_total [STABLE] Counter of apiserver requests
# TYPE apiserver_request_total counter
apiserver_request_total{code="0",component="apiserver",dry_run="",group="",resource="persistentvolumes",scope="cluster",subresource="",verb="WATCH",version="v1"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="persistentvolumes",scope="resource",subresource="status",verb="PATCH",version="v1"} 7
apiserver_request_total{code="422",component="apiserver",dry_run="",group="",resource="persistentvolumes",scope="resource",subresource="",verb="PATCH",version="v1"} 3
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="",scope="",subresource="/metrics",verb="GET",version=""} 9
apiserver_request_total{code="200",component="apiserver",dry_run="",group="coordination.k8s.io",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 6
# HELP apiserver_selfrequest_total [ALPHA] Counter of apiserver self-requests
# TYPE apiserver_selfrequest_total counter
apiserver_selfrequest_total{group="coordination.k8s.io",resource="leases",subresource="",verb="PUT"} 5
# TYPE apiserver_request_duration_seconds histogram
apiserver_request_duration_seconds_bucket{le="+Inf"} 1
# TYPE apiserver_watch_events_sizes histogram
apiserver_watch_events_sizes_bucket{group="",resource="persistentvolumes",version="v1",le="1024"} 2
apiserver_watch_events_sizes_bucket{group="",resource="persistentvolumes",version="v1",le="+Inf"} 2
apiserver_watch_events_sizes_sum{group="",resource="persistentvolumes",version="v1"} 1500
apiserver_watch_events_sizes_count{group="",resource="persistentvolumes",version="v1"} 2
`

func TestParseMetrics(t *testing.T) {
	got, err := ParseMetrics(strings.NewReader(metricsText))
	if err != nil {
		t.Fatal(err)
	}
	want := Counters{
		Requests: Requests{
			{"PATCH", "persistentvolumes/status", 200}: 7,
			{"PATCH", "persistentvolumes", 422}:        3,
			{"PUT", "leases", 200}:                     1, // five are the server's own
		},
		WatchBytes: map[string]float64{"persistentvolumes": 1500},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ParseMetrics (-want +got):\n%s", diff)
	}
}

func TestParseCPU(t *testing.T) {
	const stat = "42 (a (name) b) S 1 42 42 0 -1 4194560 9 0 0 0 150 25 0 0 20 0 9 0 100 1 1 1"
	if got, err := ParseCPU([]byte(stat)); got != 1750*time.Millisecond || err != nil {
		t.Errorf("ParseCPU = %s, %v, want 1.75s", got, err)
	}
	for _, bad := range []string{"", "42 (name) S 1 2", "42 (name) S 1 2 3 4 5 6 7 8 9 10 x y 13"} {
		if _, err := ParseCPU([]byte(bad)); err == nil {
			t.Errorf("ParseCPU(%q) returned no error", bad)
		}
	}
}

func TestParsePeakMemory(t *testing.T) {
	if got, err := ParsePeakMemory([]byte("VmPeak:\t 9 kB\nVmHWM:\t    1024 kB\n")); got != 1<<20 || err != nil {
		t.Errorf("ParsePeakMemory = %d, %v, want 1 MiB", got, err)
	}
	if _, err := ParsePeakMemory([]byte("VmPeak: 9 kB\n")); err == nil {
		t.Error("a status without VmHWM returned no error")
	}
}

func TestParseAnonymousMemory(t *testing.T) {
	if got, err := ParseAnonymousMemory([]byte("VmRSS:\t    2048 kB\nRssAnon:\t    1024 kB\n")); got != 1<<20 || err != nil {
		t.Errorf("ParseAnonymousMemory = %d, %v, want 1 MiB", got, err)
	}
	if _, err := ParseAnonymousMemory([]byte("VmRSS: 9 kB\n")); err == nil {
		t.Error("a status without RssAnon returned no error")
	}
}

func TestParseMemory(t *testing.T) {
	if got, err := ParseMemory([]byte("VmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n")); got != 1<<20 || err != nil {
		t.Errorf("ParseMemory = %d, %v, want 1 MiB", got, err)
	}
	if _, err := ParseMemory([]byte("VmHWM: 9 kB\n")); err == nil {
		t.Error("a status without VmRSS returned no error")
	}
}

func TestPhaseIsPerVolumeWithoutLoadGenerator(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(after, server time.Duration) Sample {
		return Sample{Time: begin.Add(after), CPU: map[string]time.Duration{"API server": server}}
	}
	patch, post := Request{"PATCH", "persistentvolumes", 200}, Request{"POST", "persistentvolumeclaims", 201}
	w := Window{
		Begin: at(0, 100*time.Millisecond),
		Done:  at(2*time.Second, 200*time.Millisecond),
		End:   at(3*time.Second, 300*time.Millisecond),
		Before: Counters{Requests: Requests{patch: 5}, WatchBytes: map[string]float64{"persistentvolumes": 100},
			Calls: map[string]float64{"CreateVolume": 1}},
		After: Counters{Requests: Requests{patch: 25, post: 10}, WatchBytes: map[string]float64{"persistentvolumes": 700},
			Calls: map[string]float64{"CreateVolume": 11}},
		User: Counters{Requests: Requests{post: 10}, WatchBytes: map[string]float64{"persistentvolumes": 200}},
	}
	want := Phase{
		Name: "bind", Volumes: 10, Seconds: 2,
		CPU:      map[string]float64{"API server": 20},
		Requests: Requests{patch: 2}, WatchBytes: map[string]float64{"persistentvolumes": 40},
		Calls: map[string]float64{"CreateVolume": 1},
	}
	got := w.Phase("bind", 10)
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("Phase (-want +got):\n%s", diff)
	}
	if got.Rate() != 5 {
		t.Errorf("Rate = %v, want 5", got.Rate())
	}
}

func TestOnlyRefusedWritesAreRefused(t *testing.T) {
	requests := Requests{
		{"GET", "persistentvolumeclaims", 404}: 1,
		{"PATCH", "persistentvolumes", 422}:    2,
		{"PATCH", "persistentvolumes", 200}:    3,
		{"POST", "events", 500}:                4,
	}
	want := Requests{{"PATCH", "persistentvolumes", 422}: 2}
	if diff := cmp.Diff(want, requests.Refused()); diff != "" {
		t.Errorf("Refused (-want +got):\n%s", diff)
	}
	if sum := requests.Sum(Request.Writes); sum != 9 {
		t.Errorf("%v writes, want 9", sum)
	}
}

func TestQuantile(t *testing.T) {
	for name, tc := range map[string]struct {
		values      []float64
		share, want float64
	}{
		"nothing":          {nil, 0.5, 0},
		"odd":              {[]float64{3, 1, 2}, 0.5, 2},
		"even":             {[]float64{4, 1, 2, 3}, 0.5, 2.5},
		"largest":          {[]float64{1, 2, 3}, 1, 3},
		"between two":      {[]float64{0, 10}, 0.9, 9},
		"one value is all": {[]float64{7}, 0.9, 7},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Quantile(tc.values, tc.share); got != tc.want {
				t.Errorf("Quantile(%v, %v) = %v, want %v", tc.values, tc.share, got, tc.want)
			}
		})
	}
}
