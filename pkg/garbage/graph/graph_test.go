package graph_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/garbage"
	. "github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

var (
	pods = &Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: "pods",
		Namespaced: true}
	configMaps = &Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps",
		Namespaced: true}
	nodes = &Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, Resource: "nodes"}
	now   = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

// world is a graph that a test changes.
type world struct {
	*Graph
	version int
	last    map[string]*metav1.PartialObjectMetadata
}

func newWorld() *world {
	w := &world{Graph: New(), last: map[string]*metav1.PartialObjectMetadata{}}
	for _, kind := range []*Kind{pods, configMaps, nodes} {
		w.Serve(kind)
	}
	return w
}

// option changes an object.
type option func(*metav1.PartialObjectMetadata)

func object(kind *Kind, name string, options ...option) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	if kind.Namespaced {
		o.Namespace = "ns"
	}
	for _, change := range options {
		change(o)
	}
	return o
}

func ownedBy(kind *Kind, name string, change ...func(*metav1.OwnerReference)) option {
	ref := metav1.OwnerReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: name,
		UID: types.UID(name), BlockOwnerDeletion: new(bool)}
	*ref.BlockOwnerDeletion = true
	for _, f := range change {
		f(&ref)
	}
	return func(o *metav1.PartialObjectMetadata) { o.OwnerReferences = append(o.OwnerReferences, ref) }
}

func kindNamed(kind string) func(*metav1.OwnerReference) {
	return func(r *metav1.OwnerReference) { r.Kind = kind }
}

func inNamespace(namespace string) option {
	return func(o *metav1.PartialObjectMetadata) { o.Namespace = namespace }
}

func deleted(finalizers ...string) option {
	return func(o *metav1.PartialObjectMetadata) {
		o.DeletionTimestamp, o.Finalizers = &metav1.Time{Time: now}, finalizers
	}
}

// observe records the next version of an object.
func (w *world) observe(kind *Kind, name string, options ...option) {
	w.version++
	o := object(kind, name, options...)
	o.ResourceVersion = strconv.Itoa(w.version)
	w.last[name] = o
	w.Observe(kind, o)
}

// read records that the owner was read live, as it was observed last.
func (w *world) read(name string) {
	w.Read(types.UID(name), at(configMaps, "ns", name), w.last[name], now)
}

func (w *world) state(t *testing.T, name string) garbage.State {
	t.Helper()
	j, found := w.Judge(types.UID(name), now)
	if !found {
		t.Fatalf("the graph does not have %s", name)
	}
	return j.State
}

func at(kind *Kind, namespace, name string) Coordinates {
	return Coordinates{GroupKind: kind.GroupKind(), Namespace: namespace, Name: name}
}

func TestReferenceIsJudgedByCoordinates(t *testing.T) {
	named := func(name string) func(*metav1.OwnerReference) {
		return func(r *metav1.OwnerReference) { r.Name = name }
	}
	for name, tc := range map[string]struct {
		dependent *Kind
		options   []option
		want      garbage.State
	}{
		"owner in the graph": {pods, []option{ownedBy(configMaps, "owner")}, garbage.State{Live: true}},
		"version without its group": {pods,
			[]option{ownedBy(configMaps, "owner", func(r *metav1.OwnerReference) { r.APIVersion = "v1beta2" })}, garbage.State{Unresolvable: true}},
		"group without a version": {pods,
			[]option{ownedBy(configMaps, "owner", func(r *metav1.OwnerReference) { r.APIVersion = "serving.example.dev" })}, garbage.State{Unresolvable: true}},
		"version in capitals": {pods,
			[]option{ownedBy(configMaps, "owner", func(r *metav1.OwnerReference) { r.APIVersion = "V1" })}, garbage.State{Unresolvable: true}},
		"kind in lower case":                  {pods, []option{ownedBy(configMaps, "owner", kindNamed("configmap"))}, garbage.State{Live: true}},
		"kind in capitals":                    {pods, []option{ownedBy(configMaps, "owner", kindNamed("CONFIGMAP"))}, garbage.State{Unresolvable: true}},
		"plural of the kind":                  {pods, []option{ownedBy(configMaps, "owner", kindNamed("configmaps"))}, garbage.State{Unresolvable: true}},
		"name of a kind twice in lower case":  {pods, []option{ownedBy(configMaps, "owner", kindNamed("twin"))}, garbage.State{Unresolvable: true}},
		"other name":                          {pods, []option{ownedBy(configMaps, "owner", named("other"))}, garbage.State{Unverified: true}},
		"other kind":                          {pods, []option{ownedBy(pods, "owner")}, garbage.State{Unverified: true}},
		"other namespace":                     {pods, []option{inNamespace("other"), ownedBy(configMaps, "owner")}, garbage.State{Unverified: true}},
		"kind that nobody serves":             {pods, []option{ownedBy(configMaps, "owner", func(r *metav1.OwnerReference) { r.Kind = "Unknown" })}, garbage.State{Unresolvable: true}},
		"cluster-scoped with namespaced kind": {nodes, []option{ownedBy(configMaps, "owner")}, garbage.State{Unresolvable: true}},
		"version that is no version":          {pods, []option{ownedBy(configMaps, "owner", func(r *metav1.OwnerReference) { r.APIVersion = "a/b/c" })}, garbage.State{Unresolvable: true}},
		"no version":                          {pods, []option{ownedBy(configMaps, "owner", func(r *metav1.OwnerReference) { r.APIVersion = "" })}, garbage.State{Unresolvable: true}},
		"name that is a path":                 {pods, []option{ownedBy(configMaps, "owner", named("../services/other/proxy/owner"))}, garbage.State{Absent: true}},
		"cluster-scoped owner":                {pods, []option{ownedBy(nodes, "machine")}, garbage.State{Live: true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			for _, kind := range []string{"Twin", "TwIn"} {
				w.Serve(&Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: kind}, Resource: "twins", Namespaced: true})
			}
			w.observe(configMaps, "owner")
			w.observe(nodes, "machine")
			w.observe(tc.dependent, "dependent", tc.options...)
			tc.want.Seen = true
			if got := w.state(t, "dependent"); got != tc.want {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

// TestEachReferenceIsJudged: an object may refer to one UID twice.
func TestEachReferenceIsJudged(t *testing.T) {
	other := func(r *metav1.OwnerReference) { r.Name = "other" }
	for name, options := range map[string][]option{
		"wrong one last":  {ownedBy(configMaps, "owner"), ownedBy(configMaps, "owner", other)},
		"wrong one first": {ownedBy(configMaps, "owner", other), ownedBy(configMaps, "owner")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.observe(configMaps, "owner")
			w.TakeChanged()
			w.observe(pods, "pod", options...)
			if !slices.Contains(w.TakeChanged(), "pod") {
				t.Error("the object is not judged")
			}
		})
	}
}

func TestAbsenceIsFinalAtItsCoordinatesOnly(t *testing.T) {
	w := newWorld()
	w.observe(pods, "right", ownedBy(configMaps, "owner"))
	w.observe(pods, "wrong", inNamespace("other"), ownedBy(configMaps, "owner"))
	w.TakeChanged()
	w.Deleted("owner", at(configMaps, "ns", "owner"))
	if got := w.state(t, "right"); !got.Absent || got.Unverified {
		t.Errorf("right: %+v", got)
	}
	if got := w.state(t, "wrong"); got.Absent || !got.Unverified {
		t.Errorf("wrong: %+v", got)
	}
	if changed := w.TakeChanged(); !slices.Contains(changed, "right") {
		t.Errorf("changed: %v", changed)
	}
}

func TestAbsenceInListProvesNothing(t *testing.T) {
	w := newWorld()
	w.observe(configMaps, "owner")
	w.observe(pods, "dependent", ownedBy(configMaps, "owner"))
	w.Vanished(configMaps, "10", nil)
	if got := w.state(t, "dependent"); got.Absent || !got.Unverified {
		t.Errorf("dependent: %+v", got)
	}
	if got := w.state(t, "owner"); !got.Missing {
		t.Errorf("owner: %+v", got)
	}
}

func TestVanishedObjectIsForgottenUnlessAwaited(t *testing.T) {
	w := newWorld()
	w.observe(configMaps, "waiting", deleted(metav1.FinalizerDeleteDependents))
	w.observe(pods, "blocker", ownedBy(configMaps, "waiting"))
	w.observe(pods, "free")
	w.observe(pods, "present")
	w.observe(pods, "newer")
	w.Vanished(pods, "4", map[types.UID]struct{}{"present": {}})
	for name, want := range map[types.UID]bool{"blocker": true, "free": false, "present": true, "newer": true} {
		if w.Has(name) != want {
			t.Errorf("%s is in the graph: %v", name, !want)
		}
	}
	if !w.state(t, "blocker").Missing {
		t.Error("the blocker is not read live")
	}
}

func TestStateNeverGoesBackwards(t *testing.T) {
	w := newWorld()
	old := object(pods, "pod", ownedBy(configMaps, "owner"))
	old.ResourceVersion = "9"
	w.version = 9
	w.observe(pods, "pod")
	w.Observe(pods, old)
	if got := w.state(t, "pod"); got != (garbage.State{Seen: true}) {
		t.Errorf("pod: %+v", got)
	}
}

func TestResponseDoesNotReviveObject(t *testing.T) {
	w := newWorld()
	w.observe(pods, "pod")
	w.Deleted("pod", at(pods, "ns", "pod"))
	late := object(pods, "pod")
	late.ResourceVersion = "99"
	w.Refresh(pods, late)
	if w.Has("pod") {
		t.Error("the response revived the object")
	}
}

func TestLiveReadExpires(t *testing.T) {
	w := newWorld()
	w.observe(configMaps, "owner", deleted(metav1.FinalizerDeleteDependents))
	w.observe(pods, "dependent", ownedBy(configMaps, "owner"))
	if got := w.state(t, "dependent"); !got.Unverified {
		t.Errorf("before the read: %+v", got)
	}
	w.read("owner")
	if got := w.state(t, "dependent"); !got.Waiting || got.Unverified || got.Seen {
		t.Errorf("after the read: %+v", got)
	}
	if j, _ := w.Judge("dependent", now.Add(ReadLifetime)); !j.State.Unverified {
		t.Errorf("a second later: %+v", j.State)
	}
	w.observe(configMaps, "owner", deleted(metav1.FinalizerDeleteDependents, "other"))
	if got := w.state(t, "dependent"); !got.Unverified {
		t.Errorf("after an event: %+v", got)
	}
}

func TestPolicyChangeBeginsNewEpoch(t *testing.T) {
	w := newWorld()
	w.observe(configMaps, "owner", deleted(metav1.FinalizerDeleteDependents))
	first, _, _ := w.Epoch("owner")
	w.observe(configMaps, "owner", deleted(metav1.FinalizerOrphanDependents))
	w.Passed("owner", first, now)
	if w.state(t, "owner").Seen {
		t.Error("a barrier of the former policy counts")
	}
	second, namespace, _ := w.Epoch("owner")
	w.Passed("owner", second, now)
	if !w.state(t, "owner").Seen || namespace != "ns" {
		t.Errorf("the barrier does not count; namespace %q", namespace)
	}
}

func TestBlockingDependents(t *testing.T) {
	notBlocking := func(r *metav1.OwnerReference) { r.BlockOwnerDeletion = nil }
	for name, tc := range map[string]struct {
		options              []option
		dependents, blocking bool
	}{
		"blocking":             {[]option{ownedBy(configMaps, "owner")}, true, true},
		"not blocking":         {[]option{ownedBy(configMaps, "owner", notBlocking)}, true, false},
		"twice, once blocking": {[]option{ownedBy(configMaps, "owner", notBlocking), ownedBy(configMaps, "owner")}, true, true},
		"of another namespace": {[]option{inNamespace("other"), ownedBy(configMaps, "owner")}, false, false},
		"kind in lower case":   {[]option{ownedBy(configMaps, "owner", kindNamed("configmap"))}, true, true},
		"no valid version":     {[]option{ownedBy(configMaps, "owner", func(r *metav1.OwnerReference) { r.APIVersion = "v1beta2" })}, false, false},
	} {
		for order, ownerFirst := range map[string]bool{"owner first": true, "dependent first": false} {
			t.Run(name+", "+order, func(t *testing.T) {
				w := newWorld()
				owner := func() { w.observe(configMaps, "owner", deleted(metav1.FinalizerDeleteDependents)) }
				if ownerFirst {
					owner()
				}
				w.observe(pods, "dependent", tc.options...)
				if !ownerFirst {
					owner()
				}
				if got := w.state(t, "owner"); got.Dependents != tc.dependents || got.Blocking != tc.blocking {
					t.Errorf("with the dependent: %+v", got)
				}
				w.TakeChanged()
				w.Deleted("dependent", at(pods, w.namespaceOf("dependent"), "dependent"))
				if got := w.state(t, "owner"); got.Dependents || got.Blocking || !slices.Contains(w.TakeChanged(), "owner") {
					t.Errorf("without the dependent: %+v", got)
				}
			})
		}
	}
}

func (w *world) namespaceOf(name types.UID) string {
	j, _ := w.Judge(name, now)
	return j.Namespace
}

func TestDeletedObjectIsJudgedForOrphaningOwnersOnly(t *testing.T) {
	w := newWorld()
	w.observe(configMaps, "orphaning", deleted(metav1.FinalizerOrphanDependents))
	w.observe(configMaps, "waiting", deleted(metav1.FinalizerDeleteDependents))
	w.observe(pods, "pod", ownedBy(configMaps, "waiting"), ownedBy(configMaps, "orphaning"), deleted("other"))
	w.read("orphaning")
	j, _ := w.Judge("pod", now)
	if want := (garbage.State{Deleting: true, Orphaning: true}); j.State != want || !slices.Equal(j.Remove, []int{1}) {
		t.Errorf("got %+v, remove %v", j.State, j.Remove)
	}
}

// The barrier reads every kind, so that it does not matter under which group the object was observed last.
func TestNewKindHasReferringObjectsJudged(t *testing.T) {
	w := newWorld()
	w.Withdraw(configMaps.GroupKind())
	w.observe(pods, "pod", ownedBy(configMaps, "owner"))
	w.observe(pods, "free", ownedBy(configMaps, "owner"))
	w.observe(pods, "free")
	w.TakeChanged()
	w.Serve(configMaps)
	if changed := w.TakeChanged(); !slices.Equal(changed, []types.UID{"pod"}) {
		t.Errorf("changed: %v", changed)
	}
}

func TestSentUntilNextVersion(t *testing.T) {
	w := newWorld()
	w.observe(pods, "pod", ownedBy(configMaps, "gone"))
	w.Sent("pod", "1")
	if !w.state(t, "pod").Sent {
		t.Error("not sent")
	}
	w.TakeChanged()
	w.observe(pods, "pod", ownedBy(configMaps, "gone"))
	if w.state(t, "pod").Sent || !slices.Contains(w.TakeChanged(), "pod") {
		t.Error("the next version counts as sent")
	}
}

func TestDroppedKindFreesOwners(t *testing.T) {
	w := newWorld()
	w.observe(configMaps, "owner", deleted(metav1.FinalizerDeleteDependents))
	w.observe(pods, "pod", ownedBy(configMaps, "owner"))
	w.observe(configMaps, "child", ownedBy(pods, "pod"))
	w.Drop(pods)
	if w.state(t, "owner").Blocking || w.Has("pod") {
		t.Error("the kind still blocks")
	}
	if got := w.state(t, "child"); !got.Unresolvable || got.Absent {
		t.Errorf("child: %+v", got)
	}
	w.TakeChanged()
	w.Serve(pods)
	if !slices.Contains(w.TakeChanged(), "child") {
		t.Error("the kind is served again, and its references are not judged")
	}
}

func TestDisplacedOwnerIsReported(t *testing.T) {
	w := newWorld()
	w.observe(configMaps, "owner")
	w.observe(pods, "pod", inNamespace("other"), ownedBy(configMaps, "owner"))
	j, _ := w.Judge("pod", now)
	if want := []Displaced{{"owner", "v1", "ConfigMap", "owner"}}; !slices.Equal(j.Displaced, want) {
		t.Errorf("got %v", j.Displaced)
	}
}

func TestCompareVersions(t *testing.T) {
	for _, tc := range []struct {
		a, b       string
		order      int
		comparable bool
	}{{"9", "10", -1, true}, {"10", "9", 1, true}, {"7", "7", 0, true}, {"a", "1", 0, false}, {"1", "", 0, false}} {
		if order, ok := Compare(tc.a, tc.b); order != tc.order || ok != tc.comparable {
			t.Errorf("Compare(%q, %q) = %d, %v", tc.a, tc.b, order, ok)
		}
	}
}
