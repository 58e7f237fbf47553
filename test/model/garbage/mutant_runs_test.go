package garbage

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/exeunt-io/exeunt/test/model/explore"
	"github.com/exeunt-io/exeunt/test/model/mutant"
)

// mutantToJudge names the variable with the ID of the mutant that TestMutantIsJudged judges, and
// clustersToJudge that with the numbers of the clusters in which it makes a difference.
const (
	mutantToJudge   = "EXEUNT_GARBAGE_MUTANT"
	clustersToJudge = "EXEUNT_GARBAGE_CLUSTERS"
)

// maxMutantStates bounds the states of a cluster with a mutant.
const maxMutantStates = 6000

// TestMutants runs the mutants of the binary in the quick clusters: each in those in which it makes
// a difference, the small ones first. Each runs in a process of its own, because it may panic.
func TestMutants(t *testing.T) {
	if !*deep || *mutants == "none" || len(mutant.All()) == 0 || os.Getenv(mutantToJudge) != "" {
		return
	}
	differs := differences(t)
	chosen := regexp.MustCompile(*mutants)
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var running sync.WaitGroup
	var lock sync.Mutex
	var killed []string
	count := 0
	for _, m := range mutant.All() {
		if !chosen.MatchString(m.String()) {
			continue
		}
		count++
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			verdict, dies := judge(m.ID, differs[m.ID])
			lock.Lock()
			defer lock.Unlock()
			fmt.Printf("%d %s: %s\n", m.ID, m, verdict)
			if dies {
				killed = append(killed, m.Key())
			}
		})
	}
	running.Wait()
	totals.Mutants, totals.Killed = count, len(killed)
	if err := mutant.WriteKilled(*killedKeys, killed); err != nil {
		t.Error(err)
	}
}

// differences explores the quick clusters without a mutant, and returns for each mutant the numbers
// of those in which it would have another value, by ascending number of states.
func differences(t *testing.T) map[int][]string {
	t.Helper()
	quick := Quick()
	differs, sizes := make([]map[int]bool, len(quick)), make([]int, len(quick))
	var lock sync.Mutex
	for i, c := range quick {
		differs[i] = map[int]bool{}
		mutant.Record(func(id int, differ bool) {
			lock.Lock()
			defer lock.Unlock()
			differs[i][id] = differs[i][id] || differ
		})
		sizes[i] = exploreFor(t, c, explore.Limits{}).States
	}
	mutant.Record(nil)
	order := make([]int, len(quick))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return sizes[a] - sizes[b] })
	found := map[int][]string{}
	for _, i := range order {
		for id, differ := range differs[i] {
			if differ {
				found[id] = append(found[id], strconv.Itoa(i))
			}
		}
	}
	return found
}

// judge runs a mutant in a process of its own.
func judge(id int, numbers []string) (verdict string, dies bool) {
	if len(numbers) == 0 {
		return "makes no difference in any cluster", false
	}
	command := exec.Command(os.Args[0], "-test.run=^TestMutantIsJudged$", "-test.timeout=3m", "-test.v")
	command.Env = append(os.Environ(), mutantToJudge+"="+strconv.Itoa(id), clustersToJudge+"="+strings.Join(numbers, ","))
	output, err := command.CombinedOutput()
	for line := range strings.Lines(string(output)) {
		if text, found := strings.CutPrefix(line, "verdict: "); found {
			return strings.TrimSpace(text), strings.HasPrefix(text, "killed")
		}
		if strings.HasPrefix(line, "panic: test timed out") {
			return "no verdict in three minutes", false
		}
		if strings.HasPrefix(line, "panic: ") {
			return "killed: " + strings.TrimSpace(line), true
		}
	}
	return fmt.Sprintf("no verdict: %v", err), false
}

// TestMutantIsJudged judges one mutant. It is run by TestMutants.
func TestMutantIsJudged(t *testing.T) {
	id, err := strconv.Atoi(os.Getenv(mutantToJudge))
	if err != nil {
		return
	}
	mutant.Select(id)
	quick := Quick()
	for _, text := range strings.Split(os.Getenv(clustersToJudge), ",") {
		number, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		var result explore.Result
		synctest.Test(t, func(*testing.T) {
			result, err = Explore(quick[number], explore.Limits{Violations: 1, States: maxMutantStates})
		})
		switch {
		case errors.Is(err, ErrNotRepeated):
			continue
		case err != nil:
			lines := strings.Split(err.Error(), "\n")
			fmt.Printf("verdict: killed in %q: %s\n", quick[number].Name, lines[len(lines)-1])
			return
		case len(result.Violations) > 0:
			fmt.Printf(
				"verdict: killed in %q after %d states: %s\n", quick[number].Name, result.States, result.Violations[0].Rule,
			)
			return
		}
	}
	fmt.Println("verdict: SURVIVES")
}
