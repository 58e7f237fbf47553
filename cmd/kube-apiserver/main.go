// Kube-apiserver is upstream's, with graceful deletion of custom resources (KEP-5673): a DELETE with a grace period
// gives an object that has finalizers a deadline, which its controller reads. The gate CustomResourceGracefulDeletion,
// which is on by default, turns it off. Everything else, flags included, is upstream's.
package main

import (
	"os"
	_ "time/tzdata" // for the time zones of CronJobs

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // the log format json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of client-go
	_ "k8s.io/component-base/metrics/prometheus/version"  // the metric of the version

	"github.com/exeunt-io/exeunt/cmd/kube-apiserver/internal/compose"
)

func main() {
	os.Exit(cli.Run(compose.NewCommand()))
}
