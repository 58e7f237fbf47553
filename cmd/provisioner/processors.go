package main

import (
	"flag"

	"github.com/kubernetes-csi/csi-lib-utils/standardflags"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// automaxprocs is a flag that upstream's library registers with package flag.
const automaxprocs = "automaxprocs"

// addAutomaxprocs registers the flag that sets GOMAXPROCS to the CPU quota of the container,
// rounded down, as upstream does. The Go runtime rounds up, to at least 2.
func addAutomaxprocs(flags *pflag.FlagSet) {
	if flag.Lookup(automaxprocs) == nil {
		standardflags.AddAutomaxprocs(klog.Infof)
	}
	flags.AddGoFlag(flag.Lookup(automaxprocs))
}
