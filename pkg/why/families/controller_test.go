package families_test

import (
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/why/families"
)

func TestControllerHasImage(t *testing.T) {
	controller := families.Controller{Images: []string{"csi-attacher", "kuberay/operator"}}
	for image, want := range map[string]bool{
		"csi-attacher": true,
		"registry.example/sig-storage/csi-attacher:v4.9":  true,
		"registry.example:5000/csi-attacher":              true,
		"registry.example/csi-attacher:v4@sha256:0123":    true,
		"registry.example/csi-attacher@sha256:0123456789": true,
		"quay.example/kuberay/operator:v1":                true,
		"kuberay/operator":                                true,
		"quay.example/other/operator:v1":                  false,
		"operator":                                        false,
		"rancher/mirrored-sig-storage-csi-attacher:v4":    true,
		"rancher/mirrored-kuberay-operator:v1":            true,
		"rancher/mirrored-other-operator:v1":              false,
		"registry.example/my-csi-attacher:v4":             false,
		"registry.example/csi-attacher/fork":              false,
		"":                                                false,
	} {
		if got := controller.HasImage(image); got != want {
			t.Errorf("HasImage(%q) = %v, want %v", image, got, want)
		}
	}
}

func TestControllerHasCommand(t *testing.T) {
	controller := families.Controller{Commands: []string{"pv-controller"}}
	for command, want := range map[string]bool{
		"/pv-controller": true, "pv-controller": true, "/usr/bin/pv-controller": true,
		"my-pv-controller": false, "": false, "/": false,
	} {
		if got := controller.HasCommand(command); got != want {
			t.Errorf("HasCommand(%q) = %v, want %v", command, got, want)
		}
	}
}

func TestControllerHasLabels(t *testing.T) {
	controller := families.Controller{Labels: map[string]string{"app": "keda", "tier": "operator"}}
	for name, tc := range map[string]struct {
		controller families.Controller
		labels     map[string]string
		want       bool
	}{
		"all labels":        {controller, map[string]string{"app": "keda", "tier": "operator", "x": "y"}, true},
		"label missing":     {controller, map[string]string{"app": "keda"}, false},
		"other value":       {controller, map[string]string{"app": "keda", "tier": "metrics"}, false},
		"controller has no": {families.Controller{}, map[string]string{"app": "keda"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.controller.HasLabels(tc.labels); got != tc.want {
				t.Errorf("HasLabels(%v) = %v, want %v", tc.labels, got, tc.want)
			}
		})
	}
}

func TestControllerHasLease(t *testing.T) {
	controller := families.Controller{Leases: []string{"external-attacher-leader-{driver}", "shard-*"}}
	for name, tc := range map[string]struct {
		lease, driver string
		want          bool
	}{
		"of the driver":          {"external-attacher-leader-ebs-csi-aws-com", "ebs.csi.aws.com", true},
		"driver sanitized":       {"external-attacher-leader-ebs-csi-aws-com", "ebs-csi-aws-com", true},
		"of another driver":      {"external-attacher-leader-ebs-csi-aws-com", "efs.csi.aws.com", false},
		"driver is not known":    {"external-attacher-leader-ebs-csi-aws-com", "", false},
		"pattern":                {"shard-7", "", true},
		"of another controller":  {"external-resizer-ebs-csi-aws-com", "ebs.csi.aws.com", false},
		"driver ends with a dot": {"external-attacher-leader-a-x", "a.", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := controller.HasLease(tc.lease, tc.driver); got != tc.want {
				t.Errorf("HasLease(%q, %q) = %v, want %v", tc.lease, tc.driver, got, tc.want)
			}
		})
	}
}

func TestControllerHasEventSource(t *testing.T) {
	controller := families.Controller{EventSources: []string{"service-controller", "{driver}_*",
		"csi-snapshotter {driver}"}}
	for name, tc := range map[string]struct {
		component, driver string
		want              bool
	}{
		"exact":             {"service-controller", "", true},
		"of the driver":     {"ebs.csi.aws.com_host_0123", "ebs.csi.aws.com", true},
		"of another driver": {"efs.csi.aws.com_host_0123", "ebs.csi.aws.com", false},
		"with a prefix":     {"csi-snapshotter ebs.csi.aws.com", "ebs.csi.aws.com", true},
		"driver not known":  {"ebs.csi.aws.com_host_0123", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := controller.HasEventSource(tc.component, tc.driver); got != tc.want {
				t.Errorf("HasEventSource(%q, %q) = %v, want %v", tc.component, tc.driver, got, tc.want)
			}
		})
	}
}

func TestControllerIsSwitchedOff(t *testing.T) {
	collector := families.Controller{Loops: []string{"garbage-collector-controller", "garbagecollector"},
		OffArgs: []string{"--enable-garbage-collector=false"}}
	for name, tc := range map[string]struct {
		controller families.Controller
		args       []string
		want       bool
	}{
		"no flag":                {collector, []string{"kube-controller-manager", "--v=4"}, false},
		"all on":                 {collector, []string{"--controllers=*,bootstrapsigner"}, false},
		"off":                    {collector, []string{"--controllers=*,-garbage-collector-controller"}, true},
		"off by the old name":    {collector, []string{"--controllers=*,-garbagecollector"}, true},
		"another one off":        {collector, []string{"--controllers=*,-namespace-controller"}, false},
		"not among those listed": {collector, []string{"--controllers=namespace-controller"}, true},
		"listed alone":           {collector, []string{"--controllers=garbagecollector"}, false},
		"the first item counts":  {collector, []string{"--controllers=garbagecollector,-garbagecollector"}, false},
		"two flags":              {collector, []string{"--controllers=*", "--controllers=-garbagecollector"}, true},
		"value as next argument": {collector, []string{"--controllers", "*,-garbagecollector"}, true},
		"flag without value":     {collector, []string{"--controllers"}, false},
		"own argument":           {collector, []string{"--controllers=*", "--enable-garbage-collector=false"}, true},
		"own argument only":      {families.Controller{OffArgs: []string{"--dry-run"}}, []string{"--dry-run"}, true},
		"own argument not given": {families.Controller{OffArgs: []string{"--dry-run"}}, []string{"--controllers=a"}, false},
		"no loop":                {families.Controller{}, []string{"--controllers=-garbagecollector"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.controller.IsSwitchedOff(tc.args); got != tc.want {
				t.Errorf("IsSwitchedOff(%q) = %v, want %v", tc.args, got, tc.want)
			}
		})
	}
}

func TestControllerIsRecognizable(t *testing.T) {
	for _, controller := range []families.Controller{
		{Images: []string{"a"}}, {Commands: []string{"a"}}, {Labels: map[string]string{"a": "b"}},
	} {
		if !controller.IsRecognizable() {
			t.Errorf("%+v is not recognizable", controller)
		}
	}
	if (families.Controller{Name: "a", Leases: []string{"a"}}).IsRecognizable() {
		t.Error("a controller of which the Lease alone is known is recognizable")
	}
}

func TestRunsWithoutElection(t *testing.T) {
	for args, want := range map[string][2]bool{ // of a controller that elects by a flag, of another
		"":                                     {true, false},
		"--v=5 --leader-election-namespace=ns": {true, false},
		"--leader-election":                    {false, false},
		"-leader-election=true":                {false, false},
		"--leader-election=false":              {true, true},
		"--leader-elect=0":                     {true, true},
		"--enable-leader-election=x":           {false, false},
		"--leader-election=false --leader-election": {false, false},
		"$(EXTRA_ARGS)": {false, false},
	} {
		for i, controller := range []families.Controller{{ElectsByFlag: true}, {}} {
			if got := controller.RunsWithoutElection(strings.Fields(args)); got != want[i] {
				t.Errorf("%+v with %q: %v, want %v", controller, args, got, want[i])
			}
		}
	}
}
