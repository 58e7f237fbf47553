package main

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/deploy"
)

func TestDeploymentUsesValidFlags(t *testing.T) {
	text, err := fs.ReadFile(deploy.Manifests, "pv-controller/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	if err := yaml.UnmarshalStrict(text, &deployment); err != nil {
		t.Fatal(err)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	work, err := newOptions()
	if err != nil {
		t.Fatal(err)
	}
	o := work.(*options)
	flags := pflag.NewFlagSet("pv-controller", pflag.ContinueOnError)
	o.AddFlags(flags)
	if err := flags.Parse(container.Args); err != nil {
		t.Fatal(err)
	}
	if err := o.check(); err != nil {
		t.Error(err)
	}
	if port := flags.Lookup("secure-port").Value.String(); !strings.HasPrefix(port, "1027") ||
		container.Ports[0].ContainerPort != 10270 {
		t.Errorf("the program serves on port %s, the probes use port %d", port, container.Ports[0].ContainerPort)
	}
	if *deployment.Spec.Replicas < 2 || !o.leader.LeaderElect {
		t.Errorf("%d replicas, elected: %v; want a leader and a standby", *deployment.Spec.Replicas, o.leader.LeaderElect)
	}
}
