package situations

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// reported are situations of reports that named too little, too much, or the wrong age.
var reported = []situation{
	{
		number: "74", name: "five drivers, and the provisioner of one is gone", alone: true,
		build:   func(r *place) []string { return []string{"pv/" + r.oneOfFiveDrivers()} },
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.DriverMissing}, next: "kubectl get csidriver",
		absent:   "by hand",
		evidence: []string{", and not renewed since"},
		step:     func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "75", name: "1,200 volumes of two causes, the second one young", alone: true,
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.DriverMissing, blocker.DriverDeletes},
		show: (*place).showTwoCauses,
	},
	{
		number: "76", name: "an NFS volume is Failed, and no plugin can delete its disk",
		build: func(r *place) []string {
			volume := r.releasedOnly(func(volume *v1.PersistentVolume) {
				volume.Spec.CSI, volume.Spec.NFS = nil, &v1.NFSVolumeSource{Server: "filer.example.com", Path: "/export/a"}
				volume.Finalizers, volume.Annotations = []string{string(finalizer.InTree)}, nil
			})
			r.setPhase(volume.Name, v1.VolumeFailed, "error getting deleter volume plugin for volume \""+volume.Name+
				"\": no deletable volume plugin matched")
			r.DeleteVolume(volume.Name)
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.DriverMissing},
		next: "Find out whether the data is still wanted", absent: "by hand",
		evidence: []string{"no deletable volume plugin matched"},
		step: func(r *place) {
			r.SetPolicy(r.Namespace+"-disk", v1.PersistentVolumeReclaimRetain)
			r.reclaim(r.Namespace + "-disk") // pv-controller does for Retain
		},
	},
	{
		number: "77", name: "a volume was deleted just now, beside a Lease of two days ago", alone: true,
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.DriverMissing},
		show: (*place).showAgeOfDeletion,
	},
	{
		number: "78", name: "exeunt status after both sets of loops have ended", alone: true,
		verdict: blocker.Stuck,
		show:    (*place).showEndedLoops,
	},
	{
		number: "79", name: "exeunt rollback --confirm, and once more without", alone: true,
		verdict: blocker.None,
		show:    (*place).showNothingLeft,
	},
}

// oneOfFiveDrivers has five drivers. It returns a deleted volume of the first, whose provisioner is gone.
func (r *place) oneOfFiveDrivers() string {
	r.T.Helper()
	r.registerDriver(r.driverName())
	for i := range 4 {
		name := fmt.Sprintf("other-%d.example.com", i)
		r.registerDriver(name)
		r.createDeployment(r.Namespace, fmt.Sprintf("other-%d", i), sidecarImage+":v5.2.0", 1, 1,
			withArgs("--leader-election"), withEnv("DRIVER_NAME", name))
		r.createLease(r.Namespace, strings.ReplaceAll(name, ".", "-"), fmt.Sprintf("other-%d-7d9f8-x", i), 0, day)
	}
	return r.withoutProvisioner()
}

// showTwoCauses has more volumes than are explained: the provisioner of the old ones lives, that of the
// young ones is gone.
func (r *place) showTwoCauses() {
	r.T.Helper()
	r = &place{Session: harness.NewSession(r.T, r.Cluster, harness.Within(5*harness.Timeout))}
	const all, young = 1200, 20
	r.registerDriver(r.driverName())
	r.createSidecar("csi-provisioner:v6.3.0")
	r.createLease(metav1.NamespaceDefault, "gone-example-com", "gone-0", time.Hour, 15*time.Second)
	r.createReleased(0, all-young, r.ofOwnDriver)
	r.createReleased(all-young, all, func(volume *v1.PersistentVolume) {
		r.ofOwnDriver(volume)
		volume.Spec.CSI.Driver = "gone.example.com"
		volume.Annotations["pv.kubernetes.io/provisioned-by"] = "gone.example.com"
	})
	stdout, _, code := r.run("why", "--all", "--older-than=0s")
	first := fmt.Sprintf("stuck DriverMissing: Lease default/gone-example-com held by gone-0 of driver gone.example.com, %d objects ", young)
	if code != 3 || !strings.HasPrefix(strings.Join(strings.Fields(stdout), " "), first) {
		r.T.Errorf("the report is %s with exit code %d, want first %q", stdout, code, first)
	}
	if want := fmt.Sprintf("\nunknown DriverDeletes: Deployment %s/controller, %d objects\n", r.Namespace,
		all-young); !strings.Contains(stdout, want) {
		r.T.Errorf("the report is %s, want the group %q", stdout, want)
	}
}

// createReleased creates released volumes, and deletes them.
func (r *place) createReleased(from, to int, change func(*v1.PersistentVolume)) {
	r.T.Helper()
	volumes := r.Client.CoreV1().PersistentVolumes()
	for i := from; i < to; i++ {
		volume := r.CreateVolume(fmt.Sprintf("disk-%04d", i), v1.PersistentVolumeReclaimDelete, change)
		volume.Status.Phase = v1.VolumeReleased
		volume, err := volumes.UpdateStatus(r.Ctx, volume, metav1.UpdateOptions{})
		r.Must(err, "set phase")
		r.Must(volumes.Delete(r.Ctx, volume.Name, metav1.DeleteOptions{}), "delete volume")
	}
}

// showAgeOfDeletion wants the age of the deletion, not that of the Lease that tells its cause.
func (r *place) showAgeOfDeletion() {
	r.T.Helper()
	volume := r.releasedOnly()
	r.createLease(r.Namespace, r.leaseName(), "controller-0", 48*time.Hour, 15*time.Second)
	r.DeleteVolume(volume.Name)
	stdout, stderr, code := r.run("why", "--all", "--older-than=0s")
	lines := strings.Split(stdout, "\n")
	if len(lines) < 2 || code != 3 || strings.Contains(lines[1], "d") && strings.HasSuffix(lines[1], "2d") {
		r.T.Errorf("why --all printed %s %s with exit code %d, want the age of the deletion", stdout, stderr, code)
	}
	for _, args := range [][]string{{"why", "--all", "--older-than=0s", "-o", "json"},
		{"why", "-o", "json", "pv/" + volume.Name}} {
		stdout, _, _ := r.run(args...)
		var answer struct {
			blocker.Report
			Items []blocker.Report
		}
		r.Must(json.Unmarshal([]byte(stdout), &answer), "decode the report")
		report := append(answer.Items, answer.Report)[0]
		if since, err := time.Parse(time.RFC3339, report.Since); err != nil || time.Since(since) > time.Hour {
			r.T.Errorf("exeunt %v says %q, want the time of the deletion", args, report.Since)
		}
	}
	stdout, stderr, code = r.run("why", "--all", "--older-than=1h")
	if code != 0 || !strings.Contains(stdout, "nothing that was seen has waited for 60m or longer") ||
		!strings.Contains(stdout, "1 object waits for less than 60m: --older-than=0 shows") {
		r.T.Errorf("why --all --older-than=1h printed %q and %q with exit code %d", stdout, stderr, code)
	}
}

// showEndedLoops has volumes whose phases both sets of loops wrote in turn, and then ends both.
func (r *place) showEndedLoops() {
	r.T.Helper()
	for i, manager := range []string{"kube-controller-manager", "pv-controller", "kube-controller-manager"} {
		volume := r.CreateVolume(fmt.Sprintf("disk-%d", i), v1.PersistentVolumeReclaimDelete, r.ofOwnDriver)
		volume.Status.Phase = v1.VolumeReleased
		_, err := r.Client.CoreV1().PersistentVolumes().UpdateStatus(r.Ctx, volume,
			metav1.UpdateOptions{FieldManager: manager})
		r.Must(err, "set phase")
		written := time.Now()
		r.Until("the next second begins",
			func() bool { return time.Now().Unix() > written.Unix() }) // times of writers have whole seconds
	}
	r.createLease(metav1.NamespaceSystem, "pv-controller", "pv-controller-0_exeunt", time.Hour, 15*time.Second)
	r.stopDeployment(deploy.Namespace, deploy.PVController)
	r.createLease(r.Namespace, r.leaseName(), "controller-0", 0, day)
	manager := r.createLease(metav1.NamespaceSystem, "kube-controller-manager", "node-1_1234", 0, time.Second)
	ended := time.Now().Add(5 * time.Second)
	r.Until("the Lease has run out twice over", func() bool { return time.Now().After(ended) })
	r.createControllerManager("node-1")
	r.expectOneFinding("no program leads that runs")
	now := metav1.NowMicro()
	manager.Spec.RenewTime, manager.Spec.LeaseDurationSeconds = &now, ptr.To[int32](3600)
	_, err := r.Client.CoordinationV1().Leases(manager.Namespace).Update(r.Ctx, manager, metav1.UpdateOptions{})
	r.Must(err, "renew Lease")
	r.Must(r.Client.CoreV1().Pods(metav1.NamespaceSystem).Delete(r.Ctx, "kube-controller-manager-node-1",
		metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}), "delete pod")
	r.createControllerManager("node-1",
		"--controllers=*,-persistentvolume-binder-controller,-persistentvolume-protection-controller,-persistentvolumeclaim-protection-controller")
	r.expectOneFinding("no program runs")
}

// stopDeployment sets the replicas of the Deployment to none.
func (r *place) stopDeployment(namespace, name string) {
	r.T.Helper()
	_, err := r.Client.AppsV1().Deployments(namespace).Patch(r.Ctx, name, types.MergePatchType,
		[]byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
	r.Must(err, "stop Deployment")
}

// expectOneFinding wants one sentence about loops in the status, and one that says why the exit code is 2.
func (r *place) expectOneFinding(want string) {
	r.T.Helper()
	stdout, stderr, code := r.run("status")
	findings := slices.DeleteFunc(strings.Split(stdout, "\n"), func(line string) bool {
		return !strings.HasPrefix(line, "! ") || !strings.Contains(line, "program") && !strings.Contains(line, "loops")
	})
	if len(findings) != 1 || !strings.HasPrefix(findings[0], "! "+want) || strings.Contains(stdout, "work at once") ||
		code != 2 || !strings.Contains(stderr, "volumes are not all protected") {
		r.T.Errorf("status printed %s and %q with exit code %d, want one finding: %q", stdout, stderr, code, want)
	}
}

// showNothingLeft has what a provisioner and pv-controller of Exeunt leave, and takes it away.
func (r *place) showNothingLeft() {
	r.T.Helper()
	r.CreateVolume("disk", v1.PersistentVolumeReclaimDelete, r.ofOwnDriver, func(volume *v1.PersistentVolume) {
		volume.Annotations["exeunt.io/reclaim"] = "pending"
	})
	r.createLease(r.Namespace, r.leaseName(), "provisioner-0_exeunt", time.Hour, 15*time.Second)
	r.createLease(metav1.NamespaceSystem, "pv-controller", "pv-controller-0_exeunt", time.Hour, 15*time.Second)
	before, _, code := r.run("rollback")
	if code != 2 || !strings.Contains(before, "(--confirm)") || !strings.Contains(before, "Something is left to do") {
		r.T.Errorf("rollback printed %s with exit code %d, want something left", before, code)
	}
	r.run("rollback", "--confirm")
	after, stderr, code := r.run("rollback")
	if code != 0 || !strings.Contains(after, "Nothing is left to do.") || strings.Contains(after, "pending") ||
		strings.Contains(after, r.leaseName()) {
		r.T.Errorf("rollback printed %s and %q with exit code %d, want nothing left", after, stderr, code)
	}
}
