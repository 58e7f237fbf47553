package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// in returns the kind for a subtest.
func (k kind) in(t *testing.T) kind {
	k.t = t
	return k
}

// objectName makes the name of an object from that of a test.
func objectName(test string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(test))
	return strings.Trim(name, "-")
}

// windowNow returns a window that starts now.
func windowNow(seconds int) string {
	now := time.Now().Truncate(time.Second)
	return deadline.Window{Start: now, End: now.Add(time.Duration(seconds) * time.Second)}.String()
}

// unchanged wants that the object was not written.
func (k kind) unchanged(name string, revision int64) {
	k.t.Helper()
	if _, after := k.stored(name); after != revision {
		k.t.Errorf("%s was written: revision %d, was %d", name, after, revision)
	}
}

// The number is the row of the design. Each object is in its grace period.
var writeRows = map[string]func(k kind, name string, found deletion){
	"#31 PUT removes the last finalizer": func(k kind, name string, _ deletion) {
		object := k.get(name).body
		object.SetFinalizers(nil)
		got := k.put(name, object)
		if got.code != http.StatusOK || got.body.GetName() != name || len(got.body.GetFinalizers()) > 0 {
			k.t.Errorf("%d %s", got.code, got.text)
		}
		k.gone(name)
	},
	"#31 PATCH removes the last finalizer": func(k kind, name string, _ deletion) {
		if got := k.patch(name, withoutFinalizers); got.code != http.StatusOK {
			k.t.Errorf("%d %s", got.code, got.text)
		}
		k.gone(name)
	},
	"#33 one of two finalizers": func(k kind, name string, found deletion) {
		k.patch(name, fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, finalizer))
		k.expect(k.get(name), name, found)
	},
	"#33 status and labels": func(k kind, name string, found deletion) {
		k.expect(k.patch(name, `{"metadata":{"labels":{"a":"b"}}}`), name, found)
		status := k.s.do(k.t, http.MethodPatch, k.path(name)+"/status", asMerge,
			`{"status":{"phase":"Stopping"},"metadata":{"finalizers":null}}`)
		k.expect(status, name, found)
	},
	"#34 dry run removes nothing": func(k kind, name string, found deletion) {
		got := k.s.do(k.t, http.MethodPatch, k.path(name)+"?dryRun=All", asMerge, withoutFinalizers)
		if got.code != http.StatusOK {
			k.t.Errorf("%d %s", got.code, got.text)
		}
		k.expect(k.get(name), name, found)
	},
	"#35 deletionTimestamp is ignored": func(k kind, name string, found deletion) {
		k.expect(k.patch(name, `{"metadata":{"deletionTimestamp":"2030-01-01T00:00:00Z"}}`), name, found)
	},
	"#35 another grace period is refused": func(k kind, name string, found deletion) {
		got := k.patch(name, `{"metadata":{"deletionGracePeriodSeconds":5}}`)
		if got.code != http.StatusUnprocessableEntity || !strings.Contains(got.message(), "immutable") {
			k.t.Errorf("%d %s", got.code, got.text)
		}
		k.expect(k.get(name), name, found)
	},
	"#36 PUT of the form in etcd": func(k kind, name string, found deletion) {
		object := k.get(name).body
		stored := k.inEtcd(name)
		stored.SetResourceVersion(object.GetResourceVersion())
		stored.SetLabels(map[string]string{"a": "b"})
		k.expect(k.put(name, stored), name, found)
	},
	"#36 PUT of the form in etcd removes the last finalizer": func(k kind, name string, _ deletion) {
		stored := k.inEtcd(name)
		stored.SetResourceVersion(k.get(name).body.GetResourceVersion())
		stored.SetFinalizers(nil)
		if got := k.put(name, stored); got.code != http.StatusOK {
			k.t.Errorf("%d %s", got.code, got.text)
		}
		k.gone(name)
	},
	"#37 the window is the server's": func(k kind, name string, found deletion) {
		k.expect(k.patch(name, annotate(windowNow(900))), name, found)
		k.expect(k.patch(name, annotate("x")), name, found)
		k.expect(k.patch(name, `{"metadata":{"annotations":null}}`), name, found)
	},
	"#37 annotations leave no room": func(k kind, name string, found deletion) {
		got := k.patch(name, fmt.Sprintf(`{"metadata":{"annotations":{"example.com/full":%q,%q:null}}}`,
			strings.Repeat("x", 256*1024-60), deadline.Annotation))
		if got.code != http.StatusUnprocessableEntity || !strings.Contains(got.message(), deadline.Annotation) {
			k.t.Errorf("%d %s", got.code, got.message())
		}
		k.expect(k.get(name), name, found)
	},
	"#39 nothing is written for no change": func(k kind, name string, found deletion) {
		_, revision := k.stored(name)
		k.expect(k.put(name, k.get(name).body), name, found)
		k.expect(k.patch(name, `{}`), name, found)
		k.unchanged(name, revision)
	},
}

func TestWriteInGracePeriod(t *testing.T) {
	k := newKind(t, ours(t), "write.example.com")
	for name, test := range writeRows {
		t.Run(name, func(t *testing.T) {
			k, object := k.in(t), objectName(name)
			finalizers := []string{finalizer}
			if strings.HasPrefix(name, "#33 one") {
				finalizers = append(finalizers, second)
			}
			k.create(object, finalizers...)
			_, found := k.graceful(object, 300)
			test(k, object, found)
		})
	}
}

func TestApplyRemovesLastFinalizer(t *testing.T) {
	k := newKind(t, ours(t), "apply.example.com")
	apply := func(finalizers string) answer {
		return k.s.do(t, http.MethodPatch, k.path("a")+"?fieldManager=test", asApply,
			fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Machine","metadata":{"name":"a","finalizers":[%s]}}`, k.group,
				finalizers))
	}
	if got := apply(`"` + finalizer + `"`); got.code != http.StatusCreated {
		t.Fatalf("%d %s", got.code, got.text)
	}
	k.graceful("a", 300)
	if got := apply(""); got.code != http.StatusOK {
		t.Errorf("%d %s", got.code, got.text)
	}
	k.gone("a")
}

// #32
func TestTwoClientsRemoveTwoFinalizers(t *testing.T) {
	k := newKind(t, ours(t), "race.example.com")
	for i := range 20 {
		name := fmt.Sprintf("a-%d", i)
		k.create(name, finalizer, second)
		k.graceful(name, 300)
		done := make(chan answer)
		for _, own := range []string{finalizer, second} {
			go func() {
				for {
					object := k.get(name).body
					kept := []string{}
					for _, other := range object.GetFinalizers() {
						if other != own {
							kept = append(kept, other)
						}
					}
					object.SetFinalizers(kept)
					if got := k.put(name, object); got.code != http.StatusConflict {
						done <- got
						return
					}
				}
			}()
		}
		for range 2 {
			if got := <-done; got.code != http.StatusOK {
				t.Errorf("%d %s", got.code, got.text)
			}
		}
		k.gone(name)
	}
}

// #38
func TestWindowOfLiveObjectIsInert(t *testing.T) {
	k := newKind(t, ours(t), "inert.example.com")
	k.create("a", finalizer)
	value := windowNow(600)
	got := k.patch("a", annotate(value))
	if found := deletionOf(got.body); found.kind != deadline.NotDeleted ||
		got.body.GetAnnotations()[deadline.Annotation] != value {
		t.Errorf("%+v %s", found, got.text)
	}
	k.graceful("a", 60)
}

// #37: a plain deletion gets no deadline by an annotation, and a forced one stays forced.
func TestWindowOfDeletedObjectStays(t *testing.T) {
	k := newKind(t, ours(t), "window.example.com")
	for name, grace := range map[string]any{"plain": "", "forced": 0} {
		k.create(name, finalizer)
		want := deletionOf(k.delete(name, grace, nil).body)
		k.expect(k.patch(name, annotate(windowNow(600))), name, want)
		k.expect(k.patch(name, `{"metadata":{"annotations":null}}`), name, want)
		k.patch(name, withoutFinalizers)
		k.gone(name)
	}
}

// One DELETED, with the deadline, and no other event.
func TestWatchSeesOneDeletedEvent(t *testing.T) {
	k := newKind(t, ours(t), "watch.example.com")
	k.create("a", finalizer)
	version := k.get("a").body.GetResourceVersion()
	k.graceful("a", 300)
	k.patch("a", withoutFinalizers)
	var events []string
	for _, event := range k.events(version) {
		events = append(events, fmt.Sprintf("%v %d", event.Object["type"], deletionOf(object(event)).field))
	}
	if want := "[MODIFIED 300 DELETED 300]"; fmt.Sprint(events) != want {
		t.Errorf("events %v, want %v", events, want)
	}
}
