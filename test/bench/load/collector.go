package load

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/bench/plan"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// collectorFlags returns the flags of a garbage collector, beside those for its connection.
func collectorFlags(turn plan.Turn) []string {
	flags := []string{"--leader-elect=false", "--secure-port=0"}
	if turn.Side != plan.Upstream {
		return flags
	}
	flags = append(flags, "--controllers=garbage-collector-controller", "--use-service-account-credentials=false")
	if !turn.Scenario.Defaults {
		flags = append(flags, "--kube-api-qps=5000", "--kube-api-burst=5000")
	}
	return flags
}

// startCollector starts the garbage collector of the side.
func (p *Programs) startCollector(ctx context.Context) error {
	user, find, program := Collector.Name(), p.cluster.config.Binaries.Path, "garbage-collector"
	if p.turn.Side == plan.Upstream {
		user, find, program = upstreamCollector.Name(), p.cluster.config.Binaries.UpstreamPath, "kube-controller-manager"
	}
	path, pathErr := find(program)
	kubeconfig, configErr := p.cluster.kubeconfig(user, p.LoopsAddress)
	serving, servingErr := p.serveProfiles(ctx, measure.Collector)
	if err := errors.Join(pathErr, configErr, servingErr); err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%d-%s", p.turn.Scenario.Name, p.turn.Round, p.turn.Side)
	process, err := sandbox.Start(ctx, sandbox.Program{
		Name: name, Path: path, Args: append(append(collectorFlags(p.turn), "--kubeconfig="+kubeconfig), serving...),
		LogFile: filepath.Join(p.cluster.dir, name+".log"),
	})
	if err != nil {
		return err
	}
	p.note(measure.Collector, process)
	return nil
}
