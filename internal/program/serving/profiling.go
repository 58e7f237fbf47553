package serving

import (
	"runtime"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/component-base/logs"
)

// profiling configures the profiles of the running process.
type profiling struct {
	// Enabled serves profiles, and changes the verbosity of the log on request. Contention
	// records where goroutines block.
	Enabled, Contention bool
}

func (p *profiling) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&p.Enabled, "profiling", p.Enabled,
		"serve profiles at /debug/pprof/, and the verbosity of the log at /debug/flags/v")
	flags.BoolVar(&p.Contention, "contention-profiling", p.Contention,
		"record where goroutines block, for the block profile; needs --profiling")
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
