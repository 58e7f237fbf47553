package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// current is the version of the control plane beside our programs.
var current = harness.KubeMinor()

// whyServer is an API server, and a namespace in it for one test.
type whyServer struct {
	t          *testing.T
	ctx        context.Context
	plane      *sandbox.ControlPlane
	client     kubernetes.Interface
	kubeconfig string
	namespace  string
}

// versions returns the versions to test with: EXEUNT_KUBE_VERSIONS, else that of the control
// plane beside our programs and those that are built.
func versions() []string {
	if named := strings.Fields(os.Getenv("EXEUNT_KUBE_VERSIONS")); len(named) > 0 {
		return named
	}
	found := []string{current}
	built, _ := filepath.Glob(filepath.Join(harness.Binaries().Dir, "kube-*", "controlplane"))
	for _, file := range built {
		found = append(found, strings.TrimPrefix(filepath.Base(filepath.Dir(file)), "kube-"))
	}
	return found
}

// open starts an API server of the version.
func open(t *testing.T, version string) *whyServer {
	t.Helper()
	binaries := harness.Binaries()
	if version != current {
		binaries.Dir = filepath.Join(binaries.Dir, "kube-"+version)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*harness.Timeout+
		time.Duration(volumesInCluster())*10*time.Millisecond)
	t.Cleanup(cancel)
	plane, err := sandbox.StartControlPlane(ctx, sandbox.Config{Binaries: binaries, Dir: t.TempDir()})
	if err != nil {
		t.Fatalf("start the control plane of %s: %v", version, err)
	}
	t.Cleanup(func() {
		stop, cancel := context.WithTimeout(context.Background(), harness.Timeout)
		defer cancel()
		if err := plane.Stop(stop); err != nil {
			t.Errorf("stop the control plane: %v", err)
		}
	})
	l := &whyServer{t: t, ctx: ctx, plane: plane, client: plane.Client(), kubeconfig: plane.AdminKubeconfig,
		namespace: "lab"}
	if version == current {
		l.must(harness.CheckVersion(plane), "check version")
	}
	_, err = l.client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.namespace}}, metav1.CreateOptions{})
	l.must(err, "create namespace")
	return l
}

func (l *whyServer) must(err error, what string) {
	l.t.Helper()
	if err != nil {
		l.t.Fatalf("%s: %v", what, err)
	}
}

// command returns the exeunt program with the arguments.
func (l *whyServer) command(args ...string) *exec.Cmd {
	program := filepath.Join(harness.Binaries().Dir, "exeunt")
	return exec.CommandContext(l.ctx, program, append(args, "--kubeconfig", l.kubeconfig)...)
}

// run returns what the program prints, and its exit code.
func (l *whyServer) run(args ...string) (stdout, stderr string, code int) {
	l.t.Helper()
	command := l.command(args...)
	var out, diagnostics bytes.Buffer
	command.Stdout, command.Stderr = &out, &diagnostics
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		l.t.Fatalf("run exeunt %v: %v", args, err)
	}
	return out.String(), diagnostics.String(), command.ProcessState.ExitCode()
}

// why returns the report of one object and the exit code.
func (l *whyServer) why(args ...string) (blocker.Report, int) {
	l.t.Helper()
	stdout, stderr, code := l.run(append([]string{"why", "-o", "json", "-n", l.namespace}, args...)...)
	var report blocker.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		l.t.Fatalf("exeunt why %v printed %q and %q: %v", args, stdout, stderr, err)
	}
	return report, code
}

// all returns the names of what waits, and the exit code.
func (l *whyServer) all(args ...string) (names []string, code int) {
	l.t.Helper()
	stdout, stderr, code := l.run(append([]string{"why", "-o", "json"}, args...)...)
	var survey struct{ Items []blocker.Report }
	if err := json.Unmarshal([]byte(stdout), &survey); err != nil {
		l.t.Fatalf("exeunt why %v printed %q and %q: %v", args, stdout, stderr, err)
	}
	for _, item := range survey.Items {
		names = append(names, item.Object.String())
	}
	slices.Sort(names)
	return names, code
}

// createConfig creates a ConfigMap with finalizers, and deletes it.
func (l *whyServer) createConfig(name string, finalizers ...string) *corev1.ConfigMap {
	l.t.Helper()
	created, err := l.client.CoreV1().ConfigMaps(l.namespace).Create(l.ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers}}, metav1.CreateOptions{})
	l.must(err, "create ConfigMap")
	l.must(l.client.CoreV1().ConfigMaps(l.namespace).Delete(l.ctx, name, metav1.DeleteOptions{}), "delete ConfigMap")
	return created
}

// removeFinalizers lets a ConfigMap go.
func (l *whyServer) removeFinalizers(name string) {
	l.t.Helper()
	_, err := l.client.CoreV1().ConfigMaps(l.namespace).Patch(l.ctx, name, types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	l.must(err, "remove finalizers")
}

// newVolume returns a volume with the policy and finalizers.
func newVolume(name string, policy corev1.PersistentVolumeReclaimPolicy, claim *corev1.ObjectReference,
	finalizers ...string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: policy, ClaimRef: claim,
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: name}},
		},
	}
}

// createVolume creates a volume in the phase, with the policy and finalizers.
func (l *whyServer) createVolume(name string, phase corev1.PersistentVolumePhase,
	policy corev1.PersistentVolumeReclaimPolicy, claim *corev1.ObjectReference, finalizers ...string) {
	l.t.Helper()
	volume, err := l.client.CoreV1().PersistentVolumes().Create(l.ctx, newVolume(name, policy, claim, finalizers...),
		metav1.CreateOptions{})
	l.must(err, "create volume")
	volume.Status.Phase = phase
	_, err = l.client.CoreV1().PersistentVolumes().UpdateStatus(l.ctx, volume, metav1.UpdateOptions{})
	l.must(err, "set phase")
}

// createAvailable creates a volume that nobody uses.
func (l *whyServer) createAvailable(name string) {
	volume := newVolume(name, corev1.PersistentVolumeReclaimDelete, nil)
	if _, err := l.client.CoreV1().PersistentVolumes().Create(l.ctx, volume, metav1.CreateOptions{}); err != nil {
		l.t.Errorf("create volume: %v", err)
	}
}

func (l *whyServer) deleteVolume(name string) {
	l.t.Helper()
	l.must(l.client.CoreV1().PersistentVolumes().Delete(l.ctx, name, metav1.DeleteOptions{}), "delete volume")
}

// grant lets the user read by the ClusterRole.
func (l *whyServer) grant(user, role string) {
	l.t.Helper()
	_, err := l.client.RbacV1().ClusterRoleBindings().Create(l.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user + "-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	l.must(err, "bind role")
}
