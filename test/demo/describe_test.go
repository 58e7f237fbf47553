package demo

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// provisioned is the name of a volume that was provisioned for a claim.
const provisioned = "pvc-394c3d6b-07b6-4af5-abbb-3558231493b1"

func TestWriteIsDescribedFromTheAuditLog(t *testing.T) {
	for name, tc := range map[string]struct {
		request sandbox.Event
		who     string
		what    string
		object  string
	}{
		"a write whose object is not logged": {
			sandbox.Event{User: adminUser, Verb: "patch", Resource: volumes, Name: provisioned, Code: 200},
			"you", "changes PV pvc-394c3d6b", volumes + "/" + provisioned,
		},
		"a write of a status": {
			sandbox.Event{User: sandbox.PVControllerAccount.Name(), Verb: "patch", Resource: volumes, Subresource: "status",
				Name: "a", Code: 200},
			"pv-controller", "changes PV a", volumes + "/a/status",
		},
		"a write that is refused": {
			sandbox.Event{User: sandbox.ProvisionerAccount.Name(), Verb: "update", Resource: claims, Name: "demo", Code: 409},
			"provisioner", "tries to update PVC demo → 409", claims + "/demo",
		},
		"a deletion of all volumes that is refused": {
			sandbox.Event{User: adminUser, Verb: "deletecollection", Resource: volumes, Code: 403},
			"you", "tries to delete all PVs → 403", volumes,
		},
		"somebody else deletes all claims": {
			sandbox.Event{User: "system:serviceaccount:kube-system:cleaner", Verb: "deletecollection", Resource: claims,
				Code: 200},
			"system:serviceaccount:kube-system:cleaner", "deletes all PVCs", claims,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.request.Time, tc.request.Duration = at(30), 10*time.Millisecond
			got, shown := describeWrite(tc.request)
			if !shown || got.Kind != kindWrite || got.Who != tc.who || got.What != tc.what || got.Object != tc.object ||
				got.Verb != tc.request.Verb {
				t.Errorf("describeWrite = %+v, %v; want %s: %s (%s)", got, shown, tc.who, tc.what, tc.object)
			}
			if !got.Time.Equal(at(20)) {
				t.Errorf("time = %v, want when the request was received, %v", got.Time, at(20))
			}
		})
	}
}

func TestOtherRequestsAreNotShown(t *testing.T) {
	for name, request := range map[string]sandbox.Event{
		"a read":                        {Verb: "get", Resource: volumes},
		"a watch":                       {Verb: "watch", Resource: claims},
		"an event":                      {Verb: "create", Resource: "events"},
		"a resource of the same name":   {Verb: "create", Resource: volumes, Group: "example.com"},
		"a request for no object (/ok)": {Verb: "get"},
	} {
		t.Run(name, func(t *testing.T) {
			if event, shown := describeWrite(request); shown {
				t.Errorf("describeWrite shows %+v", event)
			}
		})
	}
}

func TestOnlyCallsThatChangeStorageAreShown(t *testing.T) {
	for name, tc := range map[string]struct {
		call  csimock.Call
		what  string
		shown bool
	}{
		"a volume is created":        {csimock.Call{Method: "CreateVolume", Volume: "vol-1", Code: "OK", Volumes: 1}, "CreateVolume vol-1 → OK", true},
		"CreateVolume fails":         {csimock.Call{Method: "CreateVolume", Code: "Internal"}, "CreateVolume → Internal", true},
		"a volume is deleted":        {csimock.Call{Method: "DeleteVolume", Volume: "vol-1", Code: "OK"}, "DeleteVolume vol-1 → OK", true},
		"a probe changes nothing":    {csimock.Call{Method: "Probe", Code: "OK"}, "", false},
		"a question changes nothing": {csimock.Call{Method: "ControllerGetCapabilities", Code: "OK"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			tc.call.Time = at(5)
			got, shown := describeCall(tc.call)
			if shown != tc.shown || got.What != tc.what || got.Volumes != tc.call.Volumes {
				t.Errorf("describeCall = %+v, %v; want %q, %v", got, shown, tc.what, tc.shown)
			}
			if shown && (got.Kind != kindCall || got.Who != csiDriver || !got.Time.Equal(at(5))) {
				t.Errorf("describeCall = %+v, want a call of the driver at %v", got, at(5))
			}
		})
	}
}

func TestVolumeStateNamesItsFinalizers(t *testing.T) {
	deleted := metav1.NewTime(begun)
	for name, tc := range map[string]struct {
		meta metav1.ObjectMeta
		gone bool
		want Event
	}{
		"a volume in use": {
			metav1.ObjectMeta{Finalizers: []string{"external-provisioner.volume.kubernetes.io/finalizer",
				"kubernetes.io/pv-protection"}}, false,
			Event{
				What: "PV pvc-394c3d6b: Bound, finalizers external-provisioner and pv-protection", Phase: "Bound",
				Finalizers: []string{"external-provisioner.volume.kubernetes.io/finalizer", "kubernetes.io/pv-protection"},
			},
		},
		"a volume that is being deleted": {
			metav1.ObjectMeta{DeletionTimestamp: &deleted, Finalizers: []string{"example.com/backup"}}, false,
			Event{
				What: "PV pvc-394c3d6b: Bound, Terminating, finalizer example.com/backup", Phase: "Bound",
				Deleting: true, Finalizers: []string{"example.com/backup"},
			},
		},
		"a volume without finalizers": {
			metav1.ObjectMeta{}, false,
			Event{What: "PV pvc-394c3d6b: Bound, no finalizers", Phase: "Bound"},
		},
		"a volume that is gone": {
			metav1.ObjectMeta{DeletionTimestamp: &deleted}, true,
			Event{What: "PV pvc-394c3d6b: gone from the API", Gone: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.meta.Name = provisioned
			tc.want.Kind, tc.want.Time, tc.want.Who, tc.want.Object = kindState, at(1), watched, volumes+"/"+provisioned
			tc.meta.UID, tc.meta.ResourceVersion, tc.want.UID, tc.want.Version = "u", "7", "u", "7"
			volume := &v1.PersistentVolume{ObjectMeta: tc.meta, Status: v1.PersistentVolumeStatus{Phase: v1.VolumeBound}}
			if diff := cmp.Diff(tc.want, describeVolume(volume, tc.gone, at(1))); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClaimStateNamesItsPhase(t *testing.T) {
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "demo", Finalizers: []string{"kubernetes.io/pvc-protection"}},
		Status:     v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending},
	}
	if got, want := describeClaim(claim, false, at(1)).What, "PVC demo: Pending, finalizer pvc-protection"; got != want {
		t.Errorf("the claim is %q, want %q", got, want)
	}
}

func TestOnlyProvisionedVolumeNamesAreShortened(t *testing.T) {
	for name, want := range map[string]string{
		provisioned:           "pvc-394c3d6b",
		"demo":                "demo",
		"pvc-old":             "pvc-old",
		"":                    "",
		"my-394c3d6b-1-2-3-4": "my-394c3d6b-1-2-3-4",
	} {
		if got := shorten(name); got != want {
			t.Errorf("shorten(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestEachFinalizerIsExplained(t *testing.T) {
	for name, tc := range map[string]struct {
		finalizers []string
		want       []string
	}{
		"with the gate on": {
			[]string{"external-provisioner.volume.kubernetes.io/finalizer", "kubernetes.io/pv-protection"},
			[]string{
				"kept by external-provisioner until the CSI driver has deleted the volume",
				"kept by pv-protection until the volume is no longer bound to a claim",
			},
		},
		"with the gate off": {
			[]string{"kubernetes.io/pv-protection"},
			[]string{
				"kept by pv-protection until the volume is no longer bound to a claim",
				"no finalizer keeps it until the CSI driver has deleted the volume",
			},
		},
		"with somebody else's finalizer": {
			[]string{"example.com/backup"},
			[]string{"kept by example.com/backup", "no finalizer keeps it until the CSI driver has deleted the volume"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, explain(tc.finalizers)); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}
