package sources

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// A removal without an answer may take effect until the API server has given the request up.
func TestProtectionAwaitsOpenRemoval(t *testing.T) {
	for name, tc := range map[string]struct {
		failure error
		awaited bool
	}{
		"answer is lost":     {context.DeadlineExceeded, true},
		"removal is refused": {apierrors.NewForbidden(v1.Resource("persistentvolumeclaims"), "source", errors.New("scripted")), false},
		"removal succeeds":   {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &sourceProtection[*v1.PersistentVolumeClaim]{Kind: "source claim", Finalizer: finalizer.CloneSource,
					Edit: func(_ context.Context, source *v1.PersistentVolumeClaim,
						change finalizer.Change) (*v1.PersistentVolumeClaim, error) {
						now := source.DeepCopy()
						if now.Finalizers = nil; len(change.Add) > 0 {
							now.Finalizers = source.Finalizers
						}
						return now, tc.failure
					}}
				source := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "source",
					Finalizers: []string{string(finalizer.CloneSource)}}}
				if err := p.Remove(t.Context(), source); !errors.Is(err, tc.failure) {
					t.Fatal(err)
				}
				if err := p.Protect(t.Context(), source); (err != nil) != tc.awaited {
					t.Errorf("Protect = %v, want an error: %v", err, tc.awaited)
				}
				<-time.After(openRemoval)
				synctest.Wait()
				if err := p.Protect(t.Context(), source); err != nil {
					t.Errorf("Protect = %v, once the removal cannot take effect any more", err)
				}
			})
		})
	}
}

// A mutating webhook removes the finalizer, and the write is answered with success.
func TestSourceWithoutItsFinalizerIsNotProtected(t *testing.T) {
	for name, tc := range map[string]struct {
		stored    []string
		protected bool
	}{"stored": {[]string{string(finalizer.CloneSource)}, true}, "removed on admission": {nil, false}} {
		source := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "source"}}
		p := &sourceProtection[*v1.PersistentVolumeClaim]{Kind: "source claim", Finalizer: finalizer.CloneSource,
			Edit: func(_ context.Context, source *v1.PersistentVolumeClaim,
				_ finalizer.Change) (*v1.PersistentVolumeClaim, error) {
				now := source.DeepCopy()
				now.Finalizers = tc.stored
				return now, nil
			}}
		if err := p.Protect(t.Context(), source); (err == nil) != tc.protected {
			t.Errorf("%s: Protect = %v", name, err)
		}
	}
}
