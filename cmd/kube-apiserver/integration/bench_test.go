package integration

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// rounds is how often each comparison runs: its result is the median.
const rounds = 3

// bench is one kind at our server and at two stock ones, of which the second shows the noise.
type bench struct {
	b     *testing.B
	kinds map[string]kind
}

// sides are the servers in the order of the table.
var sides = []string{"ours", "stock", "stock again"}

// newBench starts the servers. The stock servers are the same program with the gate off: the server inside controlplane
// has other versions of upstream's modules.
func newBench(b *testing.B, group string) bench {
	b.Helper()
	starts := map[string]func() (*server, error){"ours": shared.ours, "stock": shared.gateOff,
		"stock again": shared.gateOffAgain}
	found := bench{b: b, kinds: map[string]kind{}}
	for _, side := range sides {
		s, err := starts[side]()
		if err != nil {
			b.Fatal(err)
		}
		found.kinds[side] = kind{group: group, s: s}
	}
	return found
}

// send sends a request and returns the time until the whole answer is there.
func (n bench) send(side, method, path, contentType, body string) time.Duration {
	n.b.Helper()
	k := n.kinds[side]
	request, err := http.NewRequestWithContext(n.b.Context(), method, k.s.url+path, strings.NewReader(body))
	if err != nil {
		n.b.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	began := time.Now()
	response, err := k.s.client.Do(request)
	if err != nil {
		n.b.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	took := time.Since(began)
	_ = response.Body.Close()
	if err != nil || response.StatusCode >= 300 {
		n.b.Fatalf("%s: %s %s: %d %.300s %v", side, method, path, response.StatusCode, text, err)
	}
	return took
}

// prepare creates the CRD.
func (n bench) prepare() *clientv3.Client {
	n.b.Helper()
	group := n.kinds["ours"].group
	n.send("ours", http.MethodPost, definitions, asJSON, crdOf(group, `"versions":[`+plainVersion+`]`))
	n.b.Cleanup(func() { n.attempt(http.MethodDelete, definitions+"/machines."+group, "") })
	for _, side := range sides {
		n.await(side, n.kinds[side].path(""), http.StatusOK)
	}
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{shared.endpoint}})
	if err != nil {
		n.b.Fatal(err)
	}
	n.b.Cleanup(func() { _ = etcd.Close() })
	return etcd
}

// attempt sends a request whose answer does not matter, also after the benchmark.
func (n bench) attempt(method, path, body string) {
	url := n.kinds["ours"].s.url + path
	request, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		return
	}
	request.Header.Set("Content-Type", asJSON)
	if response, err := n.kinds["ours"].s.client.Do(request); err == nil {
		_ = response.Body.Close()
	}
}

// await waits until a server answers the GET of a path with a code.
func (n bench) await(side, path string, code int) {
	n.b.Helper()
	for began := time.Now(); time.Since(began) < patience; <-time.After(50 * time.Millisecond) {
		response, err := n.kinds[side].s.client.Get(n.kinds[side].s.url + path)
		if err != nil {
			n.b.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode == code {
			return
		}
	}
	n.b.Fatalf("%s: GET %s is never %d", side, path, code)
}

// fill stores objects with a finalizer in etcd for each server, past the servers.
func (n bench) fill(etcd *clientv3.Client, round, count int) {
	n.b.Helper()
	k := n.kinds["ours"]
	pattern := `{"apiVersion":"` + k.group + `/v1","kind":"Machine","metadata":{` +
		`"creationTimestamp":"2026-01-01T00:00:00Z","finalizers":["` + finalizer + `"],"generation":1,"name":%q,` +
		`"namespace":%q,"uid":"00000000-0000-4000-8000-%02d%02d%08d"},"spec":{"a":"b"}}` + "\n"
	for number, side := range sides {
		space := path.Dir(objectOf(side, round, 0))
		n.attempt(http.MethodPost, "/api/v1/namespaces", fmt.Sprintf(`{"metadata":{"name":%q}}`, space))
		var puts []clientv3.Op
		for i := range count {
			name := objectOf(side, round, i)
			puts = append(puts, clientv3.OpPut("/registry/"+k.group+"/machines/"+name,
				fmt.Sprintf(pattern, path.Base(name), path.Dir(name), number, round, i)))
			if len(puts) == 100 || i == count-1 {
				if _, err := etcd.Txn(n.b.Context()).Then(puts...).Commit(); err != nil {
					n.b.Fatal(err)
				}
				puts = nil
			}
		}
	}
	for _, side := range sides { // the watch cache has seen the last object
		n.await(side, n.path(objectOf(sides[2], round, count-1)), http.StatusOK)
	}
}

// objectOf returns the namespace and the name of an object. Each server has a namespace for each round.
func objectOf(side string, round, i int) string {
	return fmt.Sprintf("%s-%d/a-%06d", strings.ReplaceAll(side, " ", "-"), round, i)
}

// path returns the path of an object, or of all objects of a namespace.
func (n bench) path(object string) string {
	space, name, _ := strings.Cut(object, "/")
	return strings.TrimSuffix("/apis/"+n.kinds["stock"].group+"/v1/namespaces/"+space+"/machines/"+name, "/")
}

// operations are the requests of the table, in the order in which an object gets them. Every second object is deleted
// with a grace period.
var operations = []struct {
	name                      string
	only                      int // the rest of the number of the object, -1 for any
	method, contentType, body string
}{
	{"PATCH of a live object", -1, http.MethodPatch, asMerge, `{"metadata":{"labels":{"l":"1"}}}`},
	{"GET", -1, http.MethodGet, asJSON, ""},
	{"DELETE, plain", 0, http.MethodDelete, asJSON, ""},
	{"DELETE with g", 1, http.MethodDelete, asJSON, `{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":300}`},
	{"last finalizer, plain", 0, http.MethodPatch, asMerge, withoutFinalizers},
	{"last finalizer, in grace", 1, http.MethodPatch, asMerge, withoutFinalizers},
}

// times are the durations of requests, by operation and server.
type times map[string]map[string][]time.Duration

func (t times) add(operation, side string, took time.Duration) {
	if t[operation] == nil {
		t[operation] = map[string][]time.Duration{}
	}
	t[operation][side] = append(t[operation][side], took)
}

// p50 returns the median of the durations in microseconds.
func (t times) p50(operation, side string) float64 {
	return float64(median(t[operation][side])) / float64(time.Microsecond)
}

func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// turn sends an operation for the i-th object to each server; each is the first as often as the others.
func (n bench) turn(found times, round, i, operation int) {
	o := operations[operation]
	if o.only >= 0 && i%2 != o.only {
		return
	}
	for j := range sides {
		side := sides[(i/2+j)%len(sides)]
		found.add(o.name, side, n.send(side, o.method, n.path(objectOf(side, round, i)), o.contentType, o.body))
	}
}

// BenchmarkAgainstStock sends the same requests by turns to our server and to two stock ones on one etcd. It prints the
// p50 of each, the median of the rounds, as a part of the first stock server's: make bench-apiserver.
func BenchmarkAgainstStock(b *testing.B) {
	n := newBench(b, fmt.Sprintf("n%d.bench.example.com", b.N))
	etcd := n.prepare()
	var all []times
	for round := range rounds {
		found := times{}
		n.fill(etcd, round, 2*b.N)
		for operation := range operations {
			if operation == 4 { // half of the objects are in grace
				n.lists(found, round, max(b.N/20, 1))
			}
			for i := range 2 * b.N {
				n.turn(found, round, i, operation)
			}
		}
		all = append(all, found)
	}
	if b.N > 1 {
		report(b, all)
	}
}

// lists lists the objects of our server at each server.
func (n bench) lists(found times, round, count int) {
	objects := n.path(path.Dir(objectOf(sides[0], round, 0))) + "?resourceVersion=0"
	for i := range count {
		for j := range sides {
			side := sides[(i+j)%len(sides)]
			found.add(listed, side, n.send(side, http.MethodGet, objects, asJSON, ""))
		}
	}
}

const listed = "LIST, half in grace"

// report prints the table.
func report(b *testing.B, all []times) {
	b.Helper()
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer func() { _ = table.Flush() }()
	_, _ = fmt.Fprintf(table, "p50, median of %d rounds of %d requests\tstock\tours / stock\tstock / stock\n", rounds, b.N)
	names := []string{listed}
	for _, o := range operations {
		names = append(names, o.name)
	}
	for _, name := range names {
		var stock, ours, again []float64
		for _, found := range all {
			base := found.p50(name, "stock")
			stock, ours = append(stock, base), append(ours, found.p50(name, "ours")/base)
			again = append(again, found.p50(name, "stock again")/base)
		}
		_, _ = fmt.Fprintf(table, "%s\t%.0f µs\t%.3f (%.3f to %.3f)\t%.3f (%.3f to %.3f)\n", name, median(stock),
			median(ours), slices.Min(ours), slices.Max(ours), median(again), slices.Min(again), slices.Max(again))
	}
}

// BenchmarkChurnOfCRDs creates and deletes 50 CRDs with an object in its grace period each, three times, and prints
// what is left of goroutines and memory at our server and at a stock one.
func BenchmarkChurnOfCRDs(b *testing.B) {
	n := newBench(b, "churn.example.com")
	for round := range rounds {
		var groups []string
		for i := range 50 {
			groups = append(groups, fmt.Sprintf("c%d-%d-%d.example.com", b.N, round, i))
		}
		for batch := range slices.Chunk(groups, 10) {
			n.churn(batch)
		}
		for _, side := range sides[:2] {
			goroutines, heap := n.usage(side)
			fmt.Printf("after %d CRDs: %s has %d goroutines, %d MB of heap\n", 50*(round+1), side, goroutines, heap>>20)
		}
	}
}

// churn creates CRDs and an object of each, deletes all, removes the finalizers, and waits until the CRDs are gone.
func (n bench) churn(groups []string) {
	n.b.Helper()
	for _, group := range groups {
		n.send("ours", http.MethodPost, definitions, asJSON, crdOf(group, `"versions":[`+plainVersion+`]`))
	}
	for _, group := range groups {
		k := kind{group: group}
		for _, side := range sides[:2] {
			n.await(side, k.path(""), http.StatusOK)
		}
		object := fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Machine","metadata":{"name":"a","finalizers":[%q]}}`, group,
			finalizer)
		n.send("ours", http.MethodPost, k.path(""), asJSON, object)
		n.send("ours", http.MethodDelete, k.path("a")+"?gracePeriodSeconds=300", asJSON, "")
		n.await("stock", k.path("a"), http.StatusOK)
	}
	for _, group := range groups {
		n.send("ours", http.MethodDelete, definitions+"/machines."+group, asJSON, "")
		n.send("ours", http.MethodPatch, kind{group: group}.path("a"), asMerge, withoutFinalizers)
	}
	for _, group := range groups {
		for _, side := range sides[:2] {
			n.await(side, kind{group: group}.path(""), http.StatusNotFound)
		}
	}
}

// usage returns the goroutines and the bytes of heap of a server after a garbage collection.
func (n bench) usage(side string) (goroutines, heap int) {
	n.b.Helper()
	k := n.kinds[side]
	for path, find := range map[string]func(text string){
		"/debug/pprof/heap?gc=1&debug=1": func(text string) {
			heap, _ = strconv.Atoi(regexp.MustCompile(`# HeapAlloc = (\d+)`).FindStringSubmatch(text)[1])
		},
		"/debug/pprof/goroutine?debug=1": func(text string) {
			goroutines, _ = strconv.Atoi(regexp.MustCompile(`total (\d+)`).FindStringSubmatch(text)[1])
		},
	} {
		response, err := k.s.client.Get(k.s.url + path)
		if err != nil {
			n.b.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			n.b.Fatal(err)
		}
		find(string(text))
	}
	return goroutines, heap
}
