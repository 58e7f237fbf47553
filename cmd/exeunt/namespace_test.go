package main

import (
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
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
