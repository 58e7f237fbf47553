package garbagecollector

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// DebugPath is the path of the debugging page, StockDebugPath that under which kube-controller-manager serves it
// since its controllers were renamed.
const (
	DebugPath      = "/debug/controllers/garbagecollector/graph"
	StockDebugPath = "/debug/controllers/garbage-collector-controller/graph"
)

// ServeHTTP serves the graph as DOT, or as JSON with format=json. The parameter uid, which may
// be repeated, selects the objects that are connected with these.
func (c *Collector) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	var uids []types.UID
	for _, uid := range query["uid"] {
		uids = append(uids, types.UID(uid))
	}
	c.mu.Lock()
	vertices, edges := c.graph.Dump(uids...)
	c.mu.Unlock()
	graph.Sort(vertices, edges)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch format := query.Get("format"); format {
	case "json":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(struct {
			Nodes []graph.Vertex `json:"nodes"`
			Edges []graph.Edge   `json:"edges"`
			// OtherCollector: the last check found another garbage collector at work.
			OtherCollector bool `json:"otherCollector"`
			// UnreadKinds are kinds, and groups, that owners may wait for because they cannot be read.
			UnreadKinds []string `json:"unreadKinds"`
		}{vertices, edges, c.others.hasFound(), append([]string{}, c.barriers.unreadKinds()...)})
	case "", "dot":
		w.Header().Set("Content-Type", "text/vnd.graphviz")
		writeDOT(w, vertices, edges)
	default:
		http.Error(w, "format must be dot or json", http.StatusBadRequest)
	}
}

func writeDOT(w io.Writer, vertices []graph.Vertex, edges []graph.Edge) {
	fmt.Fprintln(w, "strict digraph full {")
	if len(vertices) > 0 {
		fmt.Fprintln(w, "  // Node definitions.")
	}
	for _, v := range vertices {
		fmt.Fprintf(w, "  %q [\n    label=%q\n", v.UID, label(v))
		for _, attribute := range [][2]string{
			{"group", v.Group}, {"version", v.Version}, {"kind", v.Kind}, {"namespace", v.Namespace}, {"name", v.Name},
			{"uid", string(v.UID)}, {"missing", fmt.Sprint(v.Missing)}, {"beingDeleted", fmt.Sprint(v.BeingDeleted)},
			{"deletingDependents", fmt.Sprint(v.DeletingDependents)},
			{"virtual", fmt.Sprint(v.Missing)},
		} {
			fmt.Fprintf(w, "    %s=%q\n", attribute[0], attribute[1])
		}
		fmt.Fprintln(w, "  ];")
	}
	if len(edges) > 0 {
		fmt.Fprintln(w, "  // Edge definitions.")
	}
	for _, e := range edges {
		fmt.Fprintf(w, "  %q -> %q;\n", e.From, e.To)
	}
	fmt.Fprintln(w, "}")
}

// label returns the text in the box of the object.
func label(v graph.Vertex) string {
	kind := v.Kind + "." + v.Version
	if v.Group != "" {
		kind += "." + v.Group
	}
	var conditions []string
	for _, c := range []struct {
		holds bool
		name  string
	}{
		{v.BeingDeleted, "beingDeleted"}, {v.DeletingDependents, "deletingDependents"}, {v.Orphaning, "orphaning"},
		{v.Missing, "virtual"},
	} {
		if c.holds {
			conditions = append(conditions, c.name)
		}
	}
	text := fmt.Sprintf("uid=%s\nnamespace=%s\n%s/%s\n", v.UID, v.Namespace, kind, v.Name)
	if len(conditions) > 0 {
		text += strings.Join(conditions, ",") + "\n"
	}
	return text
}
