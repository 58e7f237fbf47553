package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

func TestWorkOfEveryState(t *testing.T) {
	for verdict := blocker.Gone; verdict <= blocker.Stuck; verdict++ {
		for bits := range 8 {
			s := workState{Verdict: verdict, StandsBy: bits&1 == 1, Wrote: bits&2 == 2, Idle: bits&4 == 4}
			got := workOf(s)
			if proven := verdict == blocker.Stuck && !s.Wrote; proven != (got == workUndone || got == workStandsBy) {
				t.Errorf("%+v: %v", s, got)
			}
			if alive := verdict <= blocker.Waiting; alive != (got == workDone) {
				t.Errorf("%+v: %v", s, got)
			}
			if waits := s.StandsBy && verdict > blocker.Waiting; waits != (got == workStandsBy || got == workDoubtful) {
				t.Errorf("%+v: %v", s, got)
			}
			if idle := verdict == blocker.Unknown && s.Idle && !s.StandsBy && !s.Wrote; idle != (got == workIdle) {
				t.Errorf("%+v: %v", s, got)
			}
		}
	}
}

// loopsPod is kube-controller-manager on a node.
func loopsPod(flag string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-controller-manager-node-1"},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{
			{Image: "r/kube-controller-manager:v1.36.3", Command: []string{"kube-controller-manager", flag}},
		}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

// deployed is a Deployment whose replicas are ready.
func deployed(namespace, name string, replicas int32, container corev1.Container) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{container}}},
		},
		Status: appsv1.DeploymentStatus{ReadyReplicas: replicas},
	}
}

func ourLoopsIn(replicas int32) *appsv1.Deployment {
	return deployed("exeunt-system", "pv-controller", replicas, corev1.Container{Image: "r/exeunt/pv-controller:v1"})
}

// leaderLease is a Lease of 15 s that was renewed age ago.
func leaderLease(namespace, name, holder string, age time.Duration) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](15),
			RenewTime: ptr.To(metav1.NewMicroTime(time.Now().Add(-age))),
		},
	}
}

// standbyLease is that of deploy/, applied an hour ago.
func standbyLease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	text, err := deploy.Standby.ReadFile("pv-controller/standby/lease.yaml")
	if err != nil {
		t.Fatal(err)
	}
	lease := &coordinationv1.Lease{}
	if err := yaml.Unmarshal(text, lease); err != nil {
		t.Fatal(err)
	}
	lease.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
	return lease
}

// csiVolume is a volume of csi.example.com with policy Delete and its finalizer. manager wrote its phase last.
func csiVolume(phase corev1.PersistentVolumePhase, manager string) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "v", Finalizers: []string{string(finalizer.External)}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef:                      &corev1.ObjectReference{Namespace: "n", Name: "c", UID: "c"},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: "h"}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: phase},
	}
	now := metav1.Now()
	volume.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Subresource: "status", Time: &now,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:phase":{}}}`),
	}}
	return volume
}

const (
	loopsOff = "--controllers=*,-persistentvolume-binder-controller,-persistentvolume-protection-controller,-persistentvolumeclaim-protection-controller"
	loopsOn  = "--controllers=*,bootstrapsigner"
)

// workCase is one case of TestWorkThatNoProgramDoesIsFound.
type workCase struct {
	cluster clustertest.Objects
	want    string // in the only finding, "" for none
	note    string // in what could not be read
}

func workCases(t *testing.T) map[string]workCase {
	t.Helper()
	upstream := leaderLease("kube-system", "kube-controller-manager", "node-1_u", time.Second)
	ours := leaderLease("kube-system", "pv-controller", "pv-controller-5f-x_u_exeunt", time.Second)
	stale := leaderLease("kube-system", "kube-controller-manager", "node-1_u", time.Hour)
	sidecar := corev1.Container{Image: "r/csi-provisioner:v6.3.0",
		Args: []string{"--csi-address=/run/csi.example.com/csi.sock"}}
	elected := sidecar
	elected.Args = append(slices.Clone(sidecar.Args), "--leader-election")
	provisions := leaderLease("storage", "csi-example-com", "csi-0", time.Second)
	ended := leaderLease("storage", "csi-example-com", "csi-0", time.Hour)
	return map[string]workCase{
		"loops off, pv-controller on standby": {clustertest.Objects{"pods": {loopsPod(loopsOff)},
			"deployments": {ourLoopsIn(2)}, "leases": {upstream, standbyLease(t)}},
			"persistentvolumeclaim-protection-controller: a Lease keeps pv-controller on standby. Delete it:\nkubectl delete lease pv-controller -n kube-system", ""},
		"loops on, pv-controller on standby": {clustertest.Objects{"pods": {loopsPod(loopsOn)},
			"deployments": {ourLoopsIn(2)}, "leases": {upstream, standbyLease(t)}}, "", ""},
		"loops off, pv-controller leads":      {clustertest.Objects{"pods": {loopsPod(loopsOff)}, "deployments": {ourLoopsIn(2)}, "leases": {upstream, ours}}, "", ""},
		"loops off, pv-controller stopped":    {clustertest.Objects{"pods": {loopsPod(loopsOff)}, "deployments": {ourLoopsIn(0)}, "leases": {upstream}}, "no program runs persistentvolume-binder-controller, persistentvolume-protection-controller", ""},
		"loops off, pv-controller not there":  {clustertest.Objects{"pods": {loopsPod(loopsOff)}, "leases": {upstream}}, "start pv-controller, or switch them on", ""},
		"binder off, pv-controller not there": {clustertest.Objects{"pods": {loopsPod("--controllers=*,-persistentvolume-binder")}, "leases": {upstream}}, "no program runs persistentvolume-binder-controller: start", ""},
		"process without a pod, on standby":   {clustertest.Objects{"deployments": {ourLoopsIn(2)}, "leases": {upstream, standbyLease(t)}}, "", "a Lease keeps pv-controller on standby"},
		"both wrote in turn, and have ended": {clustertest.Objects{"pods": {loopsPod(loopsOff)}, "leases": {upstream}, "persistentvolumes": writtenInTurn()},
			"no program runs persistentvolume-binder-controller", ""},
		"both wrote in turn, and nobody leads": {clustertest.Objects{"pods": {loopsPod(loopsOn)}, "persistentvolumes": writtenInTurn(), "leases": {
			leaderLease("kube-system", "kube-controller-manager", "node-1_u", 45*time.Second), provisions,
		}}, "no program leads that runs persistentvolume-binder-controller", ""},
		"both wrote in turn, pv-controller on standby": {clustertest.Objects{"deployments": {ourLoopsIn(2)}, "persistentvolumes": writtenInTurn(), "leases": {
			upstream, standbyLease(t), provisions,
		}}, "", "a Lease keeps pv-controller on standby"},
		"managed control plane":                 {clustertest.Objects{}, "", ""},
		"managed control plane, with its Lease": {clustertest.Objects{"leases": {upstream}}, "", ""},
		"kube-controller-manager ended":         {clustertest.Objects{"leases": {stale}}, "no program runs", ""},
		"loops on, but nobody leads":            {clustertest.Objects{"pods": {loopsPod(loopsOn)}, "leases": {stale}}, "no program leads that runs persistentvolume-binder-controller", ""},
		"it writes without its former Lease":    {clustertest.Objects{"leases": {stale, provisions}, "persistentvolumes": {csiVolume(corev1.VolumeBound, "k3s")}}, "", ""},

		"provisioner runs":              {clustertest.Objects{"deployments": {deployed("storage", "csi", 1, sidecar)}, "leases": {provisions}, "persistentvolumes": {csiVolume(corev1.VolumeReleased, "x")}}, "", ""},
		"provisioner stopped":           {clustertest.Objects{"deployments": {deployed("storage", "csi", 0, sidecar)}, "leases": {ended}, "persistentvolumes": {csiVolume(corev1.VolumeReleased, "x")}}, "csi.example.com: its provisioner does not run, or crashes: the disks of 1 volume", ""},
		"provisioner stopped, unneeded": {clustertest.Objects{"deployments": {deployed("storage", "csi", 0, sidecar)}, "leases": {ended}}, "", ""},
		"provisioner uninstalled":       {clustertest.Objects{"leases": {ended}, "persistentvolumes": {csiVolume(corev1.VolumeBound, "x")}}, "csi.example.com: its provisioner does not run", ""},
		"provisioner ready, no leader":  {clustertest.Objects{"deployments": {deployed("storage", "csi", 1, elected)}, "leases": {ended}, "persistentvolumes": {csiVolume(corev1.VolumeReleased, "x")}}, "csi.example.com: no provisioner leads: the pods of Deployment storage/csi are ready", ""},
		"provisioner without elections": {clustertest.Objects{"deployments": {deployed("storage", "csi", 1, sidecar)}, "leases": {ended}, "persistentvolumes": {csiVolume(corev1.VolumeReleased, "x")}}, "", ""},
		"provisioner not visible":       {clustertest.Objects{"persistentvolumes": {csiVolume(corev1.VolumeBound, "x")}}, "", ""},
	}
}

// writtenInTurn returns volumes whose phases both sets of loops wrote within the last minutes.
func writtenInTurn() []metav1.Object {
	var all []metav1.Object
	for i, manager := range []string{"kube-controller-manager", "pv-controller", "kube-controller-manager"} {
		volume := csiVolume(corev1.VolumeBound, manager)
		volume.Name, volume.UID = manager, types.UID(fmt.Sprint(i))
		volume.ManagedFields[0].Time = &metav1.Time{Time: time.Now().Add(time.Duration(i-3) * time.Minute)}
		all = append(all, volume)
	}
	return all
}

func TestWorkThatNoProgramDoesIsFound(t *testing.T) {
	for name, tc := range workCases(t) {
		t.Run(name, func(t *testing.T) {
			report := Read(t.Context(), Options{Reader: clustertest.NewReader(t, tc.cluster.ServeHTTP)})
			if (len(report.Findings) > 0) != (tc.want != "") || len(report.Findings) > 1 ||
				!strings.Contains(strings.Join(report.Findings, ""), tc.want) {
				t.Errorf("findings %q, want %q", report.Findings, tc.want)
			}
			if (tc.want != "") != (report.Protection == ProtectionPartly) {
				t.Errorf("protection %v", report.Protection)
			}
			noted := slices.ContainsFunc(report.Incomplete,
				func(sentence string) bool { return strings.Contains(sentence, "on standby") })
			if noted != (tc.note != "") || !strings.Contains(strings.Join(report.Incomplete, "\n"), tc.note) {
				t.Errorf("not read: %q, want %q", report.Incomplete, tc.note)
			}
		})
	}
}

func TestStandbyLeaseIsShownAsHeld(t *testing.T) {
	reader := clustertest.NewReader(t, clustertest.Objects{"leases": {standbyLease(t)}}.ServeHTTP)
	leases := Read(t.Context(), Options{Reader: reader}).Leases
	if len(leases) != 1 || leases[0].State != "held" || leases[0].Holder != "standby" || leases[0].AgeSeconds < 3600 ||
		leases[0].AgeSeconds > 3700 {
		t.Errorf("leases %+v", leases)
	}
}
