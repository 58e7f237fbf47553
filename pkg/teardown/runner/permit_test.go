package runner

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
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

// Another runner completes the teardown between the read and the permission of this command: the API server says 404.
func TestAliveMayGoBeforeItsPermission(t *testing.T) {
	object := deletedAlive(true)
	r := newTestRunner(t, object, completed(string(object.UID))...)
	r.Command = true
	for i, f := range frozen(string(object.UID), string(object.UID)) {
		if _, err := r.Dynamic.Resource(freezeParts[i]).Create(t.Context(), f, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	client := r.Dynamic.(*dynamicfake.FakeDynamicClient)
	client.PrependReactor("get", "*", func(action k8stesting.Action) (bool, runtime.Object, error) {
		name := action.(k8stesting.GetAction).GetName()
		installed := frozen("", "")[0]
		installed.SetName(name)
		return name != alive.Name && name != FreezeName, installed, nil
	})
	client.PrependReactor("patch", "alives", func(k8stesting.Action) (bool, runtime.Object, error) {
		_ = client.Tracker().Delete(alive.Resource, "", alive.Name)
		gone := apierrors.NewNotFound(schema.GroupResource{Resource: "alives"}, alive.Name)
		return true, (*unstructured.Unstructured)(nil), gone
	})
	outcome, err := r.Teardown(t.Context(), Word{})
	if err != nil || outcome.Phase != teardown.Complete {
		t.Errorf("%+v, %v", outcome, err)
	}
}
