package leader

import "testing"

func TestAcquisitionsHaveDistinctNames(t *testing.T) {
	names := map[string]acquisition{}
	for a := acquiring; a <= acquisitionEnded; a++ {
		if other, taken := names[a.String()]; taken || a.String() == acquisition(-1).String() {
			t.Errorf("%d is called %q, like %d", a, a, other)
		}
		names[a.String()] = a
	}
}
