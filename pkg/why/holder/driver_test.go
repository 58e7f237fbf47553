package holder

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/families"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

func TestNames(t *testing.T) { enumtest.ExpectNames(t, serviceUnknown, servesDriver) }

func TestNamesDriver(t *testing.T) {
	for text, want := range map[string]bool{
		"ebs.csi.aws.com":                          true,
		"--driver-name=ebs.csi.aws.com":            true,
		"/var/lib/kubelet/plugins/ebs.csi.aws.com": true,
		"unix:///plugins/ebs.csi.aws.com/csi.sock": true,
		"ebs-csi-aws-com":                          true,
		"my-ebs.csi.aws.com":                       false,
		"ebs.csi.aws.com.example":                  false,
		"x.ebs.csi.aws.com":                        false,
		"ebsxcsi.aws.com":                          false,
		"":                                         false,
		"ebs.csi.aws":                              false,
		"first my-ebs.csi.aws.com, then ebs.csi.aws.com": true,
	} {
		for _, driver := range []string{"ebs.csi.aws.com", "ebs-csi-aws-com"} {
			if got := families.NamesDriver(text, driver); got != want {
				t.Errorf("families.NamesDriver(%q, %q) = %v, want %v", text, driver, got, want)
			}
		}
	}
	if families.NamesDriver("anything", "") {
		t.Error("a text names the driver without a name")
	}
}

func TestServiceOfWorkload(t *testing.T) {
	controller := families.Controller{Leases: []string{"external-attacher-leader-{driver}"}}
	lease := func(namespace, name, holder string) []coordinationv1.Lease {
		l := newLease(holder, time.Hour, 15)
		l.Namespace, l.Name = namespace, name
		return []coordinationv1.Lease{l}
	}
	with := func(container corev1.Container) workload {
		return workload{kind: "Deployment", namespace: "ns", name: "csi", spec: corev1.PodSpec{Containers: []corev1.Container{container}}}
	}
	hostPath := with(corev1.Container{})
	hostPath.spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/plugins/a.example/"}}}}
	labeled := with(corev1.Container{})
	labeled.podLabels = map[string]string{"driver": "a.example"}
	for name, tc := range map[string]struct {
		workload workload
		leases   []coordinationv1.Lease
		want     service
	}{
		"nothing tells":                      {with(corev1.Container{Args: []string{"--csi-address=/csi/csi.sock"}}), nil, serviceUnknown},
		"named in an argument":               {with(corev1.Container{Args: []string{"--driver=a.example"}}), nil, servesDriver},
		"named in a variable":                {with(corev1.Container{Env: []corev1.EnvVar{{Name: "D", Value: "a.example"}}}), nil, servesDriver},
		"named in a directory":               {hostPath, nil, servesDriver},
		"named in a label":                   {labeled, nil, servesDriver},
		"another registered driver is named": {with(corev1.Container{Args: []string{"--x=b.example"}}), nil, servesOther},
		"both are named":                     {with(corev1.Container{Args: []string{"a.example,b.example"}}), nil, servesDriver},
		"a flag names any other":             {with(corev1.Container{Args: []string{"--driver-name=c.example"}}), nil, servesOther},
		"a variable names any other":         {with(corev1.Container{Env: []corev1.EnvVar{{Name: "CSI_DRIVER_NAME", Value: "c"}}}), nil, servesOther},
		"a flag names a variable":            {with(corev1.Container{Args: []string{"--driver-name=$(NAME)"}}), nil, serviceUnknown},
		"holds the Lease":                    {with(corev1.Container{}), lease("ns", "external-attacher-leader-a-example", "csi-7d9f8-x"), servesDriver},
		"another workload holds the Lease":   {with(corev1.Container{}), lease("ns", "external-attacher-leader-a-example", "other-7d9f8-x"), serviceUnknown},
		"holds a Lease of another driver":    {with(corev1.Container{}), lease("ns", "external-attacher-leader-b-example", "csi-7d9f8-x"), servesOther},
		"holds the Lease of another sidecar": {with(corev1.Container{}), lease("ns", "external-resizer-a-example", "csi-7d9f8-x"), servesDriver},
		"holds a Lease of its own":           {with(corev1.Container{}), lease("ns", "painter-lock", "csi-7d9f8-x"), serviceUnknown},
		"holds a Lease of a registered one":  {with(corev1.Container{}), lease("ns", "b-example", "csi-7d9f8-x"), servesOther},
		"the driver is the end of another":   {with(corev1.Container{}), lease("ns", "external-resizer-my-a-example", "csi-7d9f8-x"), serviceUnknown},
		"same name in another namespace":     {with(corev1.Container{}), lease("other", "external-attacher-leader-b-example", "csi-7d9f8-x"), serviceUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := serviceOf(tc.workload, controller, "a.example", tc.leases, []string{"b.example"}); got != tc.want {
				t.Errorf("the service is %v, want %v", got, tc.want)
			}
		})
	}
}

func TestSwitchedOffLoop(t *testing.T) {
	off := program{workload: workload{kind: "Pod", name: "kube-controller-manager-node-1", pod: &corev1.Pod{},
		spec: corev1.PodSpec{NodeName: "node-1"}}}
	held := newLease("node-1_0123", time.Second, 15)
	foreign := newLease("node-2_0123", time.Second, 15)
	for name, tc := range map[string]struct {
		sighting sighting
		want     bool
	}{
		"no program has it off": {sighting{state: blocker.WorkloadAbsent, leaseState: blocker.LeaseAbsent}, false},
		"off, no Lease":         {sighting{off: []program{off}, state: blocker.WorkloadAbsent, leaseState: blocker.LeaseAbsent}, true},
		"off, Lease has run out twice": {sighting{off: []program{off}, state: blocker.WorkloadAbsent,
			leaseState: blocker.LeaseExpiredTwice, lease: &foreign}, true},
		"off, and it holds the Lease":    {sighting{off: []program{off}, state: blocker.WorkloadAbsent, leaseState: blocker.LeaseHeld, lease: &held}, true},
		"off, another holds the Lease":   {sighting{off: []program{off}, state: blocker.WorkloadAbsent, leaseState: blocker.LeaseHeld, lease: &foreign}, false},
		"off, Leases not seen":           {sighting{off: []program{off}, state: blocker.WorkloadAbsent}, false},
		"off, pods not seen":             {sighting{off: []program{off}, leaseState: blocker.LeaseAbsent}, false},
		"off here, and on in another":    {sighting{off: []program{off}, state: blocker.WorkloadReady, leaseState: blocker.LeaseAbsent}, false},
		"off here, and crashing another": {sighting{off: []program{off}, state: blocker.WorkloadCrashing, leaseState: blocker.LeaseAbsent}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.sighting.isSwitchedOff(); got != tc.want {
				t.Errorf("isSwitchedOff() = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestBareLeaseNameSaysNothingOfOtherDrivers(t *testing.T) {
	provisioner := families.Controller{Leases: []string{"{driver}"}}
	for name, want := range map[string]bool{"painter-lock": false, "a-example": false, "b-example": true,
		"external-attacher-leader-b-example": true} {
		if got := isOtherLease(provisioner, name, []string{"b.example"}); got != want {
			t.Errorf("isOtherLease(%q) = %v, want %v", name, got, want)
		}
	}
}
