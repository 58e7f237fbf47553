package main

import (
	"flag"

	"github.com/kubernetes-csi/csi-lib-utils/standardflags"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// automaxprocs is the flag that upstream's library keeps among those of package flag.
const automaxprocs = "automaxprocs"

// addAutomaxprocs registers the flag that has the number of threads follow the CPU
// quota of the container, rounded down, as upstream does. Without it, the Go runtime
// follows the quota too, but rounds up, and keeps two at least.
func addAutomaxprocs(flags *pflag.FlagSet) {
	if flag.Lookup(automaxprocs) == nil {
		standardflags.AddAutomaxprocs(klog.Infof)
	}
	flags.AddGoFlag(flag.Lookup(automaxprocs))
}
