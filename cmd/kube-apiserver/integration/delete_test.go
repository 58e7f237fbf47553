package integration

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

func TestGracePeriodIsGrantedAndEndsWithFinalizer(t *testing.T) {
	for name, start := range map[string]func() (*server, error){"default": shared.ours,
		"without watch cache": shared.uncached, "CBOR": shared.cbor} {
		t.Run(name, func(t *testing.T) {
			expectGraceUntilFinalizer(t, newKind(t, mustServe(t, start), objectName(name)+".example.com"))
		})
	}
}

func expectGraceUntilFinalizer(t *testing.T, k kind) {
	t.Helper()
	k.create("a", finalizer)
	generation := k.get("a").body.GetGeneration()
	got, _ := k.graceful("a", 300)
	warned(t, got, "")
	if after := k.get("a").body.GetGeneration(); after != generation+1 {
		t.Errorf("generation %d after %d, want one more", after, generation)
	}
	shorter, found := k.graceful("a", 60)
	warned(t, shorter, "")
	refused := k.delete("a", 90, nil)
	k.expect(refused, "a", found)
	warned(t, refused, "stays "+found.end.Format("2006-01-02T15:04:05Z"))
	k.expect(k.delete("a", 0, nil), "a", forced)
	if got := k.patch("a", withoutFinalizers); got.code != http.StatusOK {
		t.Errorf("%d %s", got.code, got.text)
	}
	k.gone("a")
}

// full are annotations without room for the deletion window.
var full = map[string]string{"example.com/full": strings.Repeat("x", 256*1024-60)}

// The number is the row of the design.
var deleteRows = map[string]func(k kind, name string){
	"#1 window of a live object goes": func(k kind, name string) {
		k.createWith(name, map[string]string{deadline.Annotation: windowNow(600)}, finalizer)
		got := k.delete(name, "", nil)
		k.expect(got, name, plain)
		if left := k.inEtcd(name).GetAnnotations(); len(left) > 0 {
			k.t.Errorf("annotations %v stayed", left)
		}
	},
	"#4 grace needs a finalizer": func(k kind, name string) {
		k.create(name)
		warned(k.t, k.delete(name, 300, nil), "no finalizer")
		k.gone(name)
	},
	"#4 foreground adds the first finalizer": func(k kind, name string) {
		k.create(name)
		got := k.delete(name, 300, options{"propagationPolicy": "Foreground"})
		k.expect(got, name, plain)
		warned(k.t, got, "no finalizer")
		k.patch(name, withoutFinalizers)
		k.gone(name)
	},
	"#5 nothing is written without a grace period": func(k kind, name string) {
		k.create(name, finalizer)
		_, found := k.graceful(name, 300)
		_, revision := k.stored(name)
		got := k.delete(name, "", nil)
		k.expect(got, name, found)
		warned(k.t, got, "")
		k.unchanged(name, revision)
	},
	"#8 nothing is written for a later deadline": func(k kind, name string) {
		k.create(name, finalizer)
		_, found := k.graceful(name, 300)
		_, revision := k.stored(name)
		k.expect(k.delete(name, 600, nil), name, found)
		k.unchanged(name, revision)
	},
	"#9 #10 #11 a plain deletion can only be forced": func(k kind, name string) {
		k.create(name, finalizer)
		k.delete(name, "", nil)
		_, revision := k.stored(name)
		k.expect(k.delete(name, "", nil), name, plain)
		refused := k.delete(name, 300, nil)
		k.expect(refused, name, plain)
		warned(k.t, refused, "gracePeriodSeconds 0")
		k.unchanged(name, revision)
		before := k.get(name).body.GetDeletionTimestamp()
		got := k.delete(name, 0, nil)
		k.expect(got, name, forced)
		if after := got.body.GetDeletionTimestamp(); !after.Equal(before) {
			k.t.Errorf("deletionTimestamp %v, was %v", after, before)
		}
	},
	"#12 a forced deletion stays forced": func(k kind, name string) {
		k.create(name, finalizer)
		k.delete(name, 0, nil)
		_, revision := k.stored(name)
		for _, grace := range []any{"", 0, 300} {
			k.expect(k.delete(name, grace, nil), name, forced)
		}
		k.unchanged(name, revision)
	},
	"#14 negative is one second": func(k kind, name string) {
		k.create(name, finalizer)
		got := k.delete(name, -5, nil)
		if found := deletionOf(got.body); found.field != 1 {
			k.t.Errorf("%+v", found)
		}
	},
	"#14 too long is 68 years": func(k kind, name string) {
		k.create(name, finalizer)
		got := k.delete(name, math.MaxInt64, nil)
		if found := deletionOf(got.body); found.field != math.MaxInt32 {
			k.t.Errorf("%+v", found)
		}
		warned(k.t, got, "limited to 2147483647")
	},
	"#15 annotations are full": func(k kind, name string) {
		k.createWith(name, full, finalizer)
		got := k.delete(name, 300, nil)
		k.expect(got, name, plain)
		warned(k.t, got, "no room")
		k.expect(k.delete(name, 0, nil), name, plain)
		k.patch(name, withoutFinalizers)
		k.gone(name)
	},
	"#16 foreground changes finalizers only": func(k kind, name string) {
		k.create(name, finalizer)
		_, found := k.graceful(name, 300)
		got := k.delete(name, "", options{"propagationPolicy": "Foreground"})
		k.expect(got, name, found)
		if len(got.body.GetFinalizers()) != 2 {
			k.t.Errorf("finalizers %q", got.body.GetFinalizers())
		}
	},
	"#18 precondition fails": func(k kind, name string) {
		k.create(name, finalizer)
		_, revision := k.stored(name)
		got := k.delete(name, 300, options{"preconditions": map[string]any{"uid": "other"}})
		if got.code != http.StatusConflict || len(got.warnings) > 0 {
			k.t.Errorf("%d %q", got.code, got.warnings)
		}
		k.unchanged(name, revision)
	},
	"#19 dry run": func(k kind, name string) {
		k.create(name, finalizer)
		_, revision := k.stored(name)
		got := k.delete(name, 300, options{"dryRun": []string{"All"}})
		if got.code != http.StatusOK || len(got.warnings) > 0 {
			k.t.Errorf("%d %q", got.code, got.warnings)
		}
		k.unchanged(name, revision)
	},
	"bad input is refused as by stock": func(k kind, name string) {
		k.create(name, finalizer)
		_, revision := k.stored(name)
		stock := k.at(mustServe(k.t, shared.stock)).await()
		for _, grace := range []any{"300s", 1.5, uint64(1 << 63)} { // 400, before Kubernetes 1.35 500
			got, want := k.delete(name, grace, nil), stock.delete(name, grace, nil)
			if got.code < http.StatusBadRequest || got.code != want.code || got.message() != want.message() {
				k.t.Errorf("%v: %d %s, stock %d %s", grace, got.code, got.text, want.code, want.text)
			}
		}
		k.unchanged(name, revision)
	},
	"grace period in the query": func(k kind, name string) {
		k.create(name, finalizer)
		got := k.s.do(k.t, http.MethodDelete, k.path(name)+"?gracePeriodSeconds=120", asJSON, nil)
		k.expect(got, name, deletion{deadline.Graceful, 120, deletionOf(got.body).end})
	},
	"grace period in body counts before query": func(k kind, name string) {
		k.create(name, finalizer)
		got := k.s.do(k.t, http.MethodDelete, k.path(name)+"?gracePeriodSeconds=120", asJSON,
			options{"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 300})
		k.expect(got, name, deletion{deadline.Graceful, 300, deletionOf(got.body).end})
	},
}

func TestDelete(t *testing.T) {
	k := newKind(t, ours(t), "delete.example.com")
	for name, test := range deleteRows {
		t.Run(name, func(t *testing.T) { test(k.in(t), objectName(name)) })
	}
}

func TestDeleteCollectionGivesEachObjectItsDeadline(t *testing.T) {
	k := newKind(t, ours(t), "collection.example.com")
	for i := range 5 {
		k.create(fmt.Sprintf("a-%d", i), finalizer)
	}
	k.create("without")
	k.graceful("a-0", 30)
	got := k.s.do(t, http.MethodDelete, k.path(""), asJSON, options{"apiVersion": "v1", "kind": "DeleteOptions",
		"gracePeriodSeconds": 300})
	if got.code != http.StatusOK {
		t.Fatalf("%d %s", got.code, got.text)
	}
	for i := range 5 {
		want := int64(300)
		if i == 0 {
			want = 30 // stays earlier
		}
		if found := deletionOf(k.get(fmt.Sprintf("a-%d", i)).body); found.field != want {
			t.Errorf("a-%d: %+v, want %d s", i, found, want)
		}
	}
	k.gone("without")
	_, revision := k.stored("a-1")
	if got := k.s.do(t, http.MethodDelete, k.path(""), asJSON,
		nil); got.code != http.StatusOK { // as the deletion of a namespace
		t.Errorf("%d %s", got.code, got.text)
	}
	k.unchanged("a-1", revision)
}

// #21: the API server deletes the objects of a CRD itself.
func TestDeletionOfCRDKeepsDeadlines(t *testing.T) {
	k := newKind(t, ours(t), "definition.example.com")
	k.create("grace", finalizer)
	k.create("live", finalizer)
	_, found := k.graceful("grace", 300)
	crd := definitions + "/machines." + k.group
	if got := k.s.do(t, http.MethodDelete, crd, asJSON, nil); got.code != http.StatusOK {
		t.Fatalf("%d %s", got.code, got.text)
	}
	wait(t, func() error {
		if got := deletionOf(k.get("live").body); got != plain {
			return fmt.Errorf("live: %+v", got)
		}
		return nil
	})
	if got := deletionOf(k.get("grace").body); got != found {
		t.Errorf("%+v, want %+v", got, found)
	}
	k.patch("grace", withoutFinalizers)
	k.patch("live", withoutFinalizers)
	wait(t, func() error {
		if got := k.s.do(t, http.MethodGet, crd, asJSON, nil); got.code != http.StatusNotFound {
			return fmt.Errorf("the CRD stays: %s", got.text)
		}
		return nil
	})
}
