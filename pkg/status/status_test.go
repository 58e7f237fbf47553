package status

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

// volumeStates yields every value of external.State as stateOf returns it.
func volumeStates(yield func(external.State) bool) {
	for bits := range 8 {
		for policy := storage.PolicyUnknown; policy <= storage.PolicyDelete; policy++ {
			for phase := storage.PhasePending; phase <= storage.PhaseFailed; phase++ {
				for claim := storage.ClaimNone; claim <= storage.ClaimElsewhere; claim++ {
					for status := reclaim.StatusNone; status <= reclaim.StatusDone; status++ {
						s := external.State{
							Honor: true, Owned: true, Dynamic: bits&1 == 1, Deleting: bits&2 == 2, Protected: bits&4 == 4,
							Policy: policy, Phase: phase, Claim: claim, Status: status,
						}
						if !yield(s) {
							return
						}
					}
				}
			}
		}
	}
}

func TestProtectionOfEveryVolume(t *testing.T) {
	for s := range volumeStates {
		want := protectionUnneeded
		concerned := s.Policy == storage.PolicyDelete && (s.Phase == storage.PhaseBound || s.Phase.Released())
		switch {
		case !concerned:
		case s.Protected:
			want = isProtected
		case s.Deleting && (s.Phase == storage.PhaseBound || s.Status == reclaim.StatusPending):
			want = deletedTooEarly
		case s.Deleting: // its disk was deleted
		default:
			want = isUnprotected
		}
		if got := protectionOf(s); got != want {
			t.Errorf("%+v: %v, want %v", s, got, want)
		}
	}
}

// Both provisioners protect and reclaim CSI volumes that were created by hand.
func TestVolumeCreatedByHandIsDeletedTooEarly(t *testing.T) {
	if got := protectionOf(external.State{Honor: true, Owned: true, Policy: storage.PolicyDelete,
		Phase: storage.PhaseBound, Deleting: true}); got != deletedTooEarly {
		t.Errorf("%v, want %v", got, deletedTooEarly)
	}
}

func TestReclaimerOfVolume(t *testing.T) {
	csi := corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d.example.com"}}
	disk := corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "x"}}
	const migrated = "pd.csi.storage.gke.io"
	for name, tc := range map[string]struct {
		source      corev1.PersistentVolumeSource
		annotations map[string]string
		driver      string
		want        reclaimer
	}{
		"provisioned":     {csi, map[string]string{storage.AnnDynamicallyProvisioned: "d.example.com"}, "d.example.com", driverReclaims},
		"created by hand": {csi, nil, "d.example.com", driverReclaims},
		"migrated": {disk, map[string]string{storage.AnnDynamicallyProvisioned: "kubernetes.io/gce-pd",
			storage.AnnMigratedTo: migrated}, migrated, driverReclaims},
		"migrated, not annotated yet":    {disk, map[string]string{storage.AnnDynamicallyProvisioned: "kubernetes.io/gce-pd"}, migrated, driverReclaims},
		"migrated, created by hand":      {disk, nil, migrated, driverReclaimsLater},
		"the same beside our controller": {disk, map[string]string{storage.AnnMigratedTo: migrated}, migrated, driverReclaims},
		"of a provisioner without driver": {corev1.PersistentVolumeSource{},
			map[string]string{storage.AnnDynamicallyProvisioned: "example.com/nfs"}, "example.com/nfs", otherReclaims},
	} {
		t.Run(name, func(t *testing.T) {
			volume := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: tc.source}}
			volume.Annotations = tc.annotations
			if got := reclaimerOf(volume, tc.driver); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// A switch to Exeunt changes nothing for volumes of a provisioner that is no CSI driver.
func TestSwitchDeletesNoVolumeOfOtherProvisioner(t *testing.T) {
	volume := csiVolume(corev1.VolumeReleased, "x")
	volume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/opt/v"}}
	volume.Annotations = map[string]string{storage.AnnDynamicallyProvisioned: "rancher.io/local-path"}
	volume.Finalizers = nil
	objects := clustertest.Objects{
		"persistentvolumes": {volume},
		"deployments":       {deployed("local-path-storage", "local-path-provisioner", 0, corev1.Container{Image: "rancher/local-path-provisioner:v0.0.31"})},
	}
	report := Read(t.Context(), Options{Reader: clustertest.NewReader(t, objects.ServeHTTP), BeforeSwitch: true})
	if len(report.BeforeSwitch.Deletes) != 0 {
		t.Errorf("the switch deletes %+v", report.BeforeSwitch.Deletes)
	}
	want := "rancher.io/local-path: its provisioner does not run, or crashes: the disks of 1 volume stay in storage until it works"
	if !slices.Contains(report.Findings, want) ||
		report.Drivers[0].Provisioner.Where != "Deployment local-path-storage/local-path-provisioner" {
		t.Errorf("findings %q, drivers %+v", report.Findings, report.Drivers)
	}
}

func TestVolumesThatNobodyReclaimsAreNotCounted(t *testing.T) {
	state := external.State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseBound,
		Claim: storage.ClaimBound}
	s := &survey{volumes: map[types.UID]volumeFacts{
		"1": {name: "by-hand", driver: "d", state: state}, "2": {name: "in-tree", driver: "d", state: state, reclaimer: driverReclaimsLater},
		"3": {name: "nfs", driver: "d", state: state, reclaimer: otherReclaims},
	}}
	if d := s.countVolumes()["d"]; d.Dynamic != 2 || d.Unprotected != 2 || d.reclaims != 2 || !d.external {
		t.Errorf("driver %+v", *d)
	}
}

func TestDeletionAfterSwitch(t *testing.T) {
	for s := range volumeStates {
		got := deletionOf(s)
		if got == deletesNothing {
			continue
		}
		if s.Policy != storage.PolicyDelete || !s.Deleting && !s.Phase.Released() {
			t.Errorf("%+v: %v", s, got)
		}
		if got == deletesDisk && (s.Claim == storage.ClaimBound || s.Claim == storage.ClaimLost) {
			t.Errorf("%+v: the claim uses the volume", s)
		}
	}
	released := external.State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased,
		Claim: storage.ClaimGone}
	if got := deletionOf(released); got != deletesDisk {
		t.Errorf("released volume: %v", got)
	}
	bound := external.State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseBound,
		Deleting: true, Protected: true, Claim: storage.ClaimBound}
	if got := deletionOf(bound); got != deletesDiskAfterClaim {
		t.Errorf("terminating bound volume: %v", got)
	}
}

func TestPhaseWriteOf(t *testing.T) {
	at := metav1.NewTime(time.Unix(1000, 0))
	entry := func(manager, fields string) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: manager, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}}
	}
	for name, tc := range map[string]struct {
		fields    []metav1.ManagedFieldsEntry
		ours, has bool
	}{
		"ours":                {entry("pv-controller", `{"f:status":{"f:phase":{}}}`), true, true},
		"upstream's":          {entry("kube-controller-manager", `{"f:status":{"f:phase":{},"f:message":{}}}`), false, true},
		"upstream's in k3s":   {entry("k3s", `{"f:status":{"f:phase":{}}}`), false, true},
		"in MicroK8s":         {entry("kubelite", `{"f:status":{"f:phase":{}}}`), false, true},
		"expander":            {entry("kube-controller-manager", `{"f:status":{"f:allocatedResources":{}}}`), false, false},
		"another field phase": {entry("kube-controller-manager", `{"f:spec":{"f:phase":{}}}`), false, false},
		"another program":     {entry("kubectl-edit", `{"f:status":{"f:phase":{}}}`), false, false},
		"not JSON":            {entry("pv-controller", `{`), false, false},
		"emptied":             {nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, has := phaseWriteOf(tc.fields); has != tc.has || got.ours != tc.ours {
				t.Errorf("phaseWriteOf = %+v, %t", got, has)
			}
		})
	}
}

func TestWritersOf(t *testing.T) {
	now := time.Unix(100000, 0)
	// Each letter is a write: o by ours, u by upstream's, a second after the one before.
	writes := func(text string, end time.Duration) []phaseWrite {
		var all []phaseWrite
		for i, letter := range text {
			all = append(all, phaseWrite{now.Add(-end - time.Duration(len(text)-i)*time.Second), letter == 'o'})
		}
		return all
	}
	for name, tc := range map[string]struct {
		writes []phaseWrite
		want   phaseWriters
	}{
		"no write":                      {nil, writersNone},
		"ours":                          {writes("ooo", 0), writersOurs},
		"upstream's":                    {writes("uuu", 0), writersUpstream},
		"in turn":                       {writes("ouo", 0), writersBoth},
		"in turn, upstream first":       {writes("uououu", 0), writersBoth},
		"one after the other":           {writes("uuuooo", 0), writersSwitched},
		"in turn an hour ago":           {writes("uouo", time.Hour), writersOurs},
		"switched long ago":             {append(writes("uuu", time.Hour), writes("oo", 0)...), writersOurs},
		"both in one second":            {[]phaseWrite{{now, true}, {now, false}}, writersSwitched},
		"in turn, not sorted":           {append(writes("o", 0), writes("uou", 10*time.Second)...), writersBoth},
		"old writes do not make a turn": {append(writes("o", time.Hour), writes("uo", 0)...), writersSwitched},
	} {
		t.Run(name, func(t *testing.T) {
			if got := writersOf(tc.writes, now); got != tc.want {
				t.Errorf("writersOf = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestEveryEnumValueHasItsOwnName(t *testing.T) {
	enumtest.ExpectNames(t, ProtectionOn, ProtectionPartly)
	enumtest.ExpectNames(t, protectionUnneeded, deletedTooEarly)
	enumtest.ExpectNames(t, deletesNothing, deletesDiskAfterClaim)
	enumtest.ExpectNames(t, writersNone, writersBoth)
	enumtest.ExpectNames(t, driverReclaims, otherReclaims)
	enumtest.ExpectNames(t, workUnseen, workDoubtful)
}

func TestInTreeNames(t *testing.T) {
	if !isInTree("kubernetes.io/host-path") || isInTree("csi.example.com") || strings.HasPrefix("", "kubernetes.io/") {
		t.Error("in-tree plugins are told by their names")
	}
}

func TestFindingNamesItsOwnVolumes(t *testing.T) {
	state := external.State{Honor: true, Owned: true, Dynamic: true, Policy: storage.PolicyDelete,
		Phase: storage.PhaseBound, Claim: storage.ClaimBound}
	late := state
	late.Deleting, late.Status = true, reclaim.StatusPending
	s := &survey{volumes: map[types.UID]volumeFacts{
		"1": {name: "late-volume", driver: "d", state: late}, "2": {name: "open-volume", driver: "d", state: state},
	}}
	driver := s.countVolumes()["d"]
	s.judgeDriver(driver)
	if len(s.report.Findings) != 2 || len(driver.Examples) != 2 {
		t.Fatalf("findings %q, examples %q", s.report.Findings, driver.Examples)
	}
	for i, want := range []string{"open-volume", "late-volume"} {
		if finding := s.report.Findings[i]; !strings.Contains(finding, "such as "+want+": ") {
			t.Errorf("%q, want only %s", finding, want)
		}
	}
}

// The only csi-provisioner of a cluster with two drivers is that of one of them, and nothing says of which.
func TestGateOfGuessedProvisionerIsNoFinding(t *testing.T) {
	driver := func(name string) metav1.Object {
		return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	for drivers, want := range map[int]int{1: 1, 2: 0} {
		objects := clustertest.Objects{
			"csidrivers":  []metav1.Object{driver("a.example.com"), driver("b.example.com")}[:drivers],
			"deployments": {deployed("storage", "controller", 1, corev1.Container{Image: "r/csi-provisioner:v4.0.0"})},
		}
		report := Read(t.Context(), Options{Reader: clustertest.NewReader(t, objects.ServeHTTP)})
		found := 0
		for _, finding := range report.Findings {
			if strings.Contains(finding, "does not serve the finalizer") {
				found++
			}
		}
		if found != want {
			t.Errorf("of %d drivers: %q", drivers, report.Findings)
		}
	}
}
