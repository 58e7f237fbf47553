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

func TestRecordSeesEachEvaluatedPlace(t *testing.T) {
	var seen []int
	Record(func(id int) { seen = append(seen, id) })
	On(3)
	Choose(4, 0, 1)
	Record(nil)
	On(5)
	if !slices.Equal(seen, []int{3, 4}) {
		t.Errorf("recorded %v, want [3 4]", seen)
	}
}

func TestMutantIsOneReadableLine(t *testing.T) {
	for want, m := range map[string]Mutant{
		"pkg/a.go:7 Decide: case removed: s.Bound becomes false":         {File: "pkg/a.go", Line: 7, Func: "Decide", Operator: "case removed", Original: "s.Bound", Changed: "false"},
		"pkg/a.go:7 Decide: delete-twice, the success is not remembered": {File: "pkg/a.go", Line: 7, Func: "Decide", Name: "delete-twice", Operator: "defect", Original: "x", Changed: "the success is not remembered"},
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
