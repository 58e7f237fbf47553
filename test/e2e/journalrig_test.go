package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/journal"
)

// journaled is the provisioner as a process, with a driver of the test's own in this
// process. All restarts follow from the test.
type journaled struct {
	*scene
	mock    *flaky
	class   string
	journal journal.Journal
	// kubeconfig is whose rights the provisioner has, "" for its own service account.
	kubeconfig string
	args       []string
	sidecar    *sandbox.Process
	runs       int
}

// newJournaled makes driver and class; the provisioner is not started.
func (s *scene) newJournaled(policy v1.PersistentVolumeReclaimPolicy, args ...string) *journaled {
	s.t.Helper()
	j := &journaled{scene: s, mock: newFlaky(s, false), class: s.namespace, args: args}
	j.journal = journal.Journal{Namespace: deploy.Namespace, Driver: j.mock.config.Name}
	class := newClass(j.class, j.mock.config.Name, policy, storagev1.VolumeBindingImmediate)
	_, err := s.client.StorageV1().StorageClasses().Create(s.ctx, &class, metav1.CreateOptions{})
	s.must(err, "create class")
	s.t.Cleanup(func() {
		if j.sidecar != nil {
			_ = j.sidecar.Kill()
		}
	})
	return j
}

// start starts the provisioner.
func (j *journaled) start(more ...string) {
	j.t.Helper()
	j.runs++
	var err error
	j.sidecar, err = j.plane.StartProvisioner(j.ctx, &sandbox.Driver{Socket: j.mock.socket}, sandbox.Controller{
		Name: fmt.Sprintf("provisioner-%s-%d", j.namespace, j.runs), HonorReclaimPolicy: true, Kubeconfig: j.kubeconfig,
		Args: slices.Concat([]string{
			"--http-endpoint=127.0.0.1:0", "--timeout=1s", "--retry-interval-start=50ms", "--retry-interval-max=500ms", "--worker-threads=10",
		}, j.args, more),
	})
	j.must(err, "start provisioner")
}

// elect are the flags of a provisioner with leader election.
var elect = []string{"--leader-election", "--leader-election-retry-period=500ms"}

// stop ends the provisioner as a rollout does, kill as a crash does.
func (j *journaled) stop() {
	j.t.Helper()
	j.must(j.sidecar.Stop(j.ctx), "stop provisioner")
}

func (j *journaled) kill() {
	j.t.Helper()
	j.must(j.sidecar.Kill(), "kill provisioner")
}

// expireLeader ends the leader Lease of a process that was killed. So many other
// processes have led since.
func (j *journaled) expireLeader(others int32) {
	j.t.Helper()
	leases := j.client.CoordinationV1().Leases(deploy.Namespace)
	lease, err := leases.Get(j.ctx, strings.ReplaceAll(j.mock.config.Name, ".", "-"), metav1.GetOptions{})
	j.must(err, "read the leader lease")
	lease.Spec.HolderIdentity = ptr.To("")
	lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + others)
	_, err = leases.Update(j.ctx, lease, metav1.UpdateOptions{})
	j.must(err, "write the leader lease")
}

// until waits until the condition holds.
func (s *scene) until(what string, holds func() bool) {
	s.t.Helper()
	err := wait.PollUntilContextCancel(s.ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		s.t.Fatalf("waiting until %s: %v; logs in %s", what, err, s.dir)
	}
}

// leases are those of the journal.
func (j *journaled) leases(kind journal.Kind) []coordinationv1.Lease {
	j.t.Helper()
	list, err := j.client.CoordinationV1().Leases(j.journal.Namespace).List(j.ctx, metav1.ListOptions{})
	j.must(err, "list leases")
	return slices.DeleteFunc(list.Items, func(l coordinationv1.Lease) bool {
		is, _, ours := j.journal.KindOf(&l)
		return !ours || is != kind
	})
}

// edit changes the first active Lease, as an administrator does.
func (j *journaled) edit(change func(*coordinationv1.Lease)) *coordinationv1.Lease {
	j.t.Helper()
	leases := j.client.CoordinationV1().Leases(j.journal.Namespace)
	for {
		lease, err := leases.Get(j.ctx, j.journal.LeaseName(journal.Active, 0), metav1.GetOptions{})
		j.must(err, "read lease")
		change(lease)
		written, err := leases.Update(j.ctx, lease, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) { // the provisioner wrote it
			continue
		}
		j.must(err, "write lease")
		return written
	}
}

func (j *journaled) entries(kind journal.Kind) []journal.Entry {
	j.t.Helper()
	var all []journal.Entry
	for _, lease := range j.leases(kind) {
		found, unreadable := journal.Entries(&lease)
		if len(unreadable) > 0 {
			j.t.Errorf("lease %s has unreadable entries: %v", lease.Name, unreadable)
		}
		all = append(all, found...)
	}
	return all
}

func (j *journaled) awaitEntries(kind journal.Kind, count int) []journal.Entry {
	j.t.Helper()
	j.until(fmt.Sprintf("there are %d entries that are %s", count, kind), func() bool { return len(j.entries(kind)) == count })
	return j.entries(kind)
}

// awaitVolumes waits until the driver has so many volumes.
func (j *journaled) awaitVolumes(count int) {
	j.t.Helper()
	j.until(fmt.Sprintf("the driver has %d volumes", count), func() bool { return len(j.mock.volumes()) == count })
}

func (j *journaled) expectVolumes(count int) {
	j.t.Helper()
	if volumes := j.mock.volumes(); len(volumes) != count {
		j.t.Errorf("the driver has the volumes %v, want %d", volumes, count)
	}
}

// called counts the finished calls of the method.
func (j *journaled) called(method string) int {
	count := 0
	for _, call := range j.mock.server.Calls() {
		if call.Method == method {
			count++
		}
	}
	return count
}

// fail has every CreateVolume create the volume and time out.
func (j *journaled) fail() {
	j.t.Helper()
	j.must(j.mock.server.Inject(csimock.Fault{Method: "CreateVolume", Code: codes.DeadlineExceeded, After: true}), "inject fault")
}

// open creates a claim whose volume exists though no answer came.
func (j *journaled) open(claim string) *v1.PersistentVolumeClaim {
	j.t.Helper()
	j.fail()
	before := len(j.mock.volumes())
	created := j.createClaim(claim, j.class)
	j.awaitVolumes(before + 1)
	return created
}

// abandon creates such a claim and deletes it; it goes while the driver does not
// answer.
func (j *journaled) abandon(claim string) *v1.PersistentVolumeClaim {
	j.t.Helper()
	opened := j.open(claim)
	j.deleteClaim(claim)
	j.awaitClaimGone(claim)
	j.expectVolumes(1)
	return opened
}

// expectFinished wants the volume of the claim reclaimed by the normal way, once the
// driver answers again, and nothing left.
func (j *journaled) expectFinished(claim *v1.PersistentVolumeClaim) {
	j.t.Helper()
	j.mock.server.ClearFaults()
	j.awaitVolumes(0)
	j.awaitVolumeGone("pvc-" + string(claim.UID))
	j.awaitEntries(journal.Active, 0)
	j.awaitEntries(journal.Apart, 0)
	if calls := j.called("DeleteVolume"); calls != 1 {
		j.t.Errorf("DeleteVolume was called %d times, want once", calls)
	}
}

// approve has the administrator finish an unresolved entry.
func (j *journaled) approve(claim types.UID) {
	j.t.Helper()
	key := journal.EntryPrefix + string(claim)
	for _, lease := range j.leases(journal.Apart) {
		text, has := lease.Annotations[key]
		if !has {
			continue
		}
		entry, err := journal.Decode(claim, text)
		j.must(err, "decode entry")
		entry.Unresolved.Finish = true
		approved, err := journal.Encode(entry)
		j.must(err, "encode entry")
		path := "/metadata/annotations/" + strings.ReplaceAll(key, "/", "~1")
		body, err := json.Marshal([]map[string]string{
			{"op": "test", "path": path, "value": text}, {"op": "replace", "path": path, "value": approved},
		})
		j.must(err, "encode patch")
		_, err = j.client.CoordinationV1().Leases(lease.Namespace).Patch(j.ctx, lease.Name, types.JSONPatchType, body, metav1.PatchOptions{})
		j.must(err, "approve entry")
		return
	}
	j.t.Fatalf("there is no unresolved entry of %s", claim)
}

// aboutJournal is what events about the journal are attached to.
func (j *journaled) aboutJournal() metav1.Object {
	return &metav1.ObjectMeta{Namespace: j.journal.Namespace, Name: j.journal.LeaseName(journal.Active, 0)}
}

// expectMetric wants the line among the provisioner's metrics.
func (j *journaled) expectMetric(line string) {
	j.t.Helper()
	if text, _ := j.get(j.sidecar, "/metrics"); !strings.Contains(text, "\n"+line+"\n") {
		j.t.Errorf("the metrics lack %s", line)
	}
}

// useOwnAccount gives the provisioner its rights, and that to read secrets, under
// another name: what that account is refused is no fault of the deployment.
func (j *journaled) useOwnAccount() {
	j.t.Helper()
	j.letSecretsBeRead()
	account := sandbox.ServiceAccount(j.namespace, "provisioner")
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: account.Name()}}
	meta := metav1.ObjectMeta{GenerateName: "journal-"}
	for _, role := range []string{"exeunt:provisioner", "exeunt:provisioner-secrets"} {
		_, err := j.client.RbacV1().ClusterRoleBindings().Create(j.ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}, metav1.CreateOptions{})
		j.must(err, "bind role "+role)
	}
	_, err := j.client.RbacV1().RoleBindings(deploy.Namespace).Create(j.ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "exeunt:provisioner"},
	}, metav1.CreateOptions{})
	j.must(err, "bind role")
	j.kubeconfig, err = j.plane.Kubeconfig(j.ctx, account)
	j.must(err, "write kubeconfig")
}
