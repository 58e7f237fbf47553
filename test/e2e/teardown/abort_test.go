package teardown

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown/runner"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// aliveNow returns Alive, which must exist.
func (r *rig) aliveNow() *alive.Alive {
	r.T.Helper()
	client, err := dynamic.NewForConfig(r.Plane.RESTConfig())
	r.Must(err, "make client")
	content, err := client.Resource(alive.Resource).Get(r.Ctx, alive.Name, metav1.GetOptions{})
	r.Must(err, "read Alive")
	object, err := alive.FromUnstructured(content)
	r.Must(err, "decode Alive")
	return object
}

// killedAtFreeze ends a runner once the freeze is written.
func (r *rig) killedAtFreeze() {
	r.T.Helper()
	ctx, kill := context.WithCancelCause(r.Ctx)
	defer kill(nil)
	connection := r.Plane.RESTConfig()
	connection.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(request *http.Request) (*http.Response, error) {
			if ctx.Err() != nil {
				return nil, errKilled
			}
			response, err := next.RoundTrip(request)
			if request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path,
				"/validatingadmissionpolicybindings/"+runner.FreezeName) {
				kill(errKilled)
			}
			return response, err
		})
	})
	if _, err := runner.New(r.configFor(connection)).Teardown(ctx, runner.Word{Timeout: time.Hour}); !errors.Is(err, errKilled) {
		r.T.Fatalf("the runner ended with %v", err)
	}
}

// Row 71 before Started.
func TestAbortBeforeStartBringsAllBack(t *testing.T) {
	r := newRig(t, stock)
	r.CreateClaim("data", harness.DeleteClass)
	volume := r.AwaitBound("data")
	r.killedAtFreeze()
	before := r.aliveNow()
	if !before.IsDeleted() || before.IsStarted() {
		t.Fatalf("Alive is %+v", before)
	}
	r.Until("the freeze is in force", r.isFrozen)
	done, err := runner.New(r.config()).Abort(r.Ctx)
	if err != nil || done.Started {
		t.Fatalf("%+v, %v", done, err)
	}
	if now := r.aliveNow(); now.UID == before.UID || now.IsDeleted() || !now.IsProtected() {
		t.Errorf("Alive is %+v", now)
	}
	r.Until("the freeze is off", func() bool { return !r.isFrozen() })
	r.CreateClaim("new", harness.DeleteClass)
	r.AwaitBound("new")
	if !r.IsStored(harness.Handle(volume)) {
		t.Error("the disk is gone")
	}
}

// The Lease and the record go with their namespace: the runner stops, Alive stays, and the next run goes on.
func TestRunnerStopsWithItsNamespace(t *testing.T) {
	r := newRig(t, stock)
	r.CreateClaim("data", harness.DeleteClass)
	volume := r.AwaitBound("data")
	claims := r.Client.CoreV1().PersistentVolumeClaims(r.Namespace)
	hold := func(finalizers string) {
		_, err := claims.Patch(r.Ctx, "data", types.MergePatchType, []byte(`{"metadata": {"finalizers": [`+finalizers+`]}}`),
			metav1.PatchOptions{})
		r.Must(err, "set finalizers")
	}
	hold(`"kubernetes.io/pvc-protection", "example.com/backup"`)
	ended := make(chan error, 1)
	go func() {
		_, err := r.tearDown(r.Ctx)
		ended <- err
	}()
	harness.Await(r.Session, &v1.PersistentVolumeClaim{}, harness.ObjectName{Resource: "persistentvolumeclaims",
		Namespace: r.Namespace, Name: "data"}, "is deleted", func(c *v1.PersistentVolumeClaim, exists bool) bool {
		return exists && c.DeletionTimestamp != nil
	})
	namespaces := r.Client.CoreV1().Namespaces()
	r.Must(namespaces.Delete(r.Ctx, runner.Namespace, metav1.DeleteOptions{}), "delete the namespace")
	select {
	case err := <-ended:
		if !errors.Is(err, runner.ErrNamespaceGone) {
			t.Errorf("the runner ended with %v", err)
		}
	case <-r.Ctx.Done():
		t.Fatal("the runner goes on without its namespace")
	}
	if now := r.aliveNow(); !now.IsDeleted() || !now.IsStarted() || !r.IsStored(harness.Handle(volume)) {
		t.Errorf("Alive is %+v", now)
	}
	harness.Await(r.Session, &v1.Namespace{}, harness.ObjectName{Resource: "namespaces", Name: runner.Namespace}, "is gone",
		func(_ *v1.Namespace, exists bool) bool { return !exists })
	hold("")
	r.mustComplete()
	if r.IsStored(harness.Handle(volume)) {
		t.Error("the disk is left")
	}
}
