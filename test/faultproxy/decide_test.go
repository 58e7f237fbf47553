package faultproxy

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// newDecider returns a decider with the rate for all kinds.
func newDecider(seed uint64, rates Rates) *decider {
	d := &decider{program: "test", seed: seed, maxDelay: time.Second, ordinals: map[string]int{}}
	d.setRates(rates)
	return d
}

// parse returns a request of the program.
func parse(t *testing.T, method, path, body string) *request {
	t.Helper()
	parsed, err := readRequest(httptest.NewRequest(method, path, strings.NewReader(body)))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// faultsOf returns the faults of the requests in this order, by key and ordinal.
func faultsOf(d *decider, requests []*request) map[string][]Fault {
	found := map[string][]Fault{}
	for _, r := range requests {
		made := d.decide(r)
		fault := made.fault
		d.draw(made, watchKinds, func(Kind) bool { return true })
		found[r.key()] = append(found[r.key()], fault, made.fault)
	}
	return found
}

func someRequests(t *testing.T) []*request {
	var requests []*request
	for range 100 {
		requests = append(requests, parse(t, http.MethodGet, claims, ""), parse(t, http.MethodPatch, claim, ""),
			parse(t, http.MethodPut, claim+"/status", object), parse(t, http.MethodPost, claims, object))
	}
	return requests
}

func TestDecisionsDependOnSeedNotOnOrder(t *testing.T) {
	requests := someRequests(t)
	rates := Rates{Faults: Uniform(0.1)}
	first := faultsOf(newDecider(1, rates), requests)
	slices.Reverse(requests)
	equal := func(a, b []Fault) bool { return slices.Equal(a, b) }
	if again := faultsOf(newDecider(1, rates), requests); !maps.EqualFunc(first, again, equal) {
		t.Errorf("with the same seed: %v, then %v", first, again)
	}
	if other := faultsOf(newDecider(2, rates), requests); maps.EqualFunc(first, other, equal) {
		t.Errorf("with another seed: the same %v", first)
	}
}

func TestChosenFaultReplacesRates(t *testing.T) {
	d := newDecider(1, Rates{})
	d.choose = func(of Fault) Kind {
		if of.Resource == "persistentvolumeclaims" && of.Name != "" && of.Ordinal == 1 {
			return CutAfter
		}
		return ""
	}
	for _, tc := range []struct {
		method, path string
		want         Kind
	}{
		{http.MethodPatch, claim, ""}, {http.MethodPatch, claim, CutAfter}, {http.MethodPatch, claim, ""},
		{http.MethodGet, claim, ""}, {http.MethodGet, claim, ""}, // no effect that could be lost
	} {
		if made := d.decide(parse(t, tc.method, tc.path, object)); made.fault.Kind != tc.want {
			t.Errorf("%s %s: %q, want %q", tc.method, tc.path, made.fault.Kind, tc.want)
		}
	}
}

func TestProgramsMeetDifferentFaults(t *testing.T) {
	rates := Rates{Faults: Uniform(0.1)}
	other := newDecider(1, rates)
	other.program = "other"
	requests := someRequests(t)
	kinds := func(d *decider) (kinds []Kind) {
		for _, r := range requests {
			kinds = append(kinds, d.decide(r).fault.Kind)
		}
		return kinds
	}
	if a, b := kinds(newDecider(1, rates)), kinds(other); slices.Equal(a, b) {
		t.Errorf("both programs meet %v", a)
	}
}

func TestRateOfOneKindLeavesOthers(t *testing.T) {
	requests := someRequests(t)
	decide := func(rates map[Kind]float64) (cut []int) {
		d := newDecider(1, Rates{Faults: rates})
		for i, r := range requests {
			if d.decide(r).fault.Kind == CutBefore {
				cut = append(cut, i)
			}
		}
		return cut
	}
	alone := decide(map[Kind]float64{CutBefore: 0.2})
	if beside := decide(map[Kind]float64{CutBefore: 0.2, Outage: 0.5}); !slices.Equal(alone, beside) || len(alone) < 40 ||
		len(alone) > 120 {
		t.Errorf("of %d requests: %v alone, %v beside another kind", len(requests), alone, beside)
	}
}

func TestLeaderLeasesHaveOwnRates(t *testing.T) {
	const leases = "/apis/coordination.k8s.io/v1/namespaces/n/leases/"
	rates := Rates{Faults: map[Kind]float64{InternalError: 1}, Leases: map[Kind]float64{Timeout: 1}}
	for name, want := range map[string]struct {
		names          []string
		leader, others Kind
	}{
		"all":   {nil, Timeout, Timeout},
		"named": {[]string{"leader"}, Timeout, InternalError},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDecider(1, rates)
			d.leases = want.names
			if got := d.decide(parse(t, http.MethodPut, leases+"leader", object)).fault.Kind; got != want.leader {
				t.Errorf("the leader's Lease: %s", got)
			}
			if got := d.decide(parse(t, http.MethodPut, leases+"journal", object)).fault.Kind; got != want.others {
				t.Errorf("another Lease: %s", got)
			}
			if got := d.decide(parse(t, http.MethodGet, claim, "")).fault.Kind; got != InternalError {
				t.Errorf("another resource: %s", got)
			}
		})
	}
}

func TestRequestsAreCountedByName(t *testing.T) {
	uid := "0f4ab1c2-1111-2222-3333-444455556666"
	another := "1f4ab1c2-1111-2222-3333-444455556666"
	volumes := "/api/v1/persistentvolumes"
	for name, c := range map[string]struct {
		a, b  *request
		equal bool
	}{
		"other names":     {parse(t, http.MethodGet, claims+"/a", ""), parse(t, http.MethodGet, claims+"/b", ""), false},
		"other verbs":     {parse(t, http.MethodGet, claim, ""), parse(t, http.MethodPut, claim, object), false},
		"list and watch":  {parse(t, http.MethodGet, claims, ""), parse(t, http.MethodGet, claims+"?watch=1", ""), false},
		"other selectors": {parse(t, http.MethodGet, claims+"?labelSelector=a", ""), parse(t, http.MethodGet, claims, ""), false},
		"other versions":  {parse(t, http.MethodGet, claims+"?resourceVersion=1", ""), parse(t, http.MethodGet, claims, ""), true},
		"other UIDs":      {parse(t, http.MethodGet, volumes+"/pvc-"+uid, ""), parse(t, http.MethodGet, volumes+"/pvc-"+another, ""), true},
		"created names": {
			parse(t, http.MethodPost, claims, `{"metadata":{"name":"a"}}`),
			parse(t, http.MethodPost, claims, `{"metadata":{"name":"b"}}`), false,
		},
		"events": {
			parse(t, http.MethodPost, "/api/v1/namespaces/n/events", `{"metadata":{"name":"a.1"}}`),
			parse(t, http.MethodPost, "/api/v1/namespaces/n/events", `{"metadata":{"name":"a.2"}}`), true,
		},
		"other paths": {parse(t, http.MethodGet, "/version", ""), parse(t, http.MethodGet, "/readyz", ""), false},
	} {
		if got := c.a.key() == c.b.key(); got != c.equal {
			t.Errorf("%s: %q and %q", name, c.a.key(), c.b.key())
		}
	}
}

func TestFaultsAreRealistic(t *testing.T) {
	after := []Kind{CutAfter, ErrorAfter, TimeoutAfter}
	write := append(slices.Clone(after), UnknownPath, DeniedNotFound, DeniedConflict, DeniedInvalid, DeniedForbidden,
		DeniedGone)
	special := append(slices.Clone(write), Conflict, SlowList, StaleList, TooLargeVersion, Gone)
	for name, c := range map[string]struct {
		request *request
		want    []Kind // of the special kinds
	}{
		"get":                    {parse(t, http.MethodGet, claim, ""), []Kind{UnknownPath}},
		"version":                {parse(t, http.MethodGet, "/version", ""), nil},
		"create":                 {parse(t, http.MethodPost, claims, object), write},
		"delete":                 {parse(t, http.MethodDelete, claim, ""), write},
		"patch":                  {parse(t, http.MethodPatch, claim, ""), append(slices.Clone(write), Conflict)},
		"update":                 {parse(t, http.MethodPut, claim, object), append(slices.Clone(write), Conflict)},
		"update without version": {parse(t, http.MethodPut, claim, `{"metadata":{"name":"c"}}`), write},
		"quorum list":            {parse(t, http.MethodGet, claims, ""), []Kind{SlowList}},
		"quorum list in pages":   {parse(t, http.MethodGet, claims+"?limit=5", ""), []Kind{SlowList}},
		"next page":              {parse(t, http.MethodGet, claims+"?limit=5&continue=x", ""), []Kind{SlowList, Gone}},
		"any list":               {parse(t, http.MethodGet, claims+"?resourceVersion=0&limit=5", ""), []Kind{SlowList, StaleList}},
		"list not older":         {parse(t, http.MethodGet, claims+"?resourceVersion=7", ""), []Kind{SlowList, StaleList, TooLargeVersion}},
		"exact list":             {parse(t, http.MethodGet, claims+"?resourceVersion=7&resourceVersionMatch=Exact", ""), []Kind{SlowList}},
		"exact list by limit":    {parse(t, http.MethodGet, claims+"?resourceVersion=7&limit=5", ""), []Kind{SlowList}},
		"watch":                  {parse(t, http.MethodGet, claims+"?watch=1&resourceVersion=7", ""), []Kind{Gone}},
		"watch from now":         {parse(t, http.MethodGet, claims+"?watch=1", ""), nil},
		"watch from any state":   {parse(t, http.MethodGet, claims+"?watch=1&resourceVersion=0", ""), nil},
		"watch list":             {parse(t, http.MethodGet, claims+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", ""), nil},
		"watch list not older": {
			parse(t, http.MethodGet, claims+
				"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=7", ""), []Kind{TooLargeVersion},
		},
	} {
		for _, kind := range requestKinds {
			want := slices.Contains(c.want, kind) || !slices.Contains(special, kind)
			if got := c.request.allows(kind); got != want {
				t.Errorf("%s: %s is possible: %t", name, kind, got)
			}
		}
	}
}

func TestProtobufBodiesNameObjects(t *testing.T) {
	frame := frameOf(t, protobufFrames, "ADDED", 7)
	body := string(protobufFrames.parse(frame).Object)
	if r := parse(t, http.MethodPost, claims, body); r.name != "c" || r.version != "7" {
		t.Errorf("name %q, version %q", r.name, r.version)
	}
}
