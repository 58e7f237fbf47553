package printer_test

import (
	"testing"

	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/printer/printertest"
)

func TestPastedStepsRunWholeCommands(t *testing.T) {
	commands := cluster.Commands{Context: "a context with a long name", Server: "https://control-plane.example.com:6443"}
	keep := commands.Kubectl("", "patch", "pv", "pvc-0aa6ba6a-c5c4-44c3-8a1a-3e6cf8c85a1e", "-p", `{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`)
	forget := commands.Kubectl("", "delete", "pv", "pvc-0aa6ba6a-c5c4-44c3-8a1a-3e6cf8c85a1e")
	for name, next := range map[string]string{
		"a command":          cluster.Steps("look", commands.Kubectl("shop", "describe", "pvc", "data")),
		"a last resort":      cluster.Steps("look", commands.Kubectl("", "get", "pv")) + "\n" + cluster.LastResort("the disk stays in storage unless you delete it", keep, forget),
		"a message":          cluster.Steps("mend what the driver's error says: the volume isn't \"ready\" (code 3); kubectl delete pv --all & echo `id` $(id) <x> | cat\\"),
		"words of the shell": cluster.LastResort("wait until the pod is gone, or do nothing while others use it for a time, then give it up if all is done in time, case by case, or read on and select others", keep),
		"a pipe":             cluster.LastResort("what the finalizer protects is not known", commands.Kubectl("", "get", "namespace", "shop", "-o", "go-template={}")+" | "+commands.Kubectl("", "replace", "--raw=/x", "-f", "-")),
	} {
		t.Run(name, func(t *testing.T) { printertest.ExpectSafePaste(t, next) })
	}
}
