package programs

import (
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// TestProvisionerMetricsMatchUpstreamSidecar causes successes and
// failures of every call, and checks the events, metrics and labels that dashboards and
// alerts for the upstream sidecar use.
func TestProvisionerMetricsMatchUpstreamSidecar(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{NoProvisioner: true, DriverFlags: "--faults=../testdata/slow-faults.yaml"})
	sidecar := s.StartProvisioner(s.Driver, "provisioner", nil, "--leader-election", "--retry-interval-start=100ms")
	var events []happened
	expect := func(object metav1.Object, kind, reason string) {
		events = append(events, happened{object, kind, reason})
	}
	good := s.CreateClaim("claim", harness.DeleteClass)
	expect(good, v1.EventTypeNormal, "Provisioning")
	expect(good, v1.EventTypeNormal, "ProvisioningSucceeded")
	bad := s.CreateClaim("selective", harness.DeleteClass, func(c *v1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"no": "such"}}
	})
	expect(bad, v1.EventTypeWarning, "ProvisioningFailed")
	volume := s.AwaitBound("claim")
	s.DeleteVolume(volume.Name)
	s.DeleteClaim("claim")
	expect(volume, v1.EventTypeWarning, "VolumeFailedDelete") // see slow-faults.yaml
	s.AwaitVolumeGone(volume.Name)
	for _, event := range events {
		expectEvent(s, event)
	}
	text, _ := s.HTTPGet(sidecar, "/metrics")
	expectMetrics(s, text)
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/configz", "/flagz", "/"} {
		if _, status := s.HTTPGet(sidecar, path); status != http.StatusNotFound {
			t.Errorf("%s is served without its flag: %d", path, status)
		}
	}
}

// happened is an expected event.
type happened struct {
	object       metav1.Object
	kind, reason string
}

// expectEvent waits for the event, whose source must be of the form DRIVER_HOST_UUID.
func expectEvent(s *harness.Session, want happened) {
	s.T.Helper()
	host, err := os.Hostname()
	s.Must(err, "read host name")
	source := regexp.MustCompile("^" + regexp.QuoteMeta(s.Driver.DriverName+"_"+host) + "_[0-9a-f-]{36}$")
	s.AwaitEvent(want.object, want.reason)
	events, err := s.Client.CoreV1().Events(metav1.NamespaceAll).List(s.Ctx, metav1.ListOptions{})
	s.Must(err, "list events")
	for _, event := range events.Items {
		if event.InvolvedObject.UID == want.object.GetUID() && event.Reason == want.reason {
			if event.Type != want.kind || !source.MatchString(event.Source.Component) || event.Message == "" {
				s.T.Errorf("event %s is %+v, want type %s of component %s", want.reason, event, want.kind, source)
			}
		}
	}
}

// sample is a metric with labels, without its value.
var sample = regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*)\})? [0-9.e+-]+$`)

// label is a label of a sample.
var label = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)

type metricLabels map[string]string

// whatever is a label with any value.
const whatever = "*"

// expectMetrics checks for the metrics and labels that upstream's dashboards use.
func expectMetrics(s *harness.Session, text string) {
	s.T.Helper()
	served := map[string][]metricLabels{}
	for _, line := range sample.FindAllStringSubmatch(text, -1) {
		found := metricLabels{}
		for _, pair := range label.FindAllStringSubmatch(line[2], -1) {
			found[pair[1]] = pair[2]
		}
		served[line[1]] = append(served[line[1]], found)
	}
	for _, group := range wantedMetrics(s) {
		for name, want := range group {
			if !slices.ContainsFunc(served[name], want.match) {
				s.T.Errorf("there is no %s%v; there are %v", name, want, served[name])
			}
		}
	}
}

// wantedMetrics returns the labels by the name of the metric.
func wantedMetrics(s *harness.Session) []map[string]metricLabels {
	call := metricLabels{"driver_name": s.Driver.DriverName, "method_name": whatever, "grpc_status_code": whatever}
	of := func(queue string) metricLabels { return metricLabels{"name": queue} }
	claims, volumes := metricLabels{"class": harness.DeleteClass, "source": ""}, metricLabels{"class": harness.DeleteClass}
	wanted := []map[string]metricLabels{
		{"controller_persistentvolumeclaim_provision_total": claims},
		{"controller_persistentvolumeclaim_provision_failed_total": claims},
		histogram("controller_persistentvolumeclaim_provision_duration_seconds", claims),
		{"controller_persistentvolume_delete_total": volumes},
		{"controller_persistentvolume_delete_failed_total": volumes},
		histogram("controller_persistentvolume_delete_duration_seconds", volumes),
		histogram("csi_sidecar_operations_seconds", call),
		{"leader_election_master_status": of(harness.DriverLease)},
		{"promhttp_metric_handler_requests_total": metricLabels{"code": "200"}},
		{"promhttp_metric_handler_requests_in_flight": metricLabels{}},
	}
	for _, queue := range []string{"claims", "volumes"} {
		for _, gauge := range []string{"depth", "adds_total", "retries_total", "unfinished_work_seconds",
			"longest_running_processor_seconds"} {
			wanted = append(wanted, map[string]metricLabels{"workqueue_" + gauge: of(queue)})
		}
		wanted = append(wanted, histogram("workqueue_queue_duration_seconds", of(queue)),
			histogram("workqueue_work_duration_seconds", of(queue)))
	}
	return wanted
}

func histogram(name string, l metricLabels) map[string]metricLabels {
	bucket := maps.Clone(l)
	bucket["le"] = whatever
	return map[string]metricLabels{name + "_bucket": bucket, name + "_sum": l, name + "_count": l}
}

// match reports whether got has the same labels, with the same values unless any will do.
func (l metricLabels) match(got metricLabels) bool {
	for key, value := range l {
		if has, ok := got[key]; !ok || value != whatever && has != value {
			return false
		}
	}
	return len(got) == len(l)
}
