package runner

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/rollback"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

const (
	usual  = "2026-01-02T03:04:05Z/2026-01-02T03:09:05Z"
	other  = "2026-01-02T03:04:05+00:00/2026-01-02T03:09:05+00:00"
	force  = "2026-01-02T03:04:05Z/2026-01-02T03:04:05Z"
	config = "configmaps"
)

// machines is an API server with custom resources, and the patches that it got.
type machines struct {
	t       *testing.T
	version string
	// windows are the annotations of the machines, by their names.
	windows map[string]string
	patches []string
	// seconds is the grace period in the field, as our API server serves it.
	seconds int64
	// denies is the status of each patch, 0 if they are accepted.
	denies int
	// metrics are those of the API server, "" without the right to read them.
	metrics string
}

// connect is that of Options.
func (m *machines) connect() (*cluster.Reader, error) {
	verbs := metav1.Verbs{"list", "patch"}
	return clustertest.NewReader(m.t, clustertest.Discovery{Next: m, Served: map[string][]metav1.APIResource{
		"v1": {{Name: config, Kind: "ConfigMap", Verbs: verbs}},
		"example.com/v1": {{Name: "machines", Kind: "Machine", Namespaced: true, Verbs: verbs},
			{Name: "machines/status", Kind: "Machine", Verbs: metav1.Verbs{"patch"}}},
		"aggregated.example.com/v1": {}, // does not answer
	}}.ServeHTTP), nil
}

func (m *machines) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/version":
		_, _ = fmt.Fprintf(w, `{"gitVersion":%q}`, m.version)
	case r.URL.Path == "/metrics" && m.metrics != "":
		_, _ = io.WriteString(w, m.metrics)
	case r.URL.Path == "/metrics":
		w.WriteHeader(http.StatusForbidden)
	case strings.HasSuffix(r.URL.Path, config):
		m.t.Error("a built-in kind is listed")
	case r.Method == http.MethodPatch && m.denies > 0:
		w.WriteHeader(m.denies)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":%d,"message":"denied"}`, m.denies)
	case r.Method == http.MethodPatch:
		m.patch(w, r)
	case strings.HasSuffix(r.URL.Path, "/machines"):
		list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1",
			Kind: "PartialObjectMetadataList"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
		for name := range m.windows {
			list.Items = append(list.Items, m.machine(name))
		}
		m.write(w, list)
	default:
		clustertest.Objects{}.ServeHTTP(w, r)
	}
}

func (m *machines) write(w http.ResponseWriter, answer any) {
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		m.t.Error(err)
	}
}

func (m *machines) machine(name string) metav1.PartialObjectMetadata {
	deleted := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(m.seconds) * time.Second))
	return metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Machine"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID("uid-" + name),
			DeletionTimestamp: &deleted, DeletionGracePeriodSeconds: &m.seconds, Annotations: map[string]string{deadline.Annotation: m.windows[name]}}}
}

func (m *machines) patch(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		m.t.Error(err)
	}
	m.patches = append(m.patches, r.URL.Path+" "+string(body))
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	m.windows[name] = other
	m.write(w, m.machine(name))
}

func (m *machines) run(confirm bool) (Plan, error) {
	m.t.Helper()
	return Run(m.t.Context(), Options{Connect: m.connect, Confirm: confirm, Timeout: time.Minute, Progress: io.Discard})
}

// stepOf returns the step of the deletion windows.
func stepOf(plan Plan) Step { return plan.Steps[8] }

// #53: each object in its grace period is changed once.
func TestWindowsAreRewrittenOnce(t *testing.T) {
	m := &machines{t: t, version: "v1.36.3", windows: map[string]string{"a": usual, "b": other, "c": force, "d": ""}}
	plan, err := m.run(false)
	if step := stepOf(plan); err != nil || step.State != rollback.Pending || len(step.Items) != 1 || len(m.patches) > 0 {
		t.Fatalf("error %v, %+v, patches %q", err, step, m.patches)
	}
	plan, err = m.run(true)
	const want = `/apis/example.com/v1/namespaces/lab/machines/a [{"op":"test","path":"/metadata/uid","value":"uid-a"},` +
		`{"op":"test","path":"/metadata/deletionTimestamp","value":"2026-01-02T03:04:05Z"},` +
		`{"op":"test","path":"/metadata/annotations/exeunt.io~1deletion-window","value":"` + usual + `"},` +
		`{"op":"add","path":"/metadata/annotations/exeunt.io~1deletion-window","value":"` + other + `"}]`
	if err != nil || len(m.patches) != 1 || m.patches[0] != want {
		t.Errorf("error %v, patches %q, want %s", err, m.patches, want)
	}
	if step := stepOf(plan); step.State != rollback.Done || plan.Outcome() != rollback.NothingLeft {
		t.Errorf("after the rewrite: %+v\n%s", step, plan.text(80))
	}
	if plan, err = m.run(true); err != nil || len(m.patches) != 1 || plan.Outcome() != rollback.NothingLeft {
		t.Errorf("another run: error %v, patches %q", err, m.patches)
	}
}

func TestWindowsStayAtOurServer(t *testing.T) {
	m := &machines{t: t, version: "v1.36.3+exeunt.0.2.0", seconds: 300, windows: map[string]string{"a": usual}}
	plan, err := m.run(true)
	step := stepOf(plan)
	if err != nil || step.State != rollback.Blocked || len(m.patches) > 0 || plan.Outcome() != rollback.SomethingLeft {
		t.Errorf("error %v, %+v, patches %q", err, step, m.patches)
	}
	if text := strings.Join(strings.Fields(string(plan.text(80))), " "); !strings.Contains(text,
		"9. blocked Rewrite deadlines of custom resources The API server is that of Exeunt: put kube-apiserver of upstream back") {
		t.Errorf("printed:\n%s", plan.text(80))
	}
}

// With the gate off our program serves objects as in etcd, as the machines here are served: informers need the event.
func TestWindowsAreRewrittenWithGateOff(t *testing.T) {
	m := &machines{t: t, version: "v1.36.3+exeunt.0.2.0", windows: map[string]string{"a": usual}}
	plan, err := m.run(false)
	if text := string(plan.text(200)); err != nil || !strings.Contains(text,
		"Do not confirm while another API server is that of Exeunt with its gate on.") {
		t.Errorf("error %v\n%s", err, text)
	}
	for range 2 { // another run finds the annotation rewritten
		plan, err := m.run(true)
		if step := stepOf(plan); err != nil || step.State != rollback.Done || len(m.patches) != 1 {
			t.Errorf("error %v, step %v, patches %q\n%s", err, step.State, m.patches, plan.text(80))
		}
	}
}

// An administrator who turns the gate off runs the command until nothing is left.
func TestGateThatIsOffLeavesNothing(t *testing.T) {
	const metrics = "# TYPE kubernetes_feature_enabled gauge\n" + `kubernetes_feature_enabled{name="AnyVolumeDataSource",stage=""} 1
kubernetes_feature_enabled{name="CustomResourceGracefulDeletion",stage="BETA"} `
	for name, tc := range map[string]struct {
		metrics string
		want    rollback.Outcome
	}{
		"off":             {metrics + "0\n", rollback.NothingLeft},
		"on":              {metrics + "1\n", rollback.SomethingLeft},
		"another version": {"up 1\n", rollback.SomethingLeft},
		"no right":        {"", rollback.SomethingLeft},
	} {
		t.Run(name, func(t *testing.T) {
			m := &machines{t: t, version: "v1.36.3+exeunt.0.2.0", windows: map[string]string{}, metrics: tc.metrics}
			if plan, err := m.run(true); err != nil || plan.Outcome() != tc.want {
				t.Errorf("%v, error %v\n%s", plan.Outcome(), err, plan.text(80))
			}
		})
	}
}

// A program copies the annotations of a custom resource that is being deleted to the claims that it makes.
func TestCopiedWindowIsNothingOfExeunt(t *testing.T) {
	s := observed(t, nil)
	volume, claim := &corev1.PersistentVolume{}, &corev1.PersistentVolumeClaim{}
	for _, object := range []metav1.Object{volume, claim} {
		object.SetAnnotations(map[string]string{deadline.Annotation: usual})
	}
	s.addVolume(t.Context(), volume)
	s.addClaim(claim)
	if len(s.own.items) > 0 || hasOwn(claim) {
		t.Errorf("%v", s.own.items)
	}
}

// The other programs of Exeunt stay: nothing of them is read.
func TestServerAloneGoesBack(t *testing.T) {
	m := &machines{t: t, version: "v1.36.3", windows: map[string]string{"a": usual}}
	plan, err := Run(t.Context(), Options{Connect: m.connect, Confirm: true, DeadlinesOnly: true, Timeout: time.Minute,
		Progress: io.Discard})
	if err != nil || len(m.patches) != 1 || plan.Outcome() != rollback.NothingLeft || len(plan.Steps) != 1 ||
		plan.Steps[0].Number != 9 {
		t.Errorf("error %v, patches %q\n%s", err, m.patches, plan.text(80))
	}
	if strings.Contains(string(plan.text(80)), "uninstalled") {
		t.Errorf("the manifests can be uninstalled:\n%s", plan.text(80))
	}
}

func TestRefusedRewriteIsTold(t *testing.T) {
	m := &machines{t: t, version: "v1.36.3", windows: map[string]string{"a": usual}, denies: http.StatusForbidden}
	_, err := m.run(true)
	if want := "rewrite annotation exeunt.io/deletion-window of Machine lab/a: denied"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
