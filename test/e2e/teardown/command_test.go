package teardown

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	core "github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// ended is what a command printed, and its exit code.
type ended struct {
	output, errors string
	code           int
}

// command runs "exeunt teardown" as the user of the kubeconfig.
func (r *rig) command(kubeconfig string, args ...string) ended {
	r.T.Helper()
	path, err := harness.Binaries().Path("exeunt")
	r.Must(err, "find exeunt")
	process := exec.CommandContext(r.Ctx, path, append([]string{"teardown", "--kubeconfig=" + kubeconfig}, args...)...)
	var out, errs bytes.Buffer
	process.Stdout, process.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := process.Run(); err != nil && !errors.As(err, &exit) {
		r.T.Fatalf("exeunt teardown %q: %v", args, err)
	}
	return ended{out.String(), errs.String(), process.ProcessState.ExitCode()}
}

// admin runs "exeunt teardown" as the administrator, and checks the exit code.
func (r *rig) admin(code int, args ...string) ended {
	r.T.Helper()
	e := r.command(r.Plane.AdminKubeconfig, args...)
	if e.code != code {
		r.T.Fatalf("exeunt teardown %q: exit code %d, want %d:\n%s\n%s", args, e.code, code, e.output, e.errors)
	}
	return e
}

// document returns the document that the command printed.
func (r *rig) document(e ended) *core.Document {
	r.T.Helper()
	document := &core.Document{}
	r.Must(json.Unmarshal([]byte(e.output), document), "decode "+e.output)
	return document
}

// id returns the ID of the cluster.
func (r *rig) id() string {
	r.T.Helper()
	namespace, err := r.Client.CoreV1().Namespaces().Get(r.Ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	r.Must(err, "read the ID of the cluster")
	return string(namespace.UID)
}

// fates are the fates of items by their external IDs.
func fates(document *core.Document) map[string]core.Fate {
	all := map[string]core.Fate{}
	for i := range document.Items {
		all[document.Items[i].ExternalID] = document.Items[i].Fate
	}
	return all
}

// isFrozen reports whether new claims are refused.
func (r *rig) isFrozen() bool {
	r.T.Helper()
	_, err := r.Client.CoreV1().PersistentVolumeClaims(r.Namespace).Create(r.Ctx, r.NewClaim("probe", harness.DeleteClass),
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil && !apierrors.IsForbidden(err) {
		r.T.Fatalf("create a claim in dry run: %v", err)
	}
	return err != nil
}

// A person reads the plan, keeps one disk more, tears the cluster down, and then uninstalls Alive.
func TestCommandTearsDownAndIsUndone(t *testing.T) {
	r := newRig(t, stock)
	r.CreateClaim("data", harness.DeleteClass)
	r.CreateClaim("wanted", harness.DeleteClass)
	r.CreateClaim("archive", harness.RetainClass)
	deleted, wanted, kept := r.AwaitBound("data"), r.AwaitBound("wanted"), r.AwaitBound("archive")
	r.createUser("a", "data")
	createService(r.Session, "web")
	service := awaitService(r.Session, "web", "has an address", hasAddress)
	address := service.Status.LoadBalancer.Ingress[0].IP

	plan := r.document(r.admin(0, "-o", "json"))
	if plan.Cluster.ID != r.id() || len(plan.Items) != 4 || plan.Phase != "" {
		t.Errorf("the plan: %+v", plan)
	}
	keep := "--preserve=pvc/" + r.Namespace + "/wanted"
	done := r.admin(0, "--confirm="+r.id()[:8], keep, "-o", "json")
	report := r.document(done)
	got := fates(report)
	if got[harness.Handle(deleted)] != core.Gone || got[harness.Handle(wanted)] != core.Kept ||
		got[harness.Handle(kept)] != core.Kept || got[address] != core.Gone || report.Phase != core.Complete {
		t.Errorf("the report: phase %s, fates %v", report.Phase, got)
	}
	if r.IsStored(harness.Handle(deleted)) || !r.IsStored(harness.Handle(wanted)) || !r.IsStored(harness.Handle(kept)) {
		t.Errorf("stored: %t, %t, %t; want that only the first disk is gone", r.IsStored(harness.Handle(deleted)),
			r.IsStored(harness.Handle(wanted)), r.IsStored(harness.Handle(kept)))
	}
	if !strings.Contains(done.errors, "TearingDown") {
		t.Errorf("no progress: %s", done.errors)
	}
	if !r.isFrozen() {
		t.Error("a new claim is admitted after the end")
	}
	r.admin(0, "remove")
	if r.isFrozen() {
		t.Error("a new claim is refused after the removal")
	}
	if again := r.admin(0, "remove"); again.output != "nothing of a teardown is installed\n" {
		t.Errorf("removed again: %s", again.output)
	}
	r.CreateClaim("new", harness.DeleteClass)
	r.AwaitBound("new")
}

// A finalizer of somebody else keeps the claim: the command is interrupted, and the abort saves the disk.
func TestInterruptedCommandIsAborted(t *testing.T) {
	r := newRig(t, stock)
	r.CreateClaim("data", harness.DeleteClass)
	volume := r.AwaitBound("data")
	claims := r.Client.CoreV1().PersistentVolumeClaims(r.Namespace)
	_, err := claims.Patch(r.Ctx, "data", types.MergePatchType,
		[]byte(`{"metadata": {"finalizers": ["kubernetes.io/pvc-protection", "example.com/backup"]}}`), metav1.PatchOptions{})
	r.Must(err, "add a finalizer")
	path, err := harness.Binaries().Path("exeunt")
	r.Must(err, "find exeunt")
	process := exec.CommandContext(r.Ctx, path, "teardown", "--kubeconfig="+r.Plane.AdminKubeconfig, "--confirm="+r.id())
	var out, errs bytes.Buffer
	process.Stdout, process.Stderr = &out, &errs
	r.Must(process.Start(), "start the command")
	harness.Await(r.Session, &v1.PersistentVolumeClaim{}, harness.ObjectName{Resource: "persistentvolumeclaims",
		Namespace: r.Namespace, Name: "data"}, "is deleted", func(c *v1.PersistentVolumeClaim, exists bool) bool {
		return exists && c.DeletionTimestamp != nil
	})
	r.Must(process.Process.Signal(os.Interrupt), "interrupt the command")
	_ = process.Wait()
	said := strings.Join(strings.Fields(errs.String()), " ")
	if code := process.ProcessState.ExitCode(); code != 2 || !strings.Contains(said, "this command deletes nothing more") ||
		!strings.Contains(said, "exeunt teardown --confirm="+r.id()) || !strings.Contains(out.String(), "remains") {
		t.Errorf("exit code %d:\n%s\n%s", code, out.String(), errs.String())
	}
	done := r.admin(0, "--abort")
	if !strings.Contains(done.output, volume.Name+" of claim "+r.Namespace+"/data keeps its disk") || !r.isFrozen() {
		t.Errorf("frozen: %t, abort:\n%s", r.isFrozen(), done.output)
	}
	r.admin(0, "remove")
	_, err = claims.Patch(r.Ctx, "data", types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
	r.Must(err, "remove the finalizer")
	harness.Await(r.Session, &v1.PersistentVolume{}, harness.ObjectName{Resource: "persistentvolumes", Name: volume.Name},
		"is released", func(v *v1.PersistentVolume, exists bool) bool { return exists && v.Status.Phase == v1.VolumeReleased })
	if r.isFrozen() || !r.IsStored(harness.Handle(volume)) {
		t.Errorf("frozen: %t, disk stored: %t", r.isFrozen(), r.IsStored(harness.Handle(volume)))
	}
}

// What is refused changes no object.
func TestCommandRefusesWithoutWrite(t *testing.T) {
	r := newRig(t, stock)
	r.CreateClaim("data", harness.DeleteClass)
	r.AwaitBound("data")
	owner := r.namespaceAdmin()
	for name, tc := range map[string]struct {
		kubeconfig string
		args       []string
		want       string
		code       int
	}{
		"another ID":        {r.Plane.AdminKubeconfig, []string{"--confirm=00000000-0000"}, "has the ID " + r.id(), 4},
		"a namespace admin": {owner, []string{"--confirm=" + r.id()}, `resources: ["alives"], verbs: [`, 4},
		"a typo":            {r.Plane.AdminKubeconfig, []string{"--confirm=" + r.id(), "--preserve=pvc/" + r.Namespace + "/dat"}, "there is no", 4},
		"no time":           {r.Plane.AdminKubeconfig, []string{"--confirm=" + r.id(), "--timeout=0"}, "it must be 1m at least", 1},
	} {
		e := r.command(tc.kubeconfig, tc.args...)
		if text := strings.Join(strings.Fields(e.output+e.errors), " "); e.code != tc.code || !strings.Contains(text, tc.want) {
			t.Errorf("%s: exit code %d, want %d with %q:\n%s", name, e.code, tc.code, tc.want, text)
		}
	}
	_, err := r.Client.Discovery().ServerResourcesForGroupVersion("lifecycle.exeunt.io/v1alpha1")
	if !apierrors.IsNotFound(err) || r.isFrozen() {
		t.Errorf("Alive is served, or the freeze is there: %v", err)
	}
}

// namespaceAdmin returns the kubeconfig of a user who may do everything in one namespace.
func (r *rig) namespaceAdmin() string {
	r.T.Helper()
	_, err := r.Client.RbacV1().RoleBindings(r.Namespace).Create(r.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "owner"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.Namespace, Name: "owner"}},
	}, metav1.CreateOptions{})
	r.Must(err, "create binding")
	file, err := r.Plane.Kubeconfig(r.Ctx, sandbox.ServiceAccount(r.Namespace, "owner"))
	r.Must(err, "write kubeconfig")
	return file
}

// The second command finds Alive, freeze and record of the first one.
func TestEmptyClusterIsTornDown(t *testing.T) {
	r := newRig(t, stock)
	for range 2 {
		e := r.admin(0, "--confirm="+r.id())
		if !strings.Contains(e.output, "Nothing exists outside of the cluster") {
			t.Errorf("the report:\n%s", e.output)
		}
	}
	if !r.isFrozen() {
		t.Error("a new claim is admitted after the end")
	}
}
