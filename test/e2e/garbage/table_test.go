package garbage

import (
	"flag"
	"os"
	"testing"
)

// scenario is one case of garbage collection, in a namespace of its own.
type scenario struct {
	// name is the outcome with garbage-collector.
	name string
	// about is the issue, or the section of the design document, that the scenario is from.
	about string
	// run prepares the objects, deletes some, and fails unless the outcome is that of the name.
	// If upstream's controller differs, run is the part that both share.
	run func(*world)
	// stock is the difference of upstream's controller; nil if it has the same outcome.
	stock *difference
	// oneLife is why the scenario cannot run while the collector is killed.
	oneLife string
}

// difference is another outcome with upstream's controller.
type difference struct {
	// ours and stock fail unless the outcome is that of the side.
	ours, stock func(*world)
	// does is the outcome with upstream's controller, why the reason.
	does, why string
}

// theme has the scenarios of one file.
type theme struct {
	name      string
	scenarios []scenario
}

// common are the scenarios that share one control plane.
var common = []theme{
	{"Policies", policies},
	{"Policy changed half-way", changes},
	{"Several and absent owners", owners},
	{"Owner references", references},
	{"Cycles", cycles},
	{"Kinds", kinds()},
}

// late are the scenarios that share one control plane behind a proxy, which holds back watches
// and requests.
var late = []theme{
	{"Late watches", watches},
	{"Held requests", requests},
	{"Definitions", removals},
}

func (s scenario) runIn(w *world) {
	s.run(w)
	switch {
	case s.stock == nil:
	case w.side == stock:
		s.stock.stock(w)
	default:
		s.stock.ours(w)
	}
}

// runTogether runs scenarios in parallel with one collector.
func runTogether(t *testing.T, which side, withProxy bool, themes []theme) {
	runIn(t, start(t, which, withProxy), themes)
}

func runIn(t *testing.T, r *rig, themes []theme) {
	t.Run("group", func(t *testing.T) {
		each(themes, func(name string, s scenario) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s.runIn(r.world(t))
			})
		})
	})
}

// each calls run for each scenario with its full name.
func each(themes []theme, run func(name string, s scenario)) {
	for _, theme := range themes {
		for _, scenario := range theme.scenarios {
			run(theme.name+"/"+scenario.name, scenario)
		}
	}
}

func TestScenarios(t *testing.T) {
	t.Parallel()
	runTogether(t, ours, false, common)
}

// TestStockScenarios runs the same scenarios with upstream's controller.
func TestStockScenarios(t *testing.T) {
	t.Parallel()
	runTogether(t, stock, false, common)
}

// TestPromises holds back watches: dependents that were committed before the deletion of their
// owner are not seen.
func TestPromises(t *testing.T) {
	t.Parallel()
	runTogether(t, ours, true, late)
}

// TestStockPromises shows that upstream's controller breaks the promises.
func TestStockPromises(t *testing.T) {
	t.Parallel()
	runTogether(t, stock, true, late)
}

func TestNewKinds(t *testing.T) {
	t.Parallel()
	runNewKinds(t, ours)
}

func TestStockNewKinds(t *testing.T) {
	t.Parallel()
	runNewKinds(t, stock)
}

func runNewKinds(t *testing.T, which side) {
	r := start(t, which, true)
	r.gate.hold("customresourcedefinitions")
	runIn(t, r, []theme{{"New kinds", newKinds}})
}

// planes bounds the number of control planes that run at once.
var planes = make(chan struct{}, 3)

// TestMain lets scenarios that share a control plane wait in parallel: they wait most of the time.
func TestMain(m *testing.M) {
	flag.Parse()
	parallel := false
	flag.Visit(func(f *flag.Flag) { parallel = parallel || f.Name == "test.parallel" })
	if !parallel {
		if err := flag.Set("test.parallel", "40"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
