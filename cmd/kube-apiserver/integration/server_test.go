package integration

import (
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// metrics returns the lines of the counter for a group, without their names.
func (k kind) metrics() string {
	k.t.Helper()
	got := k.s.do(k.t, http.MethodGet, "/metrics", asJSON, nil)
	lines := regexp.MustCompile(`(?m)^apiserver_crd_graceful_deletion_total\{group="`+regexp.QuoteMeta(k.group)+
		`",outcome="(\w+)",resource="machines"\} (\d+)$`).
		FindAllStringSubmatch(got.text, -1)
	found := []string{}
	for _, line := range lines {
		found = append(found, line[1]+" "+line[2])
	}
	return strings.Join(found, ", ")
}

func TestMetricCountsRequestsByOutcome(t *testing.T) {
	k := newKind(t, ours(t), "metric.example.com")
	for _, name := range []string{"a", "b", "c"} {
		k.create(name, finalizer)
	}
	k.create("without")
	for _, request := range []struct {
		name  string
		grace any
		more  options
	}{
		{"a", 300, options{"dryRun": []string{"All"}}},                               // not counted
		{"a", 300, options{"preconditions": map[string]any{"resourceVersion": "1"}}}, // not counted
		{"a", 300, nil},     // granted
		{"a", "", nil},      // not counted
		{"a", 60, nil},      // shortened
		{"a", 90, nil},      // refused
		{"b", 300, nil},     // granted
		{"b", 0, nil},       // forced
		{"b", 10, nil},      // refused
		{"c", "", nil},      // not counted
		{"c", 300, nil},     // refused
		{"c", 0, nil},       // forced
		{"without", 5, nil}, // not counted, the object is gone
	} {
		k.delete(request.name, request.grace, request.more)
	}
	k.patch("a", withoutFinalizers)
	if got, want := k.metrics(), "forced 2, granted 2, refused 3, shortened 1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// deletionAtStock is what a stock API server says of a graceful deletion: the same deadline, and 0 seconds.
func deletionAtStock(t *testing.T, got answer, want deletion) {
	t.Helper()
	if found := deletionOf(got.body); found.kind != want.kind || !found.end.Equal(want.end) || found.field != 0 {
		t.Errorf("%d %+v, want %+v and 0 seconds\n%s", got.code, found, want, got.text)
	}
}

// #50 to #53, #55, #56: a stock API server beside ours, and ours with the gate off.
func TestServersWithoutGracefulDeletion(t *testing.T) {
	k := newKind(t, ours(t), "beside.example.com")
	for name, start := range map[string]func() (*server, error){"stock": shared.stock, "gate-off": shared.gateOff} {
		t.Run(name, func(t *testing.T) {
			k := k.in(t)
			other := k.at(mustServe(t, start)).await()
			k.create(name, finalizer)
			_, found := k.graceful(name, 300)
			_, revision := k.stored(name)
			deletionAtStock(t, other.get(name), found)
			for _, grace := range []any{"", 0, 10} { // #50
				got := other.delete(name, grace, nil)
				deletionAtStock(t, got, found)
				warned(t, got, "")
			}
			k.unchanged(name, revision)
			k.expect(k.get(name), name, found)
			if got := other.put(name, k.get(name).body); got.code != http.StatusUnprocessableEntity { // #53
				t.Errorf("%d %s", got.code, got.text)
			}
			if got := other.patch(name, withoutFinalizers); got.code != http.StatusOK { // #51
				t.Errorf("%d %s", got.code, got.text)
			}
			other.gone(name)

			k.create(name+"-live", finalizer) // #52
			if found := deletionOf(other.delete(name+"-live", 300, nil).body); found.kind != deadline.Unspecified {
				t.Errorf("%+v", found)
			}
			k.expect(k.get(name+"-live"), name+"-live", plain)
			if text := other.s.do(t, http.MethodGet, "/metrics", asJSON, nil).
				text; strings.Contains(text, "graceful_deletion_total") {
				t.Error("there is a metric of graceful deletion")
			}
		})
	}
}

// Exeunt rollback reads there whether the gate is off.
func TestMetricsSayWhetherGateIsOn(t *testing.T) {
	for value, start := range map[string]func() (*server, error){"1": shared.ours, "0": shared.gateOff} {
		got := mustServe(t, start).do(t, http.MethodGet, "/metrics", asJSON, nil)
		if line := `kubernetes_feature_enabled{name="CustomResourceGracefulDeletion",stage="BETA"} ` + value + "\n"; !strings.Contains(
			got.text, line) {
			t.Errorf("%d, without %s", got.code, line)
		}
	}
}

// A deletion without a grace period is the same at ours and at stock.
func TestPlainDeletionIsThatOfStock(t *testing.T) {
	k := newKind(t, ours(t), "plain.example.com")
	stock := k.at(mustServe(t, shared.stock)).await()
	values := map[string]string{}
	for name, k := range map[string]kind{"ours": k, "stock": stock} {
		k.create("a", finalizer)
		for range 2 {
			got := k.delete("a", "", nil)
			warned(t, got, "")
		}
		k.patch("a", `{"metadata":{"labels":{"a":"b"}}}`)
		text, _ := k.stored("a")
		values[name] = regexp.MustCompile(`"[0-9]{4}-[0-9T:-]+Z"|[0-9a-f-]{36}`).ReplaceAllString(text, "X")
		k.patch("a", withoutFinalizers)
		k.gone("a")
	}
	if values["ours"] != values["stock"] {
		t.Errorf("in etcd:\n%s\nat stock:\n%s", values["ours"], values["stock"])
	}
}

// The control plane beside it is that of the same version of Kubernetes.
func TestVersionNamesKubernetesAndExeunt(t *testing.T) {
	got := ours(t).do(t, http.MethodGet, "/version", asJSON, nil)
	version := fmt.Sprint(got.body.Object["gitVersion"])
	beside := mustServe(t, shared.stock).do(t, http.MethodGet, "/version", asJSON, nil)
	stock := fmt.Sprint(beside.body.Object["gitVersion"])
	want := regexp.MustCompile("^" + regexp.QuoteMeta(stock) + `\+exeunt\.\d+\.\d+\.\d+`)
	if !want.MatchString(version) || got.body.Object["minor"] != beside.body.Object["minor"] {
		t.Errorf("/version %s beside %s", got.text, stock)
	}
	printed, err := exec.CommandContext(t.Context(), program(), "--version").Output()
	if err != nil || string(printed) != "Kubernetes "+version+"\n" {
		t.Errorf("--version prints %q, %v; /version %s", printed, err, version)
	}
}
