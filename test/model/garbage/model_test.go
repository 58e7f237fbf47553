package garbage

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/test/model/explore"
	"github.com/exeunt-io/exeunt/test/model/mutant"
)

var (
	deep         = flag.Bool("deep", false, "explore the large clusters too, and run all mutants of the binary")
	only         = flag.String("only", "", "explore only the clusters whose name matches the expression")
	mutants      = flag.String("mutants", "", "run only the mutants whose line matches the expression; \"none\" for none")
	killedKeys   = flag.String("killed", "", "the file to which the mutants are written that the model kills, a line each")
	exploredFile = flag.String("explored", "", "the file to which the last line is written, without the mutants")
)

// totals is what the last line of a deep run says.
var totals mutant.Summary

func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(400)
	klog.SetLogger(logr.Discard())
	code := m.Run()
	if *deep && os.Getenv(mutantToJudge) == "" {
		if err := totals.Finish("garbage", *exploredFile); err != nil {
			fmt.Fprintln(os.Stderr, "garbage:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// clusters returns the clusters that are to be explored.
func clusters() []*Config {
	all := Quick()
	if *deep {
		all = append(all, Deep()...)
	}
	chosen := regexp.MustCompile(*only)
	var found []*Config
	for _, c := range all {
		if chosen.MatchString(c.Name) {
			found = append(found, c)
		}
	}
	return found
}

func TestPromisesHold(t *testing.T) {
	for _, c := range clusters() {
		t.Run(c.Name, func(t *testing.T) {
			began := time.Now()
			result := exploreFor(t, c, explore.Limits{Violations: 1})
			fmt.Printf(
				"| %s%s | %d | %d | %d | %.1f |\n", c.Name, map[bool]string{false: " –"}[result.Complete], result.States,
				result.Depth, result.Resting, time.Since(began).Seconds(),
			)
			totals.Configurations++
			totals.States += result.States
			totals.Violations += len(result.Violations)
			for _, v := range result.Violations {
				t.Error(v)
			}
		})
	}
}

func TestClustersHaveNamesOfTheirOwn(t *testing.T) {
	names := map[string]bool{}
	for _, c := range append(Quick(), Deep()...) {
		if names[c.Name] {
			t.Errorf("two clusters have the name %q", c.Name)
		}
		names[c.Name] = true
	}
}

// exploreFor explores a cluster.
func exploreFor(t *testing.T, c *Config, limits explore.Limits) (result explore.Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if result, err = Explore(c, limits); err != nil {
			t.Fatal(err)
		}
	})
	return result
}
