package serving

import (
	"runtime"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/component-base/logs"
)

// profiling says what may be learned of the running process beside its metrics.
type profiling struct {
	// Enabled serves profiles, and lets the verbosity of the log be changed;
	// Contention measures for a profile of what goroutines wait for.
	Enabled, Contention bool
}

func (p *profiling) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&p.Enabled, "profiling", p.Enabled, "serve profiles at /debug/pprof/, and the verbosity of the log at /debug/flags/v")
	flags.BoolVar(&p.Contention, "contention-profiling", p.Contention, "measure for the profile of what blocks, where --profiling is on")
}

func (p *profiling) install(paths *mux.PathRecorderMux) {
	if !p.Enabled {
		return
	}
	routes.Profiling{}.Install(paths)
	routes.DebugFlags{}.Install(paths, "v", routes.StringFlagPutHandler(logs.GlogSetter))
	if p.Contention {
		runtime.SetBlockProfileRate(1)
	}
}
