package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/exeunt-io/exeunt/test/model/mutant"
)

// runner runs the test binaries of packages.
type runner struct {
	overlay, binaries string
	workers           int
	// match is a part of the text of each mutant that is run.
	match string
	// byModel has the keys of the mutants that the model kills.
	byModel map[string]bool
	// counts are the verdicts so far.
	counts map[verdict]int
}

// enter changes into the folder of a module.
func (r *runner) enter(module string) (err error) {
	if r.overlay, err = filepath.Abs(r.overlay); err != nil {
		return fmt.Errorf("find the overlay: %w", err)
	}
	if r.binaries, err = filepath.Abs(r.binaries); err != nil {
		return fmt.Errorf("find the folder of test binaries: %w", err)
	}
	return os.Chdir(module)
}

// total returns the number of judged mutants.
func (r *runner) total() (total int) {
	for _, count := range r.counts {
		total += count
	}
	return total
}

// verdict is what the tests of its package say of a mutant.
type verdict string

const (
	killed   verdict = "killed"
	survived verdict = "survived"
	// unreached: no test evaluates the place of the mutant.
	unreached verdict = "not reached"
	// equivalent: no state exists in which the mutant differs.
	equivalent verdict = "equivalent"
	// byModel: the model kills the mutant, so the tests were not run.
	byModel verdict = "killed by the model"
)

// readKilled reads the mutants that the model kills. A file that does not exist has none.
func (r *runner) readKilled(file string) error {
	r.byModel = map[string]bool{}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read the mutants that the model kills: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		r.byModel[strings.TrimSpace(line)] = true
	}
	return nil
}

// run tests the packages, and returns the number of mutants that live without a reason.
func (r *runner) run(folders []string) (survivors int, err error) {
	r.counts = map[verdict]int{}
	for _, folder := range folders {
		found, err := r.runPackage(folder)
		if err != nil {
			return 0, fmt.Errorf("test the mutants of %s: %w", folder, err)
		}
		for verdict, count := range found {
			r.counts[verdict] += count
		}
		fmt.Printf("%s: %d killed by the model, %d by unit tests, %d survived, %d not reached, %d equivalent\n",
			folder, found[byModel], found[killed], found[survived], found[unreached], found[equivalent])
	}
	survivors = r.counts[survived] + r.counts[unreached]
	fmt.Printf("unittests: %d of %d mutants killed, %d of them by the model, %d equivalent, %d survived\n",
		r.counts[byModel]+r.counts[killed], r.total(), r.counts[byModel], r.counts[equivalent], survivors)
	return survivors, nil
}

func (r *runner) runPackage(folder string) (map[verdict]int, error) {
	binary, err := filepath.Abs(filepath.Join(r.binaries, strings.ReplaceAll(folder, "/", "-")+".test"))
	if err != nil {
		return nil, fmt.Errorf("name the test binary: %w", err)
	}
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", r.overlay, "-o", binary, "./"+folder)
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile the tests: %w: %s", err, output)
	}
	began := time.Now()
	reached, err := r.reached(folder, binary)
	if err != nil {
		return nil, err
	}
	limit := max(minLimit, slowdown*time.Since(began))
	return r.verdicts(mutant.All(), folder, binary, reached, limit), nil
}

// Tests that take longer with a mutant than slowdown times as long as without one never end; minLimit is the
// least limit, baseLimit that of the tests without a mutant. A busy machine must not kill a mutant.
const (
	slowdown            = 10
	minLimit, baseLimit = time.Minute, 10 * time.Minute
)

// reached runs the tests without a mutant, and returns the IDs whose places they evaluate.
func (r *runner) reached(folder, binary string) (map[int]bool, error) {
	list := binary + ".reached"
	if err := os.Remove(list); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the old list: %w", err)
	}
	if output, err := test(folder, binary, 0, baseLimit, "EXEUNT_MUTANTS_REACHED="+list); err != nil {
		return nil, fmt.Errorf("the tests fail without a mutant: %w: %s", err, output)
	}
	text, err := os.ReadFile(list)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read which mutants were reached: %w", err)
	}
	reached := map[int]bool{}
	for _, line := range strings.Fields(string(text)) {
		id, err := strconv.Atoi(line)
		if err != nil {
			return nil, fmt.Errorf("read the ID of a mutant: %w", err)
		}
		reached[id] = true
	}
	return reached, nil
}

// test runs the test binary in the folder of its package.
func test(folder, binary string, id int, limit time.Duration, more ...string) ([]byte, error) {
	command := exec.Command(binary, "-test.failfast", "-test.timeout="+limit.String())
	command.Dir = folder
	command.Env = append(append(os.Environ(), fmt.Sprintf("EXEUNT_MUTANT=%d", id)), more...)
	return command.CombinedOutput()
}

// verdicts prints and counts the verdicts on the mutants of the package.
func (r *runner) verdicts(all []mutant.Mutant, folder, binary string, reached map[int]bool,
	limit time.Duration) map[verdict]int {
	found := make([]verdict, len(all))
	slots := make(chan struct{}, r.workers)
	var running sync.WaitGroup
	for i, m := range all {
		if filepath.Dir(m.File) != folder || !strings.Contains(m.String(), r.match) {
			continue
		}
		if r.byModel[m.Key()] {
			found[i] = byModel
			continue
		}
		slots <- struct{}{}
		running.Go(func() {
			found[i] = judge(folder, binary, m, reached, limit)
			fmt.Printf("%s: %d %s\n", found[i], m.ID, m)
			<-slots
		})
	}
	running.Wait()
	counts := map[verdict]int{}
	for _, verdict := range found {
		if verdict != "" { // a mutant of another package
			counts[verdict]++
		}
	}
	return counts
}

func judge(folder, binary string, m mutant.Mutant, reached map[int]bool, limit time.Duration) verdict {
	if reached[m.ID] {
		if _, err := test(folder, binary, m.ID, limit); err != nil {
			return killed
		}
	}
	switch {
	case m.Equivalent() != "":
		return equivalent
	case reached[m.ID]:
		return survived
	}
	return unreached
}
