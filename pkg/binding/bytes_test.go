package binding

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// A request may name a part of a byte, volumes have whole bytes.
func TestPartOfByteCountsAsByte(t *testing.T) {
	for name, tc := range map[string]struct {
		capacity, request string
		fits              bool
	}{
		"part of a byte more is requested":        {"1000000000", "1000000000500m", false},
		"rounded request is met":                  {"1000000001", "1000000000500m", true},
		"capacity and request have the same part": {"1000000000500m", "1000000000500m", true},
		"capacity is rounded, too":                {"1000000000500m", "1000000001", true},
		"larger part is requested":                {"1000000000100m", "1000000000900m", true},
		"one byte less":                           {"1000000000", "1000000001", false},
		"largest quantity":                        {"16Ei", "16Ei", true},
		"more than any volume has":                {"1Gi", "1e30", false},
	} {
		t.Run(name, func(t *testing.T) {
			volume, claim := freeVolume("a", tc.capacity), waitingClaim("c", tc.request)
			if got := Mismatch(volume, claim) == ""; got != tc.fits {
				t.Errorf("fits by name: %v, want %v", got, tc.fits)
			}
			x := NewIndex(func(string) {})
			x.Update(volume)
			if name, err := x.Reserve(claim); err != nil || (name != "") != tc.fits {
				t.Errorf("found in the index: %q, %v, want %v", name, err, tc.fits)
			}
			woken := ""
			x = NewIndex(func(claim string) { woken = claim })
			if _, err := x.Reserve(claim); err != nil {
				t.Fatal(err)
			}
			if x.Update(volume); (woken != "") != tc.fits {
				t.Errorf("woken: %q, want %v", woken, tc.fits)
			}
			volume.Spec.ClaimRef = &v1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name}
			if reserved := ReservedVolume([]*v1.PersistentVolume{volume}, claim); (reserved != nil) != tc.fits {
				t.Errorf("reserved: %v, want %v", reserved, tc.fits)
			}
		})
	}
}
