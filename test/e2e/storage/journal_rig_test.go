package storage

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// journaled is a provisioner process with a driver in this process. Only the test starts
// and stops the provisioner.
type journaled struct {
	*harness.Session
	mock    *harness.ScriptedDriver
	class   string
	journal journal.Journal
	// kubeconfig of the provisioner, "" for its service account.
	kubeconfig string
	args       []string
	sidecar    *sandbox.Process
	runs       int
}

// newJournaled creates the driver and a class, and does not start the provisioner.
func newJournaled(s *harness.Session, policy v1.PersistentVolumeReclaimPolicy, args ...string) *journaled {
	s.T.Helper()
	j := &journaled{Session: s, mock: harness.NewScriptedDriver(s, false), class: s.Namespace, args: args}
	j.journal = journal.Journal{Namespace: deploy.Namespace, Driver: j.mock.Config.Name}
	class := harness.NewClass(j.class, j.mock.Config.Name, policy, storagev1.VolumeBindingImmediate)
	s.CreateStorageClass(class)
	s.T.Cleanup(func() {
		if j.sidecar != nil {
			_ = j.sidecar.Kill()
		}
	})
	return j
}

// start starts the provisioner.
func (j *journaled) start(more ...string) {
	j.T.Helper()
	j.runs++
	var err error
	j.sidecar, err = j.Plane.StartProvisioner(j.Ctx, &sandbox.Driver{Socket: j.mock.Socket}, sandbox.Controller{
		Name: fmt.Sprintf("provisioner-%s-%d", j.Namespace, j.runs), HonorReclaimPolicy: true, Kubeconfig: j.kubeconfig,
		Args: slices.Concat([]string{
			"--http-endpoint=127.0.0.1:0", "--timeout=1s", "--retry-interval-start=50ms", "--retry-interval-max=500ms",
			"--worker-threads=10",
		}, j.args, more),
	})
	j.Must(err, "start provisioner")
}

// elect are the flags of a provisioner with leader election.
var elect = []string{"--leader-election", "--leader-election-retry-period=500ms"}

// stop ends the provisioner with SIGTERM, as a rollout does. kill ends it with SIGKILL.
func (j *journaled) stop() {
	j.T.Helper()
	j.Must(j.sidecar.Stop(j.Ctx), "stop provisioner")
}

func (j *journaled) kill() {
	j.T.Helper()
	j.Must(j.sidecar.Kill(), "kill provisioner")
}

// expireLeader ends the leader Lease of a killed process. others is the number of other
// processes that have led since.
func (j *journaled) expireLeader(others int32) {
	j.T.Helper()
	leases := j.Client.CoordinationV1().Leases(deploy.Namespace)
	lease, err := leases.Get(j.Ctx, strings.ReplaceAll(j.mock.Config.Name, ".", "-"), metav1.GetOptions{})
	j.Must(err, "read the leader lease")
	lease.Spec.HolderIdentity = ptr.To("")
	lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + others)
	_, err = leases.Update(j.Ctx, lease, metav1.UpdateOptions{})
	j.Must(err, "write the leader lease")
}

// leases returns the Leases of the journal.
func (j *journaled) leases(kind journal.Kind) []coordinationv1.Lease {
	j.T.Helper()
	list, err := j.Client.CoordinationV1().Leases(j.journal.Namespace).List(j.Ctx, metav1.ListOptions{})
	j.Must(err, "list leases")
	return slices.DeleteFunc(list.Items, func(l coordinationv1.Lease) bool {
		is, _, ours := j.journal.KindOf(&l)
		return !ours || is != kind
	})
}

// edit changes the first active Lease, as an administrator does.
func (j *journaled) edit(change func(*coordinationv1.Lease)) *coordinationv1.Lease {
	j.T.Helper()
	leases := j.Client.CoordinationV1().Leases(j.journal.Namespace)
	for {
		lease, err := leases.Get(j.Ctx, j.journal.LeaseName(journal.KindActive, 0), metav1.GetOptions{})
		j.Must(err, "read lease")
		change(lease)
		written, err := leases.Update(j.Ctx, lease, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) { // the provisioner wrote it
			continue
		}
		j.Must(err, "write lease")
		return written
	}
}

func (j *journaled) entries(kind journal.Kind) []journal.Entry {
	j.T.Helper()
	return j.mock.JournalEntries(kind)
}

func (j *journaled) awaitEntries(kind journal.Kind, count int) []journal.Entry {
	j.T.Helper()
	j.Until(fmt.Sprintf("there are %d %s entries", count, kind), func() bool { return len(j.entries(kind)) == count })
	return j.entries(kind)
}

// awaitVolumes waits until the driver has count volumes.
func (j *journaled) awaitVolumes(count int) {
	j.T.Helper()
	j.Until(fmt.Sprintf("the driver has %d volumes", count), func() bool { return len(j.mock.Volumes()) == count })
}

func (j *journaled) expectVolumes(count int) {
	j.T.Helper()
	if volumes := j.mock.Volumes(); len(volumes) != count {
		j.T.Errorf("the driver has the volumes %v, want %d", volumes, count)
	}
}

// called counts the finished calls of the method.
func (j *journaled) called(method string) int {
	count := 0
	for _, call := range j.mock.Server.Calls() {
		if call.Method == method {
			count++
		}
	}
	return count
}

// fail makes every CreateVolume create the volume and time out.
func (j *journaled) fail() {
	j.T.Helper()
	j.Must(j.mock.Server.Inject(csimock.Fault{Method: "CreateVolume", Code: codes.DeadlineExceeded, After: true}),
		"inject fault")
}

// open creates a claim whose volume exists although CreateVolume timed out.
func (j *journaled) open(claim string) *v1.PersistentVolumeClaim {
	j.T.Helper()
	j.fail()
	before := len(j.mock.Volumes())
	created := j.CreateClaim(claim, j.class)
	j.awaitVolumes(before + 1)
	return created
}

// abandon opens a claim and deletes it while CreateVolume times out.
func (j *journaled) abandon(claim string) *v1.PersistentVolumeClaim {
	j.T.Helper()
	opened := j.open(claim)
	j.DeleteClaim(claim)
	j.AwaitClaimGone(claim)
	j.expectVolumes(1)
	return opened
}

// expectFinished lets the driver answer again and checks that the volume of the claim is
// recorded and reclaimed, and that no entry stays.
func (j *journaled) expectFinished(claim *v1.PersistentVolumeClaim) {
	j.T.Helper()
	j.mock.Server.ClearFaults()
	j.awaitVolumes(0)
	j.AwaitVolumeGone("pvc-" + string(claim.UID))
	j.awaitEntries(journal.KindActive, 0)
	j.awaitEntries(journal.KindUnresolved, 0)
	if calls := j.called("DeleteVolume"); calls != 1 {
		j.T.Errorf("DeleteVolume was called %d times, want once", calls)
	}
}

// approve approves an unresolved entry, as the administrator does.
func (j *journaled) approve(claim types.UID) {
	j.T.Helper()
	key := journal.EntryPrefix + string(claim)
	for _, lease := range j.leases(journal.KindUnresolved) {
		text, has := lease.Annotations[key]
		if !has {
			continue
		}
		entry, err := journal.Decode(claim, text)
		j.Must(err, "decode entry")
		entry.Unresolved.Finish = true
		approved, err := journal.Encode(entry)
		j.Must(err, "encode entry")
		path := "/metadata/annotations/" + strings.ReplaceAll(key, "/", "~1")
		body, err := json.Marshal([]map[string]string{
			{"op": "test", "path": path, "value": text}, {"op": "replace", "path": path, "value": approved},
		})
		j.Must(err, "encode patch")
		_, err = j.Client.CoordinationV1().Leases(lease.Namespace).
			Patch(j.Ctx, lease.Name, types.JSONPatchType, body, metav1.PatchOptions{})
		j.Must(err, "approve entry")
		return
	}
	j.T.Fatalf("there is no unresolved entry of %s", claim)
}

// aboutJournal returns the object of events about the journal.
func (j *journaled) aboutJournal() metav1.Object {
	return &metav1.ObjectMeta{Namespace: j.journal.Namespace, Name: j.journal.LeaseName(journal.KindActive, 0)}
}

// expectMetric checks that the provisioner serves the metrics line.
func (j *journaled) expectMetric(line string) {
	j.T.Helper()
	if text, _ := j.HTTPGet(j.sidecar, "/metrics"); !strings.Contains(text, "\n"+line+"\n") {
		j.T.Errorf("the metrics lack %s", line)
	}
}

// useOwnAccount runs the provisioner as another account with the same rights and the
// right to read secrets. Forbidden requests of that account do not fail the test.
func (j *journaled) useOwnAccount() {
	j.T.Helper()
	j.GrantSecrets()
	account := sandbox.ServiceAccount(j.Namespace, "provisioner")
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: account.Name()}}
	meta := metav1.ObjectMeta{GenerateName: "journal-"}
	for _, role := range []string{"exeunt:provisioner", "exeunt:provisioner-secrets"} {
		_, err := j.Client.RbacV1().ClusterRoleBindings().Create(j.Ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
				Name: role},
		}, metav1.CreateOptions{})
		j.Must(err, "bind role "+role)
	}
	_, err := j.Client.RbacV1().RoleBindings(deploy.Namespace).Create(j.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role",
			Name: "exeunt:provisioner"},
	}, metav1.CreateOptions{})
	j.Must(err, "bind role")
	j.kubeconfig, err = j.Plane.Kubeconfig(j.Ctx, account)
	j.Must(err, "write kubeconfig")
}
