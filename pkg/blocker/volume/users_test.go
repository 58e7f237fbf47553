package volume

import (
	"testing"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

func TestPluginIsStuckOnlyWithEvidence(t *testing.T) {
	for controller := range controllers() {
		for n := range 12 {
			s := PluginState{Missing: n%2 == 1, Error: Fact(n / 2 % 3), External: n/6 == 1, Controller: controller}
			got := Plugin(s)
			if got.Verdict == blocker.Stuck && !s.Missing && s.Error != Yes && !isProven(controller) {
				t.Fatalf("Plugin(%+v) = %v without evidence", s, got)
			}
			if got.Verdict == blocker.Waiting && (verdictOf(controller) != blocker.Waiting || s.Error != No) {
				t.Fatalf("Plugin(%+v) = %v, but nothing was seen to act", s, got)
			}
		}
	}
}

func TestAttachmentIsStuckOnlyWithEvidence(t *testing.T) {
	for controller := range controllers() {
		for n := range 12 {
			s := AttachmentState{Deleting: n%2 == 1, Error: n/2%2 == 1, Node: Fact(n / 4), Attacher: controller}
			got := Attachment(s)
			if got.Verdict == blocker.Stuck && !s.Error && s.Node != No && !isProven(controller) {
				t.Fatalf("Attachment(%+v) = %v without evidence", s, got)
			}
			less := s
			less.Node = Unseen
			if got.Verdict != blocker.Stuck && Attachment(less).Verdict == blocker.Stuck {
				t.Fatalf("Attachment(%+v) is stuck, but Attachment(%+v) is %v", less, s, got)
			}
		}
	}
}

func TestAttachment(t *testing.T) {
	alive := blocker.ControllerState{Workload: blocker.WorkloadReady}
	gone := blocker.ControllerState{Workload: blocker.WorkloadAbsent, Lease: blocker.LeaseExpiredTwice}
	for name, tc := range map[string]struct {
		state AttachmentState
		want  Judgment
	}{
		"node lives":            {AttachmentState{Node: Yes, Attacher: alive}, Judgment{blocker.VolumeAttached, blocker.Waiting}},
		"node unseen":           {AttachmentState{Node: Unseen, Attacher: alive}, Judgment{blocker.VolumeAttached, blocker.Unknown}},
		"node gone":             {AttachmentState{Node: No, Attacher: alive}, Judgment{blocker.NodeGone, blocker.Stuck}},
		"detaching fails":       {AttachmentState{Node: Yes, Deleting: true, Error: true, Attacher: alive}, Judgment{blocker.DetachFailed, blocker.Stuck}},
		"detaching":             {AttachmentState{Node: Yes, Deleting: true, Attacher: alive}, Judgment{blocker.ControllerActs, blocker.Waiting}},
		"attacher gone":         {AttachmentState{Node: Yes, Deleting: true, Attacher: gone}, Judgment{blocker.ControllerGone, blocker.Stuck}},
		"attacher never seen":   {AttachmentState{Node: Yes, Deleting: true}, Judgment{blocker.ControllerUnseen, blocker.Unknown}},
		"error, attacher gone":  {AttachmentState{Node: Yes, Deleting: true, Error: true, Attacher: gone}, Judgment{blocker.ControllerGone, blocker.Stuck}},
		"attacher, node unseen": {AttachmentState{}, Judgment{blocker.VolumeAttached, blocker.Unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Attachment(tc.state); got != tc.want {
				t.Errorf("Attachment(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

func TestInUseIsStuckOnlyWithEvidence(t *testing.T) {
	for remover := range controllers() {
		for users := range controllers() {
			for n := range 18 {
				s := UseState{Used: Fact(n % 3), Error: Fact(n / 3 % 3), Standing: n/9 == 1, Users: users, Remover: remover}
				got := InUse(s, blocker.CloneRunning)
				evidence := s.Error == Yes || isProven(remover) || isProven(users)
				if got.Verdict == blocker.Stuck && !evidence {
					t.Fatalf("InUse(%+v) = %v without evidence", s, got)
				}
				less := s
				less.Used = Unseen
				if lesser := InUse(less, blocker.CloneRunning); lesser.Verdict == blocker.Stuck {
					t.Fatalf("InUse(%+v) = %v, but nobody knows whether the object is used", less, lesser)
				}
			}
		}
	}
}

func TestTakeover(t *testing.T) {
	for server, want := range map[Server]Judgment{
		ServerUnseen: {blocker.ControllerUnseen, blocker.Unknown},
		ServerOurs:   {blocker.ControllerActs, blocker.Waiting},
		ServerOther:  {blocker.TooLateToProtect, blocker.Stuck},
		ServerGone:   {blocker.TooLateToProtect, blocker.Stuck},
	} {
		if got := Takeover(server); got != want {
			t.Errorf("Takeover(%v) = %v, want %v", server, got, want)
		}
	}
}

func TestLate(t *testing.T) {
	for server, want := range map[Server]blocker.Verdict{
		ServerUnseen: blocker.Unknown, ServerOurs: blocker.None, ServerOther: blocker.Stuck, ServerGone: blocker.Stuck,
	} {
		if got := Late(server); got != (Judgment{blocker.TooLateToProtect, want}) {
			t.Errorf("Late(%v) = %v, want %v", server, got, want)
		}
	}
}

func TestServerOf(t *testing.T) {
	ours, upstream := Program{Image: "r/exeunt/provisioner:v1"}, Program{Image: "r/csi-provisioner:v6.3.0"}
	ready := blocker.ControllerState{Workload: blocker.WorkloadReady, Lease: blocker.LeaseAbsent}
	held := blocker.ControllerState{Workload: blocker.WorkloadAbsent, Lease: blocker.LeaseHeld}
	gone := blocker.ControllerState{Workload: blocker.WorkloadStopped, Lease: blocker.LeaseExpiredTwice}
	for name, tc := range map[string]struct {
		controller blocker.ControllerState
		leader     Leader
		programs   []Program
		want       Server
	}{
		"nothing seen":             {blocker.ControllerState{}, LeaderUnseen, nil, ServerUnseen},
		"our leader":               {held, LeaderOurs, nil, ServerOurs},
		"another leader":           {held, LeaderOther, nil, ServerOther},
		"another leader, our pods": {held, LeaderOther, []Program{ours}, ServerUnseen},
		"our pods, no election":    {ready, LeaderUnseen, []Program{ours}, ServerOurs},
		"upstream's pods":          {ready, LeaderUnseen, []Program{upstream}, ServerOther},
		"upstream's pods unready":  {blocker.ControllerState{}, LeaderUnseen, []Program{upstream}, ServerUnseen},
		"proven gone":              {gone, LeaderUnseen, []Program{ours}, ServerGone},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ServerOf(tc.controller, tc.leader, tc.programs); got != tc.want {
				t.Errorf("ServerOf(%+v, %v, %v) = %v, want %v", tc.controller, tc.leader, tc.programs, got, tc.want)
			}
		})
	}
}

func TestUnseenFactsNeverMakeATakeoverStuck(t *testing.T) {
	ours, upstream := Program{Image: "exeunt/provisioner:v1"}, Program{Image: "csi-provisioner:v6.3.0"}
	for controller := range controllers() {
		for _, programs := range [][]Program{nil, {ours}, {upstream}, {ours, upstream}} {
			for leader := LeaderUnseen; leader <= LeaderOther; leader++ {
				noPods, noLeases := controller, controller
				noPods.Workload, noLeases.Lease = blocker.WorkloadUnseen, blocker.LeaseUnseen
				for _, server := range []Server{ServerOf(noPods, leader, nil), ServerOf(noLeases, LeaderUnseen, programs)} {
					if got := Takeover(server); got.Verdict == blocker.Stuck {
						t.Fatalf("%+v, leader %v, programs %v: %v without pods or Leases", controller, leader, programs, got)
					}
				}
			}
		}
	}
}

func TestFeatureOf(t *testing.T) {
	gate := func(value string) []string {
		return []string{"--v=5", "--feature-gates=Topology=true," + gateName + "=" + value}
	}
	for name, tc := range map[string]struct {
		program Program
		want    Feature
	}{
		"before the finalizer":       {Program{Image: "r/csi-provisioner:v3.0.0", Args: gate("true")}, FeatureOff},
		"alpha":                      {Program{Image: "r/csi-provisioner:v3.1.0"}, FeatureOff},
		"alpha, on":                  {Program{Image: "r/csi-provisioner:v3.1.0", Args: gate("true")}, FeatureOn},
		"beta":                       {Program{Image: "r/csi-provisioner:v5.0.1"}, FeatureOn},
		"beta, off":                  {Program{Image: "r:5000/csi-provisioner:v5.2.0", Args: gate("false")}, FeatureOff},
		"gate in two words":          {Program{Image: "r/csi-provisioner:v5.2.0", Args: []string{"--feature-gates", gateName + "=false"}}, FeatureOff},
		"gate as a number":           {Program{Image: "r/csi-provisioner:v3.1.0", Args: gate("1")}, FeatureOn},
		"gate as a letter, spaces":   {Program{Image: "r/csi-provisioner:v3.1.0", Args: []string{"--feature-gates= " + gateName + " = t "}}, FeatureOn},
		"one dash":                   {Program{Image: "r/csi-provisioner:v5.2.0", Args: []string{"-feature-gates=" + gateName + "=False"}}, FeatureOff},
		"digest":                     {Program{Image: "r/csi-provisioner@sha256:0123"}, FeatureUnknown},
		"digest, off":                {Program{Image: "r/csi-provisioner@sha256:0123", Args: gate("false")}, FeatureOff},
		"tag and digest":             {Program{Image: "r/csi-provisioner:v5.0.0@sha256:0123"}, FeatureOn},
		"canary":                     {Program{Image: "r/csi-provisioner:canary"}, FeatureUnknown},
		"no tag, registry with port": {Program{Image: "r:3000/csi-provisioner"}, FeatureUnknown},
		"fork":                       {Program{Image: "r/my-provisioner:v1.0"}, FeatureUnknown},
		"ours":                       {Program{Image: "r/exeunt/provisioner:v0.1.0"}, FeatureOn},
		"ours by command":            {Program{Image: "r/x:v0.1.0", Args: []string{"/provisioner"}}, FeatureOn},
		"ours, off":                  {Program{Image: "r/exeunt/provisioner:v0.1.0", Args: gate("false")}, FeatureOff},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FeatureOf(tc.program); got != tc.want {
				t.Errorf("FeatureOf(%v) = %v, want %v", tc.program, got, tc.want)
			}
		})
	}
}

func TestFeatureOfAllIsOffOnlyIfAllAreOff(t *testing.T) {
	on, off, unknown := Program{Image: "csi-provisioner:v6.0.0"}, Program{Image: "csi-provisioner:v2.0.0"},
		Program{Image: "csi-provisioner"}
	for name, tc := range map[string]struct {
		programs []Program
		want     Feature
	}{
		"none":            {nil, FeatureUnknown},
		"all off":         {[]Program{off, off}, FeatureOff},
		"rolling update":  {[]Program{off, on}, FeatureOn},
		"one is unknown":  {[]Program{off, unknown}, FeatureUnknown},
		"unknown and off": {[]Program{unknown, off}, FeatureUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FeatureOfAll(tc.programs); got != tc.want {
				t.Errorf("FeatureOfAll(%v) = %v, want %v", tc.programs, got, tc.want)
			}
		})
	}
}

func TestMessages(t *testing.T) {
	for message, want := range map[string]bool{
		"rpc error: code = FailedPrecondition desc = volume has snapshots":                                   true,
		"rpc error: code = Internal desc = failed":                                                           true,
		"rpc error: code = DeadlineExceeded desc = context deadline exceeded":                                false,
		"rpc error: code = Aborted desc = an operation with the given volume exists":                         false,
		"persistentvolume pvc-1 is still attached to node node-1":                                            false,
		`error getting secret s in namespace n: secrets "s" not found`:                                       false,
		`error getting secret s in namespace n: secrets "s" is forbidden`:                                    true,
		"the deletion secret n/s of the volume does not exist; the volume is deleted once the secret exists": false,
	} {
		if got := IsRefusal(message); got != want {
			t.Errorf("IsRefusal(%q) = %v, want %v", message, got, want)
		}
	}
	for message, want := range map[string]bool{
		`error getting deleter volume plugin for volume "v": no volume plugin matched`: true,
		"no volume plugin matched name: kubernetes.io/rbd; the volume is left":         true,
		"host_path deleter only supports /tmp/.+":                                      false,
	} {
		if got := SaysPluginMissing(message); got != want {
			t.Errorf("SaysPluginMissing(%q) = %v, want %v", message, got, want)
		}
	}
}

func TestContentIsStuckOnlyWithEvidence(t *testing.T) {
	for sidecar := range controllers() {
		for n := range 18 {
			s := ContentState{Bound: Fact(n % 3), Error: Fact(n / 3 % 3), Deletes: n/9 == 1, Sidecar: sidecar}
			got := Content(s)
			if got.Verdict == blocker.Stuck && (s.Bound != No || s.Error != Yes && !isProven(sidecar)) {
				t.Fatalf("Content(%+v) = %v without evidence", s, got)
			}
			for _, less := range []ContentState{{Unseen, s.Deletes, s.Error, sidecar}, {s.Bound, s.Deletes, Unseen, sidecar}} {
				if got.Verdict != blocker.Stuck && Content(less).Verdict == blocker.Stuck {
					t.Fatalf("Content(%+v) is stuck, but Content(%+v) is %v", less, s, got)
				}
			}
		}
	}
}

func TestContent(t *testing.T) {
	alive := blocker.ControllerState{Workload: blocker.WorkloadReady}
	gone := blocker.ControllerState{Workload: blocker.WorkloadStopped, Lease: blocker.LeaseAbsent}
	for name, tc := range map[string]struct {
		state ContentState
		want  Judgment
	}{
		"snapshot exists":  {ContentState{Yes, true, No, alive}, Judgment{blocker.SnapshotBound, blocker.Waiting}},
		"driver deletes":   {ContentState{No, true, No, alive}, Judgment{blocker.DriverDeletes, blocker.Waiting}},
		"driver refuses":   {ContentState{No, true, Yes, alive}, Judgment{blocker.DriverRefuses, blocker.Stuck}},
		"sidecar gone":     {ContentState{No, true, Yes, gone}, Judgment{blocker.DriverMissing, blocker.Stuck}},
		"sidecar unseen":   {ContentState{No, true, No, blocker.ControllerState{}}, Judgment{blocker.ControllerUnseen, blocker.Unknown}},
		"policy keeps it":  {ContentState{No, false, No, alive}, Judgment{blocker.ControllerActs, blocker.Waiting}},
		"keeps, but gone":  {ContentState{No, false, No, gone}, Judgment{blocker.ControllerGone, blocker.Stuck}},
		"snapshot unseen":  {ContentState{Unseen, true, Yes, gone}, Judgment{blocker.SnapshotBound, blocker.Unknown}},
		"events not seen":  {ContentState{No, true, Unseen, alive}, Judgment{blocker.DriverDeletes, blocker.Unknown}},
		"error, no policy": {ContentState{No, false, Yes, alive}, Judgment{blocker.ControllerActs, blocker.Waiting}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Content(tc.state); got != tc.want {
				t.Errorf("Content(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}
