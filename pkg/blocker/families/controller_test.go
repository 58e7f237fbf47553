package families_test

import (
	"testing"

	"github.com/exeunt-io/exeunt/pkg/blocker/families"
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
		"driver ends with a dot": {"external-attacher-leader-a-X", "a.", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := controller.HasLease(tc.lease, tc.driver); got != tc.want {
				t.Errorf("HasLease(%q, %q) = %v, want %v", tc.lease, tc.driver, got, tc.want)
			}
		})
	}
}
