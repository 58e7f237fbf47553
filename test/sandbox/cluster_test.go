package sandbox

import (
	"context"
	"slices"
	"strings"
	"testing"
)

func TestDeadProgramIsReportedOnce(t *testing.T) {
	for name, tc := range map[string]struct{ script, want string }{
		"with an error": {"echo the reason; exit 3", "the reason"},
		"without one":   {"exit 0", "the process ended by itself"},
	} {
		t.Run(name, func(t *testing.T) {
			reports := make(chan error, 2)
			cluster := &Cluster{config: ClusterConfig{Died: func(err error) { reports <- err }}}
			runIn(t, cluster, tc.script)
			if err := <-reports; !strings.Contains(err.Error(), tc.want) {
				t.Errorf("reported: %v, want %q", err, tc.want)
			}
			if err := cluster.Ended(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Ended: %v, want %q", err, tc.want)
			}
			if err := cluster.Stop(patient(t)); err != nil {
				t.Errorf("Stop reports it again: %v", err)
			}
			if len(reports) != 0 {
				t.Errorf("reported again: %v", <-reports)
			}
		})
	}
}

func TestDeadProgramThatNobodyHeardOfFailsStop(t *testing.T) {
	cluster := &Cluster{}
	<-runIn(t, cluster, "echo the reason; exit 3").Done()
	if err := cluster.Stop(patient(t)); err == nil || !strings.Contains(err.Error(), "the reason") {
		t.Errorf("Stop: %v", err)
	}
}

func TestProgramsAreStoppedInReverseOrder(t *testing.T) {
	cluster := &Cluster{}
	var ended []string
	for _, name := range []string{"first", "second", "third"} {
		runIn(t, cluster, "exec sleep 60")
		added := cluster.programs[len(cluster.programs)-1]
		added.stop = func(ctx context.Context) error { ended = append(ended, name); return added.process.Stop(ctx) }
	}
	second := cluster.programs[1].process
	if err := cluster.End(patient(t), second); err != nil {
		t.Error(err)
	}
	checkEnded(t, second)
	if err := cluster.Stop(patient(t)); err != nil {
		t.Error(err)
	}
	if want := []string{"second", "third", "first"}; !slices.Equal(ended, want) {
		t.Errorf("ended %v, want %v", ended, want)
	}
}

func TestKilledProgramIsNotReported(t *testing.T) {
	cluster := &Cluster{config: ClusterConfig{Died: func(err error) { t.Errorf("reported: %v", err) }}}
	first, last := runIn(t, cluster, "exec sleep 60"), runIn(t, cluster, "exec sleep 60")
	if got := cluster.Processes(); !slices.Equal(got, []*Process{first, last}) {
		t.Errorf("processes %v", got)
	}
	if err := cluster.Kill(last); err != nil {
		t.Error(err)
	}
	checkEnded(t, last)
	if got := cluster.Processes(); !slices.Equal(got, []*Process{first}) {
		t.Errorf("processes %v after the end of one", got)
	}
	if err := cluster.Ended(); err != nil {
		t.Errorf("Ended: %v", err)
	}
	if err := cluster.Stop(patient(t)); err != nil {
		t.Error(err)
	}
	checkEnded(t, first)
}

// runIn starts a process of the cluster that runs a script.
func runIn(t *testing.T, cluster *Cluster, script string) *Process {
	t.Helper()
	program := shell(t, script)
	program.ReadyLine = ""
	process, err := cluster.Run(patient(t), program)
	if err != nil {
		t.Fatal(err)
	}
	return process
}
