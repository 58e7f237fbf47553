package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
	"github.com/exeunt-io/exeunt/test/paste"
)

// explorer is an Explorer whose controllers all live.
type explorer struct {
	chain.Explorer
	reader *cluster.Reader
}

func (e explorer) Reader() *cluster.Reader    { return e.reader }
func (e explorer) Holders() holder.Finder     { return holder.Finder{Reader: e.reader} }
func (e explorer) Commands() cluster.Commands { return cluster.Commands{} }

func (e explorer) Finalizer(_ context.Context, object *unstructured.Unstructured, name string) blocker.Blocker {
	return blocker.Blocker{Object: cluster.ObjectOf(object), Finalizer: name, Reason: blocker.ControllerActs,
		Verdict: blocker.Waiting}
}

func (e explorer) Explain(ctx context.Context, object *unstructured.Unstructured) []blocker.Blocker {
	return chain.FinalizerBlockers(ctx, e, object)
}

// provisioner returns the Lease and the Deployment of a provisioner of driver csi.example.com that leads.
func provisioner(image, identity string) (coordinationv1.Lease, appsv1.Deployment) {
	labels := map[string]string{"app": "controller"}
	return coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "csi-example-com"},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &identity, LeaseDurationSeconds: ptr.To[int32](60),
				RenewTime: &metav1.MicroTime{Time: time.Now()}},
		}, appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "controller"},
			Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}},
			},
			Status: appsv1.DeploymentStatus{ReadyReplicas: 1},
		}
}

// provisionedBy returns the Explorer of a cluster with claim shop/data and a provisioner of the
// image that leads; "" for no provisioner.
func provisionedBy(t *testing.T, image, identity string) explorer {
	t.Helper()
	version := metav1.ListMeta{ResourceVersion: "7"}
	leases, deployments := coordinationv1.LeaseList{ListMeta: version}, appsv1.DeploymentList{ListMeta: version}
	if image != "" {
		lease, deployment := provisioner(image, identity)
		leases.Items, deployments.Items = []coordinationv1.Lease{lease}, []appsv1.Deployment{deployment}
	}
	claim := corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "1"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "v"},
	}
	return explorer{reader: clustertest.NewReader(t, func(w http.ResponseWriter, request *http.Request) {
		var answer any = corev1.PersistentVolumeList{ListMeta: version} // an empty list of any kind
		switch path := request.URL.Path; {
		case strings.HasSuffix(path, "/leases"):
			answer = leases
		case strings.HasSuffix(path, "/deployments"):
			answer = deployments
		case strings.HasSuffix(path, "/persistentvolumeclaims/data"):
			answer = claim
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	})}
}

// newVolume returns a volume of the driver with policy Delete.
func newVolume(phase corev1.PersistentVolumePhase, claim string,
	finalizers ...finalizer.Name) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "v", DeletionTimestamp: &metav1.Time{Time: time.Now()}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: "disk"}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: phase},
	}
	for _, name := range finalizers {
		v.Finalizers = append(v.Finalizers, string(name))
	}
	if claim != "" {
		v.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: claim, UID: "1"}
	}
	return v
}

const (
	stockImage, ownImage = "registry.k8s.io/sig-storage/csi-provisioner:v6.3.0",
		"example.com/exeunt/provisioner:v0.1.0"
	stockIdentity, ownIdentity = "controller-0", "controller-0_uid_exeunt"
)

// stockCase is one case of TestOnlyOurProvisionerEndsDeletionsThatStockLeaves.
type stockCase struct {
	volume          *corev1.PersistentVolume
	image, identity string
	verdict         blocker.Verdict
	reason          blocker.Reason
	next            string
	deletes         bool // the next step warns that the data is deleted
}

func stockCases() map[string]stockCase {
	available := newVolume(corev1.VolumeAvailable, "", finalizer.External)
	late := newVolume(corev1.VolumeBound, "data", finalizer.VolumeProtection)
	protected := newVolume(corev1.VolumeBound, "data", finalizer.VolumeProtection, finalizer.External)
	failed := newVolume(corev1.VolumeFailed, "former")
	failed.DeletionTimestamp = nil
	retried, recycled := failed.DeepCopy(), failed.DeepCopy()
	retried.Status.Message = "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
	recycled.Status.Message = "No recycler plugin found for the volume!"
	return map[string]stockCase{
		"available, csi-provisioner": {available, stockImage, stockIdentity, blocker.Stuck, blocker.PhaseNotReclaimed,
			`patch pv v -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'`, false},
		"available, unknown version": {available, "csi-provisioner@sha256:01", stockIdentity, blocker.Unknown, blocker.PhaseNotReclaimed, "Retain", false},
		"available, ours":            {available, ownImage, ownIdentity, blocker.Waiting, blocker.ControllerActs, "", false},
		"available, no provisioner":  {available, "", "", blocker.Unknown, blocker.ControllerUnseen, "", false},
		"failed, csi-provisioner": {failed, stockImage, stockIdentity, blocker.Stuck, blocker.PhaseNotReclaimed,
			"If not, run the provisioner of Exeunt for csi.example.com", false},
		"failed, in progress":           {retried, stockImage, stockIdentity, blocker.Stuck, blocker.PhaseNotReclaimed, "&& kubectl delete pv v", false},
		"failed, no recycler":           {recycled, stockImage, stockIdentity, blocker.Stuck, blocker.PhaseNotReclaimed, "Retain", false},
		"failed, no recycler, ours":     {recycled, ownImage, ownIdentity, blocker.Waiting, blocker.DriverDeletes, "wait", false},
		"failed, no provisioner":        {failed, "", "", blocker.Unknown, blocker.PhaseNotReclaimed, "Retain", false},
		"no finalizer, csi-provisioner": {late, stockImage, stockIdentity, blocker.Stuck, blocker.TooLateToProtect, "the disk stays in storage, and no", false},
		"no finalizer, no provisioner":  {late, "", "", blocker.Unknown, blocker.TooLateToProtect, "the disk stays in storage unless", false},
		"no finalizer, ours": {late, ownImage, ownIdentity, blocker.Waiting, blocker.ClaimExists,
			"without pv-controller the disk stays in storage", true},
		"with finalizer, csi-provisioner": {protected, stockImage, stockIdentity, blocker.Waiting, blocker.ClaimExists, "delete pvc data", true},
		"with finalizer, no provisioner":  {protected, "", "", blocker.Waiting, blocker.ClaimExists, "delete pvc data", true},
	}
}

func TestOnlyOurProvisionerEndsDeletionsThatStockLeaves(t *testing.T) {
	for name, tc := range stockCases() {
		t.Run(name, func(t *testing.T) {
			object, err := toUnstructured("v1", "PersistentVolume", tc.volume)
			if err != nil {
				t.Fatal(err)
			}
			found := explainVolume(t.Context(), provisionedBy(t, tc.image, tc.identity), object)
			next := ""
			for _, one := range found {
				next += one.Next + "\n"
			}
			if got := blocker.Worst(found); got != tc.verdict || !slices.ContainsFunc(found,
				func(b blocker.Blocker) bool { return b.Reason == tc.reason && b.Verdict == tc.verdict }) {
				t.Errorf("the verdict is %v, want %v with %v: %+v", got, tc.verdict, tc.reason, found)
			}
			if !strings.Contains(next, tc.next) || strings.Contains(next, "deletes the data") != tc.deletes {
				t.Errorf("the next step is %q, want %q in it, and that it deletes the data: %v", next, tc.next, tc.deletes)
			}
		})
	}
}

// The message of a Failed volume of a driver is that of another program, and is never renewed.
func TestMessageOfFailedVolumeIsAnErrorOfPluginsOnly(t *testing.T) {
	for driver, want := range map[string]blocker.Reason{"csi.example.com": blocker.DriverDeletes,
		"": blocker.DriverRefuses} {
		v := newVolume(corev1.VolumeFailed, "former")
		v.Status.Message = "host_path deleter only supports /tmp/.+"
		if driver == "" {
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/disk"}}
			v.Finalizers = []string{string(finalizer.InTree)}
		} else {
			v.Finalizers = []string{string(finalizer.External)}
		}
		object, err := toUnstructured("v1", "PersistentVolume", v)
		if err != nil {
			t.Fatal(err)
		}
		found := explainVolume(t.Context(), provisionedBy(t, ownImage, ownIdentity), object)
		if len(found) == 0 || found[0].Reason != want {
			t.Errorf("driver %q: %+v, want %v", driver, found, want)
		}
	}
}

func TestFinishedPodsAreOneBlockerWithOneCommand(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 12 {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("job-%d", i)},
			Status: corev1.PodStatus{Phase: corev1.PodSucceeded}})
	}
	running := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	found := podBlockers(t.Context(), commandsOnly{}, append(pods, running), "f")
	if len(found) != 2 || found[0].Object.Name != "web" || strings.Count(found[1].Next,
		"kubectl delete pods job-0 job-1 ") != 1 || !strings.Contains(found[1].Next, "job-11 -n shop") ||
		strings.Contains(found[1].Next, "web") {
		t.Errorf("the blockers are %+v", found)
	}
	for _, one := range found {
		paste.ExpectSafe(t, one.Next)
	}
	if alone := podBlockers(t.Context(), commandsOnly{}, pods[:1], "f"); len(alone) != 1 ||
		alone[0].Holder != "pod shop/job-0" {
		t.Errorf("one finished pod is %+v", alone)
	}
}

// Five drivers have a provisioner of the same name.
func TestMissingProvisionerIsThatOfItsDriver(t *testing.T) {
	lease, _ := provisioner(stockImage, stockIdentity)
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}
	e := explorer{reader: clustertest.NewReader(t, clustertest.Objects{"leases": {&lease}}.ServeHTTP)}
	object, err := toUnstructured("v1", "PersistentVolume", newVolume(corev1.VolumeReleased, "former", finalizer.External))
	if err != nil {
		t.Fatal(err)
	}
	found := explainVolume(t.Context(), e, object)
	if len(found) != 1 {
		t.Fatalf("the blockers are %+v", found)
	}
	next := found[0].Next
	if !strings.Contains(next, "disk disk ") || !strings.Contains(next, "driver csi.example.com") ||
		!strings.Contains(next, "\nkubectl get csidriver csi.example.com\n") ||
		!strings.Contains(found[0].Holder, "csi.example.com") {
		t.Errorf("holder %q, next step %q", found[0].Holder, next)
	}
	seen := map[string]bool{}
	for _, one := range found[0].Normalized().Evidence {
		if seen[one.Text] {
			t.Errorf("the evidence is there twice: %s", one.Text)
		}
		seen[one.Text] = true
	}
	paste.ExpectSafe(t, next)
}
