package gracestorage

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/graceful"
)

func TestOutcomeOfDecision(t *testing.T) {
	for reason, want := range map[graceful.Reason]string{graceful.Granted: "granted", graceful.Shortened: "shortened",
		graceful.ForceRequested: "forced", graceful.NeverLater: "refused", graceful.NoRoom: "refused"} {
		if got := outcome(graceful.Decision{Reason: reason}); got != want {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
	}
}

// #4, #11
func TestWarningSaysWhyGraceIsIgnored(t *testing.T) {
	w := newWorld(t, "f")
	w.delete(nil)
	if _, heard := w.delete(ptr.To[int64](300)); len(heard) != 1 || !strings.Contains(heard[0], "already being deleted") {
		t.Errorf("plain: %q", heard)
	}
	w = newWorld(t) // the policy adds the first finalizer
	var heard warnings
	ctx := withHolder(warning.WithWarningRecorder(t.Context(), &heard))
	holderFrom(ctx).seconds.Store(ptr.To[int64](300))
	if _, err := w.update(ctx, func(object *unstructured.Unstructured) error {
		object.SetFinalizers([]string{"foregroundDeletion"})
		return w.markAsDeleting(object)
	}); err != nil || len(heard) != 1 || !strings.Contains(heard[0], "no finalizer") {
		t.Errorf("%v, %q", err, heard)
	}
	if got := w.etcd.read(t); len(got.GetAnnotations()) > 0 || *got.GetDeletionGracePeriodSeconds() != 0 {
		t.Errorf("in etcd %s", w.etcd.data)
	}
}

// #4: an object without finalizers is gone at once.
func TestRemovalWarnsOfIgnoredGrace(t *testing.T) {
	for name, tc := range map[string]struct {
		grace  *int64
		unread bool
		warns  bool
	}{
		"grace period":            {ptr.To[int64](300), false, true},
		"0":                       {ptr.To[int64](0), false, false},
		"none":                    {nil, false, false},
		"object cannot be read":   {ptr.To[int64](300), true, false},
		"negative":                {ptr.To[int64](-1), false, true},
		"none, cannot be decoded": {nil, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var heard warnings
			ctx := withHolder(warning.WithWarningRecorder(t.Context(), &heard))
			holderFrom(ctx).seconds.Store(tc.grace)
			err := w.s.Delete(ctx, "a", &unstructured.Unstructured{}, &storage.Preconditions{}, rest.ValidateAllObjectFunc, nil,
				storage.DeleteOptions{IgnoreStoreReadError: tc.unread})
			if err != nil || w.etcd.data != nil || (len(heard) == 1) != tc.warns {
				t.Errorf("%v, in etcd %q, warnings %q", err, w.etcd.data, heard)
			}
		})
	}
}
