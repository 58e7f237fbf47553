package load

import (
	"context"

	"github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/bench/plan"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// startCollector starts the garbage collector of the side.
func (p *Programs) startCollector(ctx context.Context) error {
	user, start := sandbox.GarbageCollectorAccount.Name(), p.cluster.Plane.StartGarbageCollector
	if p.turn.Side == plan.Upstream {
		user, start = sandbox.UpstreamCollectorAccount.Name(), p.cluster.Plane.StartUpstreamCollector
	}
	controller, err := p.controller(ctx, measure.Collector, user, p.LoopsAddress)
	if err != nil {
		return err
	}
	controller.Args = append([]string{"--leader-elect=false", "--secure-port=0"}, controller.Args...)
	process, err := start(ctx, controller)
	if err != nil {
		return err
	}
	p.note(measure.Collector, process)
	return nil
}
