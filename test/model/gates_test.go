package model

import (
	"slices"
	"testing"

	"github.com/exeunt-io/exeunt/test/model/explore"
	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/programs"
)

// TestRulesKnowTheGates: a provisioner that ignores its gate ProvisioningJournal breaks a rule
// that only this gate has.
func TestRulesKnowTheGates(t *testing.T) {
	config := scene("journal ignored", nil, []creation{newClass(remove), claimOf("data", class, namesDriver)})
	config.Programs[1].Name = "provisioner without journal"
	config.Programs[1].Build = func(env *process.Env) (*process.Program, error) {
		env.Journaled = false
		return programs.Provisioner(env)
	}
	var broken []string
	exploreAll(t, explore.Limits{}, []Config{config}, func(r Result) {
		for _, v := range r.Violations {
			broken = append(broken, v.Rule)
		}
	})
	if !slices.Contains(broken, "CreatedWithoutEntry") {
		t.Errorf("broken rules are %v, want CreatedWithoutEntry among them", broken)
	}
}
