package garbage

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

func TestDebugGraph(t *testing.T) {
	t.Parallel()
	port := harness.FreePort(t)
	w := start(t, ours, false, fmt.Sprint("--secure-port=", port),
		"--authorization-always-allow-paths=/readyz,/debug/controllers/garbagecollector/graph,/metrics").world(t)
	owner := w.create(configMaps, "owner")
	dependent := w.create(secrets, "dependent", ownedBy(reference(owner)), finalizers(foreign))
	w.delete(configMaps, "owner", foreground)
	w.awaitDeleted(secrets, "dependent")
	page := func(path string) string { return w.page(port, path, http.StatusOK) }
	page("/readyz")
	var graph struct {
		Nodes []struct {
			UID, Name string
			BlockedBy []string
		}
		Edges []struct{ From, To string }
	}
	must(t, json.Unmarshal([]byte(page("/debug/controllers/garbagecollector/graph?format=json&uid="+
		string(owner.GetUID()))), &graph), "decode graph")
	if len(graph.Nodes) != 2 || len(graph.Edges) != 1 || graph.Edges[0].From != string(dependent.GetUID()) {
		t.Fatalf("got %+v", graph)
	}
	for _, node := range graph.Nodes {
		if node.Name == "owner" && (len(node.BlockedBy) != 1 || node.BlockedBy[0] != string(dependent.GetUID())) {
			t.Errorf("the owner is blocked by %v", node.BlockedBy)
		}
	}
	dot := page("/debug/controllers/garbagecollector/graph?uid=" + string(owner.GetUID()))
	if edge := fmt.Sprintf("%q -> %q;", dependent.GetUID(), owner.GetUID()); !strings.HasPrefix(dot,
		"strict digraph full {") || !strings.Contains(dot, edge) {
		t.Errorf("got %s", dot)
	}
	metrics := page("/metrics")
	for _, want := range []string{`garbage_collector_waiting_owners{policy="foreground"} 1`,
		"garbagecollector_controller_resources_sync_error_total", `name="garbage_collector_attempt_to_delete"`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	w.page(port, "/configz", http.StatusForbidden)
	w.setFinalizers(secrets, "dependent")
	w.awaitGone(configMaps, "owner")
}

// page returns what the collector serves to an anonymous client.
func (w *world) page(port int, path string, status int) string {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", port, path),
		nil)
	must(w.t, err, "make request")
	// The program creates its certificate at start, so clients cannot verify it.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true}}
	response, err := client.Do(request)
	must(w.t, err, "read "+path)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	must(w.t, err, "read "+path)
	if response.StatusCode != status {
		w.t.Fatalf("%s: %s: %s", path, response.Status, body)
	}
	return string(body)
}
