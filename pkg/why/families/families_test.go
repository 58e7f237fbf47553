package families_test

import (
	"testing"

	"github.com/exeunt-io/exeunt/pkg/why/families"
)

func TestControllersHaveAlternatives(t *testing.T) {
	family := families.Family{
		Controller:   families.Controller{Name: "kube-controller-manager"},
		Alternatives: []families.Controller{{Name: "pv-controller"}},
	}
	var names []string
	for _, controller := range family.Controllers() {
		names = append(names, controller.Name)
	}
	if len(names) != 2 || names[0] != "kube-controller-manager" || names[1] != "pv-controller" {
		t.Errorf("Controllers() = %v, want kube-controller-manager and pv-controller", names)
	}
}
