package operator

import "testing"

func TestDecideInEveryState(t *testing.T) {
	for bits := range 1 << 4 {
		s := State{Deleted: bits&1 != 0, Finalizer: bits&2 != 0, Made: bits&4 != 0, MayMake: bits&8 != 0}
		got := Decide(s)
		if want := s.Deleted && s.Finalizer; (got == Remove) != want {
			t.Errorf("%+v: %s, want a removal: %v", s, got, want)
		}
		if want := !s.Deleted && !s.Made && s.MayMake && s.Finalizer; (got == Make) != want {
			t.Errorf("%+v: %s, want a directory: %v", s, got, want)
		}
		if want := !s.Deleted && !s.Made && s.MayMake && !s.Finalizer; (got == AddFinalizer) != want {
			t.Errorf("%+v: %s, want the finalizer: %v", s, got, want)
		}
	}
}
