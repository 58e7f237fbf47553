package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/exeunt-io/exeunt/pkg/termination"
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
	*flags.AuthInfoName, *flags.Impersonate, *flags.ImpersonateUID = "u", "i", "1"
	*flags.ImpersonateGroup, *flags.ImpersonateUserExtra = []string{"g", "h"}, []string{"a=b"}
	want := cluster.Commands{Kubeconfig: "k", Context: "c", Cluster: "d", Server: "e", User: "u", As: "i", AsUID: "1",
		AsGroups: []string{"g", "h"}, AsExtra: []string{"a=b"}, Program: "kubectl exeunt"}
	if diff := cmp.Diff(want, commandsOf(flags, "kubectl exeunt")); diff != "" {
		t.Error(diff)
	}
}

// Whoever has installed the plugin has no program of the name exeunt.
func TestPluginNamesItselfInCommands(t *testing.T) {
	cluster := newDoomed(t, "orders")
	cluster.objects["nodes"] = []metav1.Object{&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n",
		Finalizers: []string{termination.Finalizer}}}}
	for name, want := range map[string]string{"teardown": "teardown --confirm=", "status": "rollback nodes --confirm"} {
		out, _ := execute(t.Context(), pluginName, name, "--kubeconfig", writeKubeconfig(t, cluster.URL))
		if !strings.Contains(out, "  kubectl exeunt "+want) {
			t.Errorf("%s prints no command of the plugin, %s:\n%s", name, want, out)
		}
	}
}
