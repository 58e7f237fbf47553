package main

import (
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

func TestCommandsOfWholeClusterRefuseNamespace(t *testing.T) {
	for _, name := range []string{"audit", "status", "rollback"} {
		command := newCommand("exeunt", genericiooptions.NewTestIOStreamsDiscard())
		command.SetArgs([]string{name, "--namespace", "shop"})
		if err := command.Execute(); err == nil || !strings.Contains(err.Error(), "--namespace") {
			t.Errorf("%s --namespace shop: %v, want that there is no such flag", name, err)
		}
	}
}

func TestCommandsHaveTheFlagsOfTheConnection(t *testing.T) {
	flags := genericclioptions.NewConfigFlags(true)
	*flags.KubeConfig, *flags.Context, *flags.ClusterName, *flags.APIServer = "k", "c", "d", "e"
	if got, want := commandsOf(flags),
		(cluster.Commands{Kubeconfig: "k", Context: "c", Cluster: "d", Server: "e"}); got != want {
		t.Errorf("commands have %+v, want %+v", got, want)
	}
}
