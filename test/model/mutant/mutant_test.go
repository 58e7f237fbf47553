package mutant

import (
	"slices"
	"testing"
)

func TestNoMutantIsActiveByDefault(t *testing.T) {
	if On(1) || Choose(1, "changed", "original") != "original" {
		t.Error("mutant 1 is active")
	}
}

func TestSelectedMutantIsActiveAlone(t *testing.T) {
	Select(2)
	defer Select(0)
	if !On(2) || On(1) || On(3) {
		t.Errorf("On(1), On(2), On(3) = %v, %v, %v, want only 2", On(1), On(2), On(3))
	}
	if Choose(2, "changed", "original") != "changed" || Choose(3, "changed", "original") != "original" {
		t.Error("only mutant 2 may change a value")
	}
}

func TestSuspendedMutantIsNeitherActiveNorRecorded(t *testing.T) {
	Select(2)
	var seen []int
	Record(func(id int, _ bool) { seen = append(seen, id) })
	defer Select(0)
	defer Record(nil)
	resume := Suspend()
	if On(2) {
		t.Error("mutant 2 is active while it is suspended")
	}
	restore := Resume()
	if !On(2) {
		t.Error("mutant 2 is not active after Resume")
	}
	restore()
	if On(2) {
		t.Error("mutant 2 is active after the end of Resume")
	}
	resume()
	if !On(2) || !slices.Equal(seen, []int{2, 2}) {
		t.Errorf("mutant 2 stays suspended, or recorded is %v, want [2 2]", seen)
	}
}

func TestRecordSeesEachEvaluatedPlace(t *testing.T) {
	var seen []int
	Record(func(id int, _ bool) { seen = append(seen, id) })
	On(3)
	Choose(4, 0, 1)
	Record(nil)
	On(5)
	if !slices.Equal(seen, []int{3, 4}) {
		t.Errorf("recorded %v, want [3 4]", seen)
	}
}

func TestRecordSeesWhereMutantDiffers(t *testing.T) {
	differs := map[int]bool{}
	Record(func(id int, differ bool) { differs[id] = differ })
	defer Record(nil)
	if !True(1, true) || True(2, false) || !False(3, true) || False(4, false) || Choose(5, "a", "b") != "b" ||
		Choose(6, "a", "a") != "a" {
		t.Error("a value changes without an active mutant")
	}
	for id, want := range map[int]bool{1: false, 2: true, 3: true, 4: false, 5: true, 6: false} {
		if differs[id] != want {
			t.Errorf("mutant %d differs: %v, want %v", id, differs[id], want)
		}
	}
}

func TestActiveMutantForcesCondition(t *testing.T) {
	defer Select(0)
	Select(1)
	if !True(1, false) || !True(1, true) {
		t.Error("True does not return true")
	}
	if False(1, true) || False(1, false) {
		t.Error("False does not return false")
	}
}

func TestMutantIsOneReadableLine(t *testing.T) {
	for want, m := range map[string]Mutant{
		"pkg/a.go:7 Decide: case removed: s.Bound becomes false": {File: "pkg/a.go", Line: 7, Func: "Decide",
			Operator: "case removed", Original: "s.Bound", Changed: "false"},
		"pkg/a.go:7 Decide: delete-twice, the success is not remembered": {File: "pkg/a.go", Line: 7, Func: "Decide",
			Name: "delete-twice", Operator: "defect", Original: "x", Changed: "the success is not remembered"},
	} {
		if got := m.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}

func TestKeyDoesNotDependOnLine(t *testing.T) {
	m := Mutant{File: "pkg/a.go", Line: 7, Func: "Decide", Operator: "case removed", Original: "s.Bound", Changed: "false"}
	moved := m
	moved.ID, moved.Line = 9, 8
	if m.Key() != moved.Key() {
		t.Errorf("keys %q and %q differ", m.Key(), moved.Key())
	}
}
