package printer_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
	"github.com/exeunt-io/exeunt/test/paste"
	"github.com/exeunt-io/exeunt/test/printertest"
)

func TestPastedStepsRunWholeCommands(t *testing.T) {
	commands := cluster.Commands{Context: "a context with a long name", Server: "https://control-plane.example.com:6443"}
	keep := commands.Kubectl("", "patch", "pv", "pvc-0aa6ba6a-c5c4-44c3-8a1a-3e6cf8c85a1e", "-p",
		`{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`)
	forget := commands.Kubectl("", "delete", "pv", "pvc-0aa6ba6a-c5c4-44c3-8a1a-3e6cf8c85a1e")
	for name, next := range map[string]string{
		"a command": cluster.Steps("look", commands.Kubectl("shop", "describe", "pvc", "data")),
		"a last resort": cluster.Steps("look", commands.Kubectl("", "get", "pv")) + "\n" +
			cluster.LastResort("the disk stays in storage unless you delete it", keep, forget),
		"a message":          cluster.Steps("mend what the driver's error says: the volume isn't \"ready\" (code 3); kubectl delete pv --all & echo `id` $(id) <x> | cat\\"),
		"words of the shell": cluster.LastResort("wait until the pod is gone, or do nothing while others use it for a time, then give it up if all is done in time, case by case, or read on and select others", keep),
		"a pipe": cluster.LastResort("what the finalizer protects is not known",
			commands.Kubectl("", "get", "namespace", "shop", "-o", "go-template={}")+" | "+
				commands.Kubectl("", "replace", "--raw=/x", "-f", "-")),
	} {
		t.Run(name, func(t *testing.T) { printertest.ExpectSafePaste(t, next) })
	}
}

// The steps of the situations in test/e2e/situations, as -args -record wrote them.
func TestRecordedStepsArePastedSafely(t *testing.T) {
	text, err := os.ReadFile("../../../test/e2e/situations/testdata/next.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded map[string][]string
	if err := json.Unmarshal(text, &recorded); err != nil || len(recorded) == 0 {
		t.Fatalf("%d situations, %v", len(recorded), err)
	}
	for situation, steps := range recorded {
		t.Run(situation, func(t *testing.T) {
			t.Parallel()
			for _, next := range steps {
				printertest.ExpectSafePaste(t, next)
			}
		})
	}
}

// What a family of finalizers, or a reason, says about force is in a sentence.
func TestTextsOfTablesArePastedSafely(t *testing.T) {
	command := cluster.Commands{}.Kubectl("", "get", "pv")
	var all []string
	for _, family := range families.All() {
		all = append(all, cluster.LastResort(family.Force, command))
	}
	for _, reason := range blocker.Reasons() {
		row := reason.Describe()
		for _, text := range []string{row.Meaning, row.Look, row.Force} {
			all = append(all, cluster.Steps("see: "+text, command))
			if paste.LosesSomething(text) {
				t.Errorf("%v has a command in its text that loses something: %s", reason, text)
			}
		}
	}
	printertest.ExpectSafePaste(t, strings.Join(all, "\n"))
}

func TestSecretIsNeverShownWithItsValues(t *testing.T) {
	commands := cluster.Commands{}
	for _, resource := range []string{"secrets", "secret"} {
		if got, want := commands.Show("shop", resource, "password", "--show-managed-fields"),
			"kubectl describe "+resource+" password -n shop"; got != want {
			t.Errorf("Show(%s) = %s, want %s", resource, got, want)
		}
	}
	if got := commands.Show("shop", "secrets.example.com",
		"password"); got != "kubectl get secrets.example.com password -o yaml -n shop" {
		t.Errorf("another kind is shown by %s", got)
	}
}
