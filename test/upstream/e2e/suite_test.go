package e2e

import (
	"flag"
	"os"
	"testing"

	upstream "k8s.io/kubernetes/test/e2e"
	_ "k8s.io/kubernetes/test/e2e/apimachinery" // the specs
	_ "k8s.io/kubernetes/test/e2e/feature"      // the labels that specs may have
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"   // prints a namespace whose spec failed
	_ "k8s.io/kubernetes/test/e2e/framework/metrics/init" // its metrics
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"    // checks the nodes after a spec
)

func TestMain(m *testing.M) {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	framework.AfterReadingAllFlags(&framework.TestContext)
	os.Exit(m.Run())
}

// TestSpecs needs the flag --kubeconfig: upstream's suite creates objects in that cluster.
func TestSpecs(t *testing.T) { upstream.RunE2ETests(t) }
