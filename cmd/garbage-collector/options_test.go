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

// parsed returns the options of the command line, and the error of its check.
func parsed(t *testing.T, args ...string) (*options, error) {
	t.Helper()
	runner, err := newOptions()
	if err != nil {
		t.Fatal(err)
	}
	o := runner.(*options)
	flags := pflag.NewFlagSet("garbage-collector", pflag.ContinueOnError)
	o.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o, o.check()
}

func TestWrongFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--concurrent-gc-syncs=0":              "--concurrent-gc-syncs must be at least 1",
		"--unreadable-kind-timeout=0s":         "--unreadable-kind-timeout must be longer than 0",
		"--unreadable-kind-orphan-timeout=-1s": "--unreadable-kind-orphan-timeout must not be negative",
		"--ignored-resources=.group":           `--ignored-resources has the entry ".group"`,
		"--leader-elect-resource-name=":        "--leader-elect-resource-name and --leader-elect-resource-namespace must not be empty",
		"--leader-elect-resource-lock=events":  "--leader-elect-resource-lock must be leases",
	} {
		if _, err := parsed(t, args); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestDeploymentUsesValidFlags(t *testing.T) {
	text, err := fs.ReadFile(deploy.GarbageCollector, "garbage-collector/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	if err := yaml.UnmarshalStrict(text, &deployment); err != nil {
		t.Fatal(err)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	o, err := parsed(t, container.Args...)
	if err != nil {
		t.Fatal(err)
	}
	if *deployment.Spec.Replicas < 2 || !o.leader.LeaderElect || container.Ports[0].ContainerPort != 10271 {
		t.Errorf("%d replicas, elected: %v, port %d", *deployment.Spec.Replicas, o.leader.LeaderElect,
			container.Ports[0].ContainerPort)
	}
}
