package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// scalable is a version with both subresources.
var scalable = strings.Replace(plainVersion, `"status":{}`,
	`"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}`, 1)

// sequences is how many sequences of requests each comparison runs.
const sequences = 40

// graces are any grace periods, in range and beyond it.
var graces = []string{"", "0", "1", "300", "-5", "9223372036854775807", `"300s"`, "1.5"}

// Without a grace period in any request, our server is a stock one: in answers, events and in etcd.
func TestWithoutGracePeriodServerIsStock(t *testing.T) {
	k := newKindWith(t, ours(t), "ungraced.example.com", `"versions":[`+scalable+`]`)
	compare(t, k, []string{""})
}

// With the gate off the same holds for any grace period.
func TestWithGateOffServerIsStock(t *testing.T) {
	k := newKindWith(t, mustServe(t, shared.gateOff), "gated.example.com", `"versions":[`+scalable+`]`)
	compare(t, k, graces)
}

// compare runs each sequence at the server of the kind and at a stock one, in namespaces of their own.
func compare(t *testing.T, k kind, graces []string) {
	t.Helper()
	left, right := k.await(), k.at(mustServe(t, shared.stock)).await()
	leftEvents, rightEvents := left.record(left.version()), right.record(right.version())
	differences := 0
	for seed := range sequences {
		requests := steps(uint64(seed), k.group, graces)
		ours, stock := left.play("left", seed, requests), right.play("right", seed, requests)
		for i := range requests {
			if ours[i] != stock[i] && differences < 5 {
				t.Errorf("sequence %d, after %v\n%s: ours\n%s\nstock\n%s", seed, requests[:i], requests[i], ours[i], stock[i])
				differences++
				break
			}
		}
	}
	left.create(sentinel)
	ours, stock := <-leftEvents, <-rightEvents
	total := 0
	for seed := range sequences {
		found, want := ours[namespace("left", seed)], stock[namespace("right", seed)]
		if total += len(want); !slices.Equal(found, want) {
			t.Errorf("events of sequence %d: ours\n%s\nstock\n%s", seed, strings.Join(found, "\n"), strings.Join(want, "\n"))
		}
	}
	if total < 4*sequences {
		t.Errorf("%d events of %d sequences: the requests change nothing", total, sequences)
	}
	t.Logf("%d sequences, %d events", sequences, total)
}

func namespace(side string, seed int) string { return fmt.Sprintf("%s-%02d", side, seed) }

// sentinel is the object after which the record of events ends.
const sentinel = "end"

// version returns the version of the list of all objects.
func (k kind) version() string {
	k.t.Helper()
	return k.list().GetResourceVersion()
}

// record returns the events of each namespace from a version on, once the sentinel was created.
func (k kind) record(version string) <-chan map[string][]string {
	k.t.Helper()
	request, err := http.NewRequestWithContext(k.t.Context(), http.MethodGet,
		k.s.url+"/apis/"+k.group+"/v1/machines?watch=true&resourceVersion="+version, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	done := make(chan map[string][]string, 1)
	go func() { done <- k.eventsOf(request) }()
	return done
}

// eventsOf returns the events of a watch by namespace, until the sentinel was created.
func (k kind) eventsOf(request *http.Request) map[string][]string {
	response, err := k.s.client.Do(request)
	if err != nil {
		k.t.Error(err)
		return nil
	}
	defer func() { _ = response.Body.Close() }()
	found := map[string][]string{}
	scanner := bufio.NewScanner(response.Body)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		event := &unstructured.Unstructured{}
		if err := json.Unmarshal(scanner.Bytes(), &event.Object); err != nil {
			k.t.Error(err)
			break
		}
		changed := object(event)
		if changed.GetName() == sentinel {
			break
		}
		space := changed.GetNamespace()
		found[space] = append(found[space], canonical(k.t, scanner.Text(), space))
	}
	return found
}

// play runs the requests in a namespace, and returns of each what the client sees and what is in etcd then.
func (k kind) play(side string, seed int, requests []step) []string {
	k.t.Helper()
	space := namespace(side, seed)
	if got := k.s.do(k.t, http.MethodPost, "/api/v1/namespaces", asJSON,
		map[string]any{"metadata": map[string]any{"name": space}}); got.code != http.StatusCreated &&
		got.code != http.StatusConflict { // of the other comparison
		k.t.Fatalf("%d %s", got.code, got.text)
	}
	var seen []string
	for _, request := range requests {
		got := k.request(space, request)
		text := fmt.Sprintf("%d %q\n%s\nin etcd:\n%s", got.code, got.warnings, got.text, k.values(space))
		seen = append(seen, canonical(k.t, text, space))
	}
	return seen
}

// request sends a request of a sequence.
func (k kind) request(space string, request step) answer {
	k.t.Helper()
	path := "/apis/" + k.group + "/v1/namespaces/" + space + "/machines"
	if request.name != "" {
		path += "/" + request.name
	}
	var body any
	if request.body != "" {
		body = request.body
	}
	if request.edit != nil {
		resource, _, _ := strings.Cut(path+request.rest, "?")
		read := k.s.do(k.t, http.MethodGet, resource, asJSON, nil)
		if read.code != http.StatusOK {
			return read
		}
		request.edit(read.body)
		body = read.body.Object
	}
	return k.s.do(k.t, request.method, path+request.rest, request.contentType, body)
}

// values returns all values of a namespace in etcd, with how often each was written.
func (k kind) values(space string) string {
	k.t.Helper()
	found, err := k.etcd.Get(k.t.Context(), "/registry/"+k.group+"/machines/"+space+"/", clientv3.WithPrefix())
	if err != nil {
		k.t.Fatal(err)
	}
	var text strings.Builder
	for _, value := range found.Kvs {
		fmt.Fprintf(&text, "%s written %d times\n%s", value.Key, value.Version, value.Value)
	}
	return text.String()
}

// varying is what differs between two runs of the same requests.
var varying = map[*regexp.Regexp]string{
	regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`): "UID",
	regexp.MustCompile(`"resourceVersion":"\d+"`):   `"resourceVersion":"N"`,
	regexp.MustCompile(`in record \(\d+\)`):         "in record (N)",
}

var timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// canonical returns a text without what differs between two runs. No time in it may be ahead: there is no deadline.
func canonical(t *testing.T, text, space string) string {
	lines := strings.Split(strings.ReplaceAll(text, space, "NAMESPACE"), "\n")
	for i := range lines {
		lines[i] = sortManagers(lines[i])
		lines[i] = timestamp.ReplaceAllStringFunc(lines[i], func(text string) string {
			if at, err := time.Parse(time.RFC3339, text); err != nil || at.Year() != 2030 && time.Until(at) > 2*time.Second {
				t.Errorf("%s is ahead, %v", text, err)
			}
			return "TIME"
		})
		for pattern, with := range varying {
			lines[i] = pattern.ReplaceAllString(lines[i], with)
		}
	}
	return strings.Join(lines, "\n")
}

// sortManagers orders the managed fields of all objects in a line of JSON: the server orders them by time.
func sortManagers(line string) string {
	var decoded any
	if json.Unmarshal([]byte(line), &decoded) != nil {
		return line
	}
	sortIn(decoded)
	encoded, err := json.Marshal(decoded)
	if err != nil {
		return line
	}
	return string(encoded)
}

func sortIn(value any) {
	switch value := value.(type) {
	case map[string]any:
		if managers, ok := value["managedFields"].([]any); ok {
			slices.SortFunc(managers, func(a, b any) int { return strings.Compare(manager(a), manager(b)) })
		}
		for _, inner := range value {
			sortIn(inner)
		}
	case []any:
		for _, inner := range value {
			sortIn(inner)
		}
	}
}

// manager returns what identifies an entry of the managed fields.
func manager(entry any) string {
	fields, _ := entry.(map[string]any)
	return fmt.Sprint(fields["manager"], fields["operation"], fields["subresource"])
}
