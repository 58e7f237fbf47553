package model

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/test/model/mutant"
)

// isChosen reports whether the flag "mutants" names the mutant.
func isChosen(m mutant.Mutant) bool {
	return *mutants == "" || *mutants == m.Name || *mutants == "named" && m.Name != "" || *mutants == fmt.Sprint(m.ID)
}

// chosen returns the mutants that run, in shard of shards.
func chosen(shards, shard int) []mutant.Mutant {
	var all []mutant.Mutant
	for i, m := range mutant.All() {
		if i%shards == shard && isChosen(m) {
			all = append(all, m)
		}
	}
	return all
}

// TestMutants runs the mutants in a binary of "make mutants".
func TestMutants(t *testing.T) {
	if !*deep || *mutants == "none" || len(mutant.All()) == 0 {
		return
	}
	given := &verdicts{t: t, counts: map[string]int{}}
	shards := min(runtime.GOMAXPROCS(0), len(chosen(1, 0)))
	var running sync.WaitGroup
	for shard := range shards {
		running.Go(func() { given.judge(chosen(shards, shard)) })
	}
	running.Wait()
	totals.Mutants += len(chosen(1, 0))
	totals.Killed += len(given.killed)
	fmt.Printf("mutants: %d killed by the model, %d survive, %d make no difference in any world\n",
		len(given.killed), given.counts[survives], given.counts[unreached])
	if err := mutant.WriteKilled(*killedKeys, given.killed); err != nil {
		t.Error(err)
	}
}

// Verdicts on mutants. One that is unreached makes no difference in any world.
const (
	killed    = "killed"
	survives  = "SURVIVES"
	unreached = "unreached"
)

// verdicts are the verdicts on all mutants.
type verdicts struct {
	t      *testing.T
	lock   sync.Mutex
	counts map[string]int
	// killed are the keys of the killed mutants.
	killed []string
}

// judge has processes judge the mutants. A mutant may panic anywhere, which ends its process: the next
// process goes on behind it.
func (v *verdicts) judge(all []mutant.Mutant) {
	for len(all) > 0 {
		done, err := v.judgeInProcess(all)
		if all = all[done:]; err == nil || len(all) == 0 {
			continue
		}
		if done == 0 && strings.Contains(err.Error(), "no mutant was begun") {
			v.t.Error(err)
			return
		}
		v.record(killed, all[0], err.Error())
		all = all[1:]
	}
}

// judgeInProcess runs TestMutantsOfList, and returns how many verdicts it has given.
func (v *verdicts) judgeInProcess(all []mutant.Mutant) (done int, err error) {
	ids := make([]string, 0, len(all))
	for _, m := range all {
		ids = append(ids, fmt.Sprint(m.ID))
	}
	command := exec.Command(
		os.Args[0], "-test.run=^TestMutantsOfList$", "-test.timeout=24h", "-deep", "-mutants="+*mutants,
	)
	command.Env = append(os.Environ(), listOfMutants+"="+strings.Join(ids, " "))
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return 0, fmt.Errorf("no mutant was begun: %w", err)
	}
	begun, reason := false, ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		verdict, text, _ := strings.Cut(lines.Text(), "\t")
		switch verdict {
		case killed, survives, unreached:
			v.record(verdict, all[done], text)
			done++
		case "begun":
			begun = true
		default:
			if reason == "" && strings.HasPrefix(lines.Text(), "panic: ") {
				reason = lines.Text()
			}
		}
	}
	switch err := command.Wait(); {
	case err == nil && done == len(all):
		return done, nil
	case err == nil:
		return done, errors.New("the process ends early")
	case !begun:
		return done, fmt.Errorf("no mutant was begun: %w, %s", err, reason)
	}
	return done, fmt.Errorf("the process ends: %s", reason)
}

func (v *verdicts) record(verdict string, m mutant.Mutant, why string) {
	v.lock.Lock()
	defer v.lock.Unlock()
	if v.counts[verdict]++; verdict == killed {
		v.killed = append(v.killed, m.Key())
	}
	fmt.Printf("%s: %d %s: %s\n", verdict, m.ID, m, why)
}

// listOfMutants names the variable with the IDs of the mutants that TestMutantsOfList judges.
const listOfMutants = "EXEUNT_MUTANTS_TO_JUDGE"

// TestMutantsOfList judges mutants one after the other. It is run by TestMutants.
func TestMutantsOfList(t *testing.T) {
	ids := strings.Fields(os.Getenv(listOfMutants))
	if len(ids) == 0 {
		return
	}
	worlds := worldsForMutants(t)
	fmt.Println("begun\t")
	for _, m := range mutant.All() {
		if !slices.Contains(ids, fmt.Sprint(m.ID)) {
			continue
		}
		began := realTime()
		by, reached := judge(t, m, worlds)
		fmt.Printf(
			"%s\t%s (%v)\n", verdictOf(by, reached), strings.ReplaceAll(by, "\n", " "),
			realTime().Sub(began).Round(time.Millisecond),
		)
	}
}

func verdictOf(by string, reached bool) string {
	switch {
	case by != "":
		return killed
	case reached:
		return survives
	}
	return unreached
}
