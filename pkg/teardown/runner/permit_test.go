package runner

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/alive"
)

// A webhook denies the permission with 409, again and again.
func TestDeniedPermissionIsAnError(t *testing.T) {
	object := deletedAlive(false)
	object.DeletionTimestamp = nil
	r := newTestRunner(t, object)
	patches := 0
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("patch", "alives",
		func(k8stesting.Action) (bool, runtime.Object, error) {
			if patches++; patches > 100 {
				stop()
				return true, nil, ctx.Err()
			}
			return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "alives"}, alive.Name, errors.New("denied"))
		})
	if _, err := r.permit(ctx, object, Word{}); patches != 1 || !apierrors.IsConflict(err) {
		t.Errorf("after %d patches: %v", patches, err)
	}
}
