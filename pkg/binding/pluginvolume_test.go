package binding

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestDecideProvision(t *testing.T) {
	for name, tc := range map[string]struct {
		state ProvisionState
		want  ProvisionAction
	}{
		"missing volume is recorded":             {ProvisionState{}, RecordVolume},
		"name of another volume is reported":     {ProvisionState{Volume: NameConflict}, ReportNameConflict},
		"finished volume is left":                {ProvisionState{Volume: Finished, Fits: true}, WaitForClaim},
		"deleted volume is left":                 {ProvisionState{Volume: Unfinished, Deleting: true}, WaitForClaim},
		"recorded volume is created":             {ProvisionState{Volume: Unfinished, Fits: true}, CreateVolume},
		"created volume becomes Bound":           {ProvisionState{Volume: Unfinished, Created: true, Fits: true}, SetVolumeBound},
		"created volume that does not fit waits": {ProvisionState{Volume: Unfinished, Created: true}, ReportCreated},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DecideProvision(tc.state); got != tc.want {
				t.Errorf("DecideProvision(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

// everyProvisionState returns all values of ProvisionState.
func everyProvisionState() []ProvisionState {
	var states []ProvisionState
	for volume := NotRecorded; volume <= Finished; volume++ {
		for bits := range 8 {
			states = append(states, ProvisionState{Volume: volume, Deleting: bits&1 != 0, Created: bits&2 != 0,
				Fits: bits&4 != 0})
		}
	}
	return states
}

func TestPluginIsCalledOnlyForRecordedVolume(t *testing.T) {
	for _, s := range everyProvisionState() {
		action := DecideProvision(s)
		if action == CreateVolume && (s.Volume != Unfinished || s.Deleting || s.Created) {
			t.Errorf("DecideProvision(%+v) = %v", s, action)
		}
		if action == SetVolumeBound && (!s.Created || !s.Fits) {
			t.Errorf("DecideProvision(%+v) = %v before the plugin created the volume", s, action)
		}
	}
}

func TestPluginVolumeOf(t *testing.T) {
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "c"}}
	volume := func(change func(*v1.PersistentVolume)) *v1.PersistentVolume {
		v := &v1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-c",
				Annotations: map[string]string{storage.AnnDynamicallyProvisioned: "plugin"}},
			Spec:   v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{Namespace: "ns", Name: "claim", UID: "c"}},
			Status: v1.PersistentVolumeStatus{Phase: v1.VolumePending},
		}
		change(v)
		return v
	}
	for name, tc := range map[string]struct {
		volume *v1.PersistentVolume
		here   bool
		want   PluginVolume
	}{
		"no volume":                  {nil, true, NotRecorded},
		"recorded":                   {volume(func(*v1.PersistentVolume) {}), true, Unfinished},
		"recorded without phase":     {volume(func(v *v1.PersistentVolume) { v.Status.Phase = "" }), true, Unfinished},
		"bound":                      {volume(func(v *v1.PersistentVolume) { v.Status.Phase = v1.VolumeBound }), true, Finished},
		"of another program":         {volume(func(*v1.PersistentVolume) {}), false, Finished},
		"of a claim with other UID":  {volume(func(v *v1.PersistentVolume) { v.Spec.ClaimRef.UID = "d" }), true, NameConflict},
		"created by a person":        {volume(func(v *v1.PersistentVolume) { v.Annotations = nil }), true, NameConflict},
		"without reference to claim": {volume(func(v *v1.PersistentVolume) { v.Spec.ClaimRef = nil }), true, NameConflict},
		"volume of another name":     {volume(func(v *v1.PersistentVolume) { v.Name = "reserved" }), true, Finished},
	} {
		t.Run(name, func(t *testing.T) {
			if got := PluginVolumeOf(tc.volume, claim, tc.here); got != tc.want {
				t.Errorf("PluginVolumeOf = %v, want %v", got, tc.want)
			}
		})
	}
}
