package integration

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// collectors are upstream's collector and ours.
var collectors = map[string][]string{
	"upstream/kube-controller-manager": {"--controllers=garbage-collector-controller"},
	"garbage-collector":                {},
}

// Foreground and orphan deletion with real collectors: they remove finalizers and delete dependents, and move no
// deadline.
func TestCollectorsKeepDeadlines(t *testing.T) {
	for program, flags := range collectors {
		t.Run(filepath.Base(program), func(t *testing.T) {
			k := newKind(t, ours(t), filepath.Base(program)+".example.com")
			runBeside(t, program, append([]string{"--leader-elect=false", "--secure-port=0",
				"--kubeconfig=" + filepath.Join(shared.folder, "ours", "admin.kubeconfig")}, flags...)...)
			for name, test := range collections {
				t.Run(name, func(t *testing.T) { test(k.in(t), objectName(name)) })
			}
		})
	}
}

// own creates a dependent of an owner, which blocks a deletion of the owner in the foreground.
func (k kind) own(owner, name string, finalizers ...string) {
	k.t.Helper()
	uid := k.get(owner).body.GetUID()
	object := map[string]any{"apiVersion": k.group + "/v1", "kind": "Machine", "metadata": map[string]any{
		"name": name, "finalizers": finalizers, "ownerReferences": []map[string]any{{"apiVersion": k.group + "/v1",
			"kind": "Machine", "name": owner, "uid": uid, "blockOwnerDeletion": true}},
	}}
	if got := k.s.do(k.t, http.MethodPost, k.path(""), asJSON, object); got.code != http.StatusCreated {
		k.t.Fatalf("create %s: %d %s", name, got.code, got.text)
	}
}

// awaitGone waits until the collector has removed an object.
func (k kind) awaitGone(name string) {
	k.t.Helper()
	wait(k.t, func() error {
		if got := k.get(name); got.code != http.StatusNotFound {
			return fmt.Errorf("%s stays: %s", name, got.text)
		}
		return nil
	})
}

// awaitFinalizers waits until the collector has left an object these finalizers, and wants the deletion as it was.
func (k kind) awaitFinalizers(name string, want deletion, finalizers ...string) {
	k.t.Helper()
	wait(k.t, func() error {
		if got := k.get(name).body.GetFinalizers(); !slices.Equal(got, finalizers) {
			return fmt.Errorf("%s has finalizers %q, want %q", name, got, finalizers)
		}
		return nil
	})
	k.expect(k.get(name), name, want)
}

// policy deletes an object with a propagation policy.
func (k kind) policy(name, policy string, grace any) answer {
	k.t.Helper()
	got := k.delete(name, grace, options{"propagationPolicy": policy})
	if got.code != http.StatusOK {
		k.t.Fatalf("%d %s", got.code, got.text)
	}
	return got
}

// collections are deletions that a collector takes part in. Each object is named after the test.
var collections = map[string]func(k kind, name string){
	"owner in grace keeps dependents": func(k kind, name string) {
		k.create(name, finalizer)
		k.own(name, name+"-dependent")
		_, found := k.graceful(name, 300)
		k.create(name + "-other")
		k.own(name+"-other", name+"-witness")
		k.policy(name+"-other", "Background", "")
		k.awaitGone(name + "-witness") // the collector has caught up
		k.expect(k.get(name), name, found)
		if got := deletionOf(k.get(name + "-dependent").body); got.kind != deadline.NotDeleted {
			k.t.Errorf("the dependent of an owner in grace: %+v", got)
		}
		k.patch(name, withoutFinalizers)
		k.gone(name)
		k.awaitGone(name + "-dependent")
	},
	"foreground with grace": func(k kind, name string) {
		k.create(name, finalizer)
		k.own(name, name+"-held", finalizer)
		k.own(name, name+"-free")
		found := deletionOf(k.policy(name, "Foreground", 300).body)
		if found.field != 300 {
			k.t.Errorf("%+v", found)
		}
		k.awaitGone(name + "-free")
		wait(k.t, func() error {
			if got := deletionOf(k.get(name + "-held").body); got != plain {
				return fmt.Errorf("the dependent: %+v", got)
			}
			return nil
		})
		k.awaitFinalizers(name, found, finalizer, "foregroundDeletion")
		k.patch(name+"-held", withoutFinalizers)
		k.awaitFinalizers(name, found, finalizer)
		k.patch(name, withoutFinalizers)
		k.gone(name)
	},
	"orphan with grace": func(k kind, name string) {
		k.create(name, finalizer)
		k.own(name, name+"-dependent")
		found := deletionOf(k.policy(name, "Orphan", 300).body)
		if found.field != 300 {
			k.t.Errorf("%+v", found)
		}
		k.awaitFinalizers(name, found, finalizer)
		got := k.get(name + "-dependent").body
		if deletionOf(got).kind != deadline.NotDeleted || len(got.GetOwnerReferences()) > 0 {
			k.t.Errorf("the orphan: %v", got.Object["metadata"])
		}
		k.patch(name, withoutFinalizers)
		k.gone(name)
	},
	"foreground with dependent in grace": func(k kind, name string) { dependentInGrace(k, name, "Foreground") },
	"background with dependent in grace": func(k kind, name string) { dependentInGrace(k, name, "Background") },
	"#16 policies change in grace": func(k kind, name string) {
		k.create(name, finalizer)
		k.own(name, name+"-dependent")
		_, found := k.graceful(name, 300)
		k.policy(name, "Foreground", "")
		k.awaitGone(name + "-dependent")
		k.awaitFinalizers(name, found, finalizer)
		k.policy(name, "Orphan", "")
		k.awaitFinalizers(name, found, finalizer)
		shortened := deletionOf(k.policy(name, "Foreground", 60).body)
		if shortened.field != 60 {
			k.t.Errorf("%+v", shortened)
		}
		k.awaitFinalizers(name, shortened, finalizer)
		k.patch(name, withoutFinalizers)
		k.gone(name)
	},
	"#4 foreground without finalizer": func(k kind, name string) {
		k.create(name)
		k.own(name, name+"-dependent")
		warned(k.t, k.policy(name, "Foreground", 300), "no finalizer")
		k.awaitGone(name + "-dependent")
		k.awaitGone(name)
	},
}

// dependentInGrace deletes the owner of an object in its grace period, without a grace period: the collector deletes
// the dependent again, which changes nothing.
func dependentInGrace(k kind, name, policy string) {
	k.t.Helper()
	k.create(name)
	k.own(name, name+"-held", finalizer)
	k.own(name, name+"-free")
	_, found := k.graceful(name+"-held", 300)
	_, revision := k.stored(name + "-held")
	k.policy(name, policy, "")
	k.awaitGone(name + "-free")
	k.expect(k.get(name+"-held"), name+"-held", found)
	k.unchanged(name+"-held", revision)
	k.patch(name+"-held", withoutFinalizers)
	k.awaitGone(name + "-held")
	k.awaitGone(name)
}
