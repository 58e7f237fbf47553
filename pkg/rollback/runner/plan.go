package runner

import (
	"fmt"
	"maps"
	"slices"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/rollback"
)

// Step is one numbered step of the plan.
type Step struct {
	Number int                `json:"number"`
	State  rollback.StepState `json:"state"`
	Title  string             `json:"title"`
	// By is "exeunt" for what --confirm carries out, "you" for what the administrator does.
	By string `json:"by"`
	// Text explains the step. Commands are for the administrator, who changes workloads.
	Text     []string `json:"text"`
	Commands []string `json:"commands"`
	Items    []Item   `json:"items"`
}

// Plan is what is left to do.
type Plan struct {
	Steps []Step `json:"steps"`
	// Incomplete names what could not be read, and which right would allow to read it.
	Incomplete []string `json:"incomplete"`
	// Unmatched names values of flags that match nothing.
	Unmatched []string `json:"unmatched"`

	outcome rollback.Outcome
}

// Outcome returns the result of the plan.
func (p *Plan) Outcome() rollback.Outcome { return p.outcome }

// newPlan returns the plan for what was seen.
func newPlan(s *observation) Plan {
	if s == nil {
		return Plan{}
	}
	plan := Plan{Incomplete: append([]string{}, s.reader.Incomplete()...), Unmatched: append([]string{}, s.unmatched.sentences...)}
	plan.Steps = s.steps()
	var states []rollback.StepState
	var decisions []rollback.Decision
	for i := range plan.Steps {
		step := &plan.Steps[i]
		step.fillLists()
		states = append(states, step.State)
		for _, item := range step.Items {
			decisions = append(decisions, item.decision)
		}
	}
	complete := len(plan.Incomplete) == 0 && !s.unmatched.wrong
	plan.outcome = rollback.OutcomeOf(states, decisions, complete)
	if !s.options.DeadlinesOnly && !s.options.NodesOnly && s.contradicted() {
		plan.outcome = rollback.DecisionNeeded
	}
	return plan
}

// steps returns the numbered steps.
func (s *observation) steps() []Step {
	if s.options.NodesOnly {
		return []Step{s.stepNodes()}
	}
	last := s.stepWindows()
	last.Number = 9
	if s.options.DeadlinesOnly {
		return []Step{last}
	}
	deletions := s.stepPending()
	entries := s.stepEntries()
	early := deletions.State != rollback.Done
	steps := []Step{
		s.stepPolicy(),
		deletions,
		entries,
		s.stepProvisioners(early || entries.State != rollback.Done),
		s.stepLoops(early),
		{Title: "Remove annotations and finalizers of Exeunt", By: "exeunt", State: s.own.state(), Items: s.own.items},
		s.stepShared(),
		{Title: "Save open journal entries, remove Leases", By: "exeunt", State: s.leases.state(), Items: s.leases.items},
		last,
	}
	for i := range steps {
		steps[i].Number = i + 1
	}
	return steps
}

// fillLists replaces nil by empty lists, for JSON.
func (s *Step) fillLists() {
	s.Text, s.Commands, s.Items = append([]string{}, s.Text...), append([]string{}, s.Commands...),
		append([]Item{}, s.Items...)
}

// contradicted reports whether a program was seen that has ended, as the administrator says.
func (s *observation) contradicted() bool {
	if s.pvController().Contradicted() {
		return true
	}
	for _, driver := range slices.Concat(s.options.Stopped, s.options.Unserved) {
		if driver != PVController && slices.ContainsFunc(s.states(driver), rollback.ProgramState.Contradicted) {
			return true
		}
	}
	return false
}

// stepPolicy removes the admission policy, which is that of all drivers.
func (s *observation) stepPolicy() Step {
	step := Step{Title: "Remove the admission policy", By: "exeunt", State: s.policy.state(), Items: s.policy.items}
	if len(s.policy.items) > 0 {
		step.Text = append(step.Text,
			"It serves all drivers: do not confirm while the provisioner of Exeunt is to stay for one of them.",
			"Take it out of where it is installed from first (chart: admissionPolicy.enabled=false), or the next update brings it back.")
	}
	return step
}

// stepPending are the deletions that only the provisioner of Exeunt finishes.
func (s *observation) stepPending() Step {
	step := Step{Title: "Finish deletions that only Exeunt finishes", By: "you", State: s.pending.state(),
		Items: s.pending.items}
	for _, item := range s.pending.items {
		switch item.decision.Reason {
		case rollback.DiskWouldLeak:
			step.Text = append(step.Text,
				fmt.Sprintf("%s: start the provisioner of Exeunt again; or keep the disk by policy Retain; or give the disk up by --abandon-disk %s.", item.Object, item.Object.Name))
		case rollback.ServerNotSeen:
			step.Text = append(step.Text,
				fmt.Sprintf("%s: if the provisioner of Exeunt runs, delete the claim, and the disk is deleted. If it has ended, say so by --stopped DRIVER.", item.Object))
		default:
			step.Text = append(step.Text, fmt.Sprintf("%s: delete its claim, or keep the disk by policy Retain.", item.Object))
		}
	}
	return step
}

// stepEntries are the entries of the journal that the provisioner of Exeunt works on.
func (s *observation) stepEntries() Step {
	step := Step{Title: "Let the provisioner finish its journal", By: "you"}
	if !s.programs.leasesSeen {
		step.State = rollback.Blocked
	}
	for _, driver := range s.programs.drivers() {
		active, unresolved := s.programs.openEntries(driver, journal.KindActive),
			s.programs.openEntries(driver, journal.KindUnresolved)
		server := s.server(driver)
		if active > 0 && (!server.Ended() || server == rollback.ServerNone && !s.options.named(driver)) {
			step.State = rollback.Blocked
			step.Text = append(step.Text, fmt.Sprintf("%s: open entries: %d. %s", driver, active, entriesAdvice(server)))
		}
		if unresolved > 0 && !server.Ended() {
			step.Text = append(step.Text,
				fmt.Sprintf("%s: unresolved entries: %d. End them by exeunt journal drop, or by finish, which deletes a volume with its data if its claim is gone and its class says Delete; or let step 8 save them to a file.", driver, unresolved))
		}
	}
	return step
}

func entriesAdvice(server rollback.Server) string {
	switch server {
	case rollback.ServerExeunt:
		return "The provisioner ends them; exeunt journal list shows them, and its log why one stays."
	case rollback.ServerNone:
		return "The provisioner of Exeunt ended before it could finish them: start it once more; or start csi-provisioner, or name the driver by --stopped, and the entries are saved to a file."
	default:
		return "Neither Lease nor pod shows whether the provisioner of Exeunt runs. If it has ended for good, say so by --stopped DRIVER."
	}
}

// stepShared are the finalizers that upstream's programs remove as well.
func (s *observation) stepShared() Step {
	step := Step{Title: "Leave finalizers that upstream removes, too", By: "exeunt", State: s.shared.state(),
		Items: s.shared.items}
	for _, name := range slices.Sorted(maps.Keys(s.upstreams)) {
		step.Text = append(step.Text, fmt.Sprintf("%s on %s: %s.", name, terminal.Count(s.upstreams[name], "volume"),
			removerOf(name)))
	}
	return step
}
