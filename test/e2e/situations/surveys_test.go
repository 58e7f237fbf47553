package situations

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// TestNamespaceSurveyIsBounded has a namespace with thousands of objects and more than 60
// kinds: each kind is listed once, at most eight lists at a time.
func TestNamespaceSurveyIsBounded(t *testing.T) {
	const objects, definitions = 600, 30
	r := &place{Session: harness.Own(t, harness.Setup{NoPrograms: true}, harness.Within(3*harness.Timeout))}
	for i := range definitions {
		r.createCRD(fmt.Sprintf("kinds%d.situations.example", i), "Widget")
	}
	for i := range objects {
		r.createConfigMap(fmt.Sprintf("object-%04d", i), strangerFinalizer)
	}
	r.Must(r.Client.CoreV1().ConfigMaps(r.Namespace).DeleteCollection(r.Ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		"delete ConfigMaps")
	r.deleteNamespace()
	var now, most atomic.Int64
	var lists atomic.Int64
	report, requests := r.explainNamespace(func(next http.RoundTripper) http.RoundTripper {
		return recorder(func(request *http.Request) (*http.Response, error) {
			if strings.Contains(request.URL.RawQuery, "limit=") && strings.Contains(request.URL.Path, r.Namespace) {
				lists.Add(1)
			}
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			return next.RoundTrip(request)
		})
	})
	t.Logf("%d requests, %d lists of the namespace, at most %d at a time", requests, lists.Load(), most.Load())
	if requests > 200 {
		t.Errorf("%d requests for %d objects", requests, objects)
	}
	if most.Load() > 8 {
		t.Errorf("%d requests at a time, want at most 8", most.Load())
	}
	if report.Verdict != blocker.Unknown || len(report.Blockers) == 0 || len(report.Blockers) > 5 {
		t.Errorf("the verdict is %v with %d blockers, want unknown with a few", report.Verdict, len(report.Blockers))
	}
	if text := fmt.Sprint(report.Blockers); !strings.Contains(text,
		fmt.Sprintf("%d more objects of the kind ConfigMap", objects-3)) {
		t.Errorf("the blockers %s do not count the ConfigMaps", text)
	}
}

// explainNamespace explains the situation's namespace, and returns the number of requests.
func (r *place) explainNamespace(wrap func(http.RoundTripper) http.RoundTripper) (blocker.Report, int) {
	r.T.Helper()
	config := rest.CopyConfig(r.Plane.RESTConfig())
	config.Wrap(wrap)
	reader, err := cluster.NewReader(config)
	r.Must(err, "connect")
	started := reader.Now()
	ref := cluster.Ref{Resource: v1.SchemeGroupVersion.WithResource("namespaces"), Kind: "Namespace", Name: r.Namespace}
	report, err := why.NewExplorer(reader, cluster.Commands{}, false).Explain(r.Ctx, ref)
	r.Must(err, "explain")
	if took := reader.Now().Sub(started); took > 30*time.Second {
		r.T.Errorf("the survey took %v, want at most 30 s", took)
	}
	return report, reader.Requests()
}
