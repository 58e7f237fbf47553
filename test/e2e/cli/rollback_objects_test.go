package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/rollback"
	"github.com/exeunt-io/exeunt/pkg/rollback/runner"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// listItems returns the items of a List as documents.
func listItems(c rollbackCommand, text []byte) []byte {
	c.T.Helper()
	var list struct{ Items []any }
	c.Must(yaml.Unmarshal(text, &list), "decode the saved file")
	var all []byte
	for _, item := range list.Items {
		document, err := yaml.Marshal(item)
		c.Must(err, "encode item")
		all = append(append(all, "---\n"...), document...)
	}
	return all
}

// newBare returns the command in a cluster without programs.
func newBare(t *testing.T) rollbackCommand {
	t.Helper()
	t.Parallel()
	return newRollback(harness.Own(t, harness.Setup{NoPrograms: true}, harness.Within(2*harness.Timeout)))
}

// unserved returns a volume of a driver that no program serves, with the changes.
func unserved(c rollbackCommand, name string, change ...func(*v1.PersistentVolume)) *v1.PersistentVolume {
	c.T.Helper()
	return c.CreateVolume(name, v1.PersistentVolumeReclaimDelete, append(change, func(v *v1.PersistentVolume) {
		v.Spec.CSI.Driver = harness.UnservedDriver
	})...)
}

// pending adds a finalizer of another program, so that the volume becomes Terminating.
func pending(v *v1.PersistentVolume) {
	v.Annotations = map[string]string{reclaim.Annotation: reclaim.AnnotationPending, "example.com/mine": "yes"}
	v.Finalizers = []string{"example.com/mine"}
}

func (c rollbackCommand) volume(name string) *v1.PersistentVolume {
	c.T.Helper()
	volume, err := c.Client.CoreV1().PersistentVolumes().Get(c.Ctx, name, metav1.GetOptions{})
	c.Must(err, "read volume")
	return volume
}

func TestClusterWithoutExeuntHasNothingLeft(t *testing.T) {
	c := newBare(t)
	c.expect(0, []string{"Nothing is left", "not visible here"})
	c.expect(0, []string{"Nothing is left"}, "--confirm")
	if written := c.writes(); len(written) > 0 {
		t.Errorf("written: %q", written)
	}
}

func TestPendingDeletionIsNeverForgottenWithoutConsent(t *testing.T) {
	c := newBare(t)
	volume := unserved(c, "late", pending)
	c.DeleteVolume(volume.Name)
	stopped := "--stopped=" + harness.UnservedDriver
	c.expect(2, []string{"2. blocked", "neither Lease nor pod shows"}, "--confirm")
	c.expect(4, []string{"2. blocked", "--abandon-disk " + volume.Name, "disk late of " + harness.UnservedDriver},
		"--confirm", stopped)
	if got := c.volume(volume.Name); reclaim.StatusOf(got) != reclaim.StatusPending {
		t.Fatalf("the annotation is gone: %v", got.Annotations)
	}
	c.expect(0, []string{"removed: annotation exeunt.io/reclaim"}, "--confirm", stopped, "--abandon-disk="+volume.Name)
	if got := c.volume(volume.Name); len(got.Annotations) != 1 || !finalizer.Has(got.Finalizers, "example.com/mine") {
		t.Errorf("annotations %v, finalizers %v; want those of others", got.Annotations, got.Finalizers)
	}
}

func TestFinalizersOfUpstreamStayUnlessUnserved(t *testing.T) {
	c := newBare(t)
	volume := unserved(c, "gone", func(v *v1.PersistentVolume) {
		v.Finalizers = []string{string(finalizer.External), string(finalizer.InTree), string(finalizer.VolumeProtection),
			"example.com/mine"}
	})
	c.expect(0, []string{"external-provisioner.volume.kubernetes.io/finalizer on 1 volume: "}, "--confirm")
	driver, err := c.Client.StorageV1().CSIDrivers().Create(c.Ctx,
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: harness.UnservedDriver}}, metav1.CreateOptions{})
	c.Must(err, "create CSIDriver")
	named := []string{"--confirm", "--unserved=" + harness.UnservedDriver}
	c.expect(4, []string{"refuse: finalizer external-provisioner"}, named...)
	if got := c.volume(volume.Name); len(got.Finalizers) != 4 {
		t.Fatalf("finalizers = %v, want all four", got.Finalizers)
	}
	c.Must(c.Client.StorageV1().CSIDrivers().Delete(c.Ctx, driver.Name, metav1.DeleteOptions{}), "delete CSIDriver")
	c.expect(0, []string{"removed: finalizer external-provisioner"}, named...)
	if got := c.volume(volume.Name); len(got.Finalizers) != 3 || finalizer.Has(got.Finalizers, finalizer.External) {
		t.Fatalf("finalizers = %v, want all but the provisioner's", got.Finalizers)
	}
	lease := holdLease(c, "kube-system", "kube-controller-manager", "master")
	c.expect(4, []string{"refuse: finalizer kubernetes.io/pv-controller"}, "--confirm", "--unserved-loops")
	c.Must(c.Client.CoordinationV1().Leases("kube-system").Delete(c.Ctx, lease.Name, metav1.DeleteOptions{}),
		"delete Lease")
	c.expect(0, []string{"removed: finalizer kubernetes.io/pv-controller"}, "--confirm", "--unserved-loops")
	if got := c.volume(volume.Name); len(got.Finalizers) != 1 {
		t.Errorf("finalizers = %v, want that of another program", got.Finalizers)
	}
}

// A sidecar without leader election has no Lease, and its driver needs no CSIDriver.
func TestSidecarOfUpstreamKeepsFinalizer(t *testing.T) {
	c := newBare(t)
	volume := unserved(c, "served", func(v *v1.PersistentVolume) { v.Finalizers = []string{string(finalizer.External)} })
	createPod(c, c.Namespace, "csi", v1.Container{
		Name: "csi-provisioner", Image: "r/csi-provisioner:v6.3.0",
		Args: []string{"--csi-address=/run/" + harness.UnservedDriver + "/csi.sock"},
	})
	c.expect(4, []string{"refuse: finalizer external-provisioner", "a program that removes it in time was seen"},
		"--confirm", "--unserved="+harness.UnservedDriver)
	if got := c.volume(volume.Name); !finalizer.Has(got.Finalizers, finalizer.External) {
		t.Errorf("finalizers = %v", got.Finalizers)
	}
}

// holdLease creates a leader Lease that was renewed now.
func holdLease(c rollbackCommand, namespace, name, holder string) *coordinationv1.Lease {
	c.T.Helper()
	now := metav1.NowMicro()
	lease, err := c.Client.CoordinationV1().Leases(namespace).Create(c.Ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now,
			LeaseDurationSeconds: ptr.To[int32](600)},
	}, metav1.CreateOptions{})
	c.Must(err, "create Lease")
	return lease
}

func TestLeaseOfLivingProvisionerIsNeverRemoved(t *testing.T) {
	c := newBare(t)
	writeEntry(c.Session, harness.UnservedDriver, journal.KindUnresolved, unresolved)
	holdLease(c, deploy.Namespace, "stale-example-com", "pod_exeunt")
	c.expect(4, []string{"4. pending", "the provisioner of Exeunt runs"}, "--confirm", "--stopped="+harness.UnservedDriver)
	owner := journal.Journal{Namespace: deploy.Namespace, Driver: harness.UnservedDriver}
	if _, err := c.Client.CoordinationV1().Leases(owner.Namespace).
		Get(c.Ctx, owner.LeaseName(journal.KindUnresolved, 0), metav1.GetOptions{}); err != nil || len(c.files()) != 0 {
		t.Errorf("the Lease of the journal: %v; files %q", err, c.files())
	}
}

func TestSavedFileIsNeverOverwritten(t *testing.T) {
	c := newBare(t)
	writeEntry(c.Session, harness.UnservedDriver, journal.KindActive, unresolved)
	file := filepath.Join(c.dir, "mine.yaml")
	c.Must(os.WriteFile(file, []byte("mine"), 0o600), "write file")
	c.expect(1, []string{"never overwritten", "nothing was changed"}, "--confirm", "--save=mine.yaml",
		"--stopped="+harness.UnservedDriver)
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Errorf("the file is now %q, %v", text, err)
	}
	c.expect(0, []string{"saved the open entries", "other.yaml"}, "--confirm", "--save=other.yaml",
		"--stopped="+harness.UnservedDriver)
}

// writerFunc calls a function for each line of progress.
type writerFunc func(line string)

func (f writerFunc) Write(text []byte) (int, error) {
	f(string(text))
	return len(text), nil
}

// A provisioner that starts between the read and the write adds an entry after the others
// were saved to the file.
func TestEntryAddedMeanwhileIsNotLost(t *testing.T) {
	const added = "c3c3c3c3-0000-4000-8000-000000000000"
	c := newBare(t)
	writeEntry(c.Session, harness.UnservedDriver, journal.KindActive, unresolved)
	owner := journal.Journal{Namespace: deploy.Namespace, Driver: harness.UnservedDriver}
	leases, name := c.Client.CoordinationV1().Leases(owner.Namespace), owner.LeaseName(journal.KindActive, 0)
	progress := ""
	options := runner.Options{
		Connect: func() (*cluster.Reader, error) { return cluster.NewReader(c.Plane.RESTConfig()) },
		Confirm: true, Stopped: []string{harness.UnservedDriver}, Timeout: harness.Timeout,
		Save: filepath.Join(c.dir, "first.yaml"),
	}
	options.Progress = writerFunc(func(line string) {
		if progress += line; !strings.Contains(line, "saved the open entries") {
			return
		}
		lease, err := leases.Get(c.Ctx, name, metav1.GetOptions{})
		c.Must(err, "read Lease")
		lease.Annotations[journal.EntryPrefix+added] = lease.Annotations[journal.EntryPrefix+string(unresolved)]
		_, err = leases.Update(c.Ctx, lease, metav1.UpdateOptions{})
		c.Must(err, "add an entry")
	})
	plan, err := runner.Run(c.Ctx, options)
	c.Must(err, "run rollback")
	lease, err := leases.Get(c.Ctx, name, metav1.GetOptions{})
	if err != nil || len(journal.Encoded(lease)) != 2 || plan.Outcome() != rollback.SomethingLeft ||
		!strings.Contains(progress, "changed meanwhile") {
		t.Errorf("outcome %v, Lease %v: %v\n%s", plan.Outcome(), lease, err, progress)
	}
	c.expect(0, []string{"saved the open entries"}, "--confirm", "--save=second.yaml", "--stopped="+harness.UnservedDriver)
	if text, err := os.ReadFile(filepath.Join(c.dir, "second.yaml")); err != nil ||
		!strings.Contains(string(text), added) {
		t.Errorf("the second file lacks the entry: %v\n%s", err, text)
	}
}

func TestUnwritableFolderChangesNothing(t *testing.T) {
	c := newBare(t)
	writeEntry(c.Session, harness.UnservedDriver, journal.KindActive, unresolved)
	unserved(c, "done", func(v *v1.PersistentVolume) {
		v.Annotations = map[string]string{reclaim.Annotation: reclaim.AnnotationDone}
	})
	c.expect(1, []string{"nothing was changed"}, "--confirm", "--save=absent/folder/x.yaml",
		"--stopped="+harness.UnservedDriver)
	if written := c.writes(); len(written) > 0 {
		t.Errorf("written: %q", written)
	}
}

func TestFinalizerOfLaterVersionIsLeft(t *testing.T) {
	c := newBare(t)
	c.CreateClaim("later", "none",
		func(claim *v1.PersistentVolumeClaim) { claim.Finalizers = []string{"exeunt.io/unknown"} })
	c.expect(4, []string{"6. blocked", "finalizer exeunt.io/unknown", "a later version of Exeunt"}, "--confirm",
		"--stopped="+harness.UnservedDriver)
	if written := c.writes(); len(written) > 0 {
		t.Errorf("written: %q", written)
	}
}

func TestMissingRightsNeverCountAsAbsent(t *testing.T) {
	c := newBare(t)
	unserved(c, "late", pending)
	var err error
	c.kubeconfig, err = c.Plane.Kubeconfig(c.Ctx, sandbox.User("nobody"))
	c.Must(err, "write kubeconfig")
	c.expect(2, []string{
		"1. blocked", "2. blocked", "3. blocked", "4. blocked", "5. blocked", "6. blocked", "8. blocked",
		"incomplete: no right to list persistentvolumes; grant the rule", "no right to list leases",
	}, "--confirm")
}

// Ctrl-C ends the command between two writes; another run finishes.
func TestInterruptedRollbackIsContinued(t *testing.T) {
	const count = 300
	c := newBare(t)
	for i := range count {
		unserved(c, fmt.Sprintf("done-%d", i), func(v *v1.PersistentVolume) {
			v.Annotations = map[string]string{reclaim.Annotation: reclaim.AnnotationDone}
		})
	}
	process := c.process(c.Ctx, "--confirm", "--stopped="+harness.UnservedDriver)
	output, err := process.StdoutPipe()
	c.Must(err, "connect to the output")
	c.Must(process.Start(), "start exeunt")
	lines := bufio.NewReader(output)
	line, err := lines.ReadString('\n')
	c.Must(err, "read the output")
	c.Must(process.Process.Signal(syscall.SIGINT), "send Ctrl-C")
	rest, _ := io.ReadAll(lines)
	_ = process.Wait()
	removed := strings.Count(line+string(rest), "removed:")
	if status := process.ProcessState.ExitCode(); status != 130 || removed == 0 || removed == count {
		t.Errorf("exit code %d after %d of %d changes", status, removed, count)
	}
	c.expect(2, []string{"6. pending"}, "--stopped="+harness.UnservedDriver)
	c.expect(0, []string{"Nothing is left"}, "--confirm", "--stopped="+harness.UnservedDriver)
	expectNothingLeft(c.Session)
}

// createPod creates a pod of a Deployment of this name.
func createPod(c rollbackCommand, namespace, name string, container v1.Container) {
	c.T.Helper()
	_, err := c.Client.CoreV1().Pods(namespace).Create(c.Ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name + "-5f-x", Labels: map[string]string{"pod-template-hash": "5f"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name + "-5f", UID: "u"}},
		},
		Spec: v1.PodSpec{Containers: []v1.Container{container}},
	}, metav1.CreateOptions{})
	c.Must(err, "create pod")
}

func TestWorkloadsAreChangedByTheirOwnersOnly(t *testing.T) {
	c := newBare(t)
	createPod(c, c.Namespace, "csi", v1.Container{Name: "csi-provisioner", Image: "r/exeunt/provisioner:v1"})
	createPod(c, c.Namespace, "pv-controller", v1.Container{Name: "pv-controller", Image: "r/x",
		Command: []string{"/pv-controller"}})
	createPod(c, "kube-system", "kcm", v1.Container{Name: "kcm", Image: "r/kube-controller-manager:v1.36.3",
		Command: []string{
			"kube-controller-manager", "--controllers=*,-persistentvolume-binder-controller",
		}})
	volume := unserved(c, "done", func(v *v1.PersistentVolume) {
		v.Annotations = map[string]string{reclaim.Annotation: reclaim.AnnotationDone}
	})
	holdLease(c, c.Namespace, "stale-example-com", "csi-5f-x") // an earlier version leads
	c.expect(2, []string{
		"4. pending", "wait: annotation exeunt.io/reclaim", "kubectl set image deployment/csi csi-provisioner=",
		"kubectl rollout status deployment/csi -n " + c.Namespace,
		"5. pending", "kubectl scale deployment/pv-controller --replicas=0 -n " + c.Namespace,
		"-persistentvolume-protection-controller",
	}, "--confirm")
	if written := c.writes(); len(written) > 0 {
		t.Errorf("written: %q", written)
	}
	for namespace, names := range map[string][]string{c.Namespace: {"csi", "pv-controller"}, "kube-system": {"kcm"}} {
		for _, name := range names {
			c.Must(c.Client.CoreV1().Pods(namespace).Delete(c.Ctx, name+"-5f-x",
				metav1.DeleteOptions{GracePeriodSeconds: new(int64)}), "delete pod")
		}
	}
	c.expect(0, []string{"removed: annotation exeunt.io/reclaim: done of PersistentVolume " + volume.Name}, "--confirm")
}
