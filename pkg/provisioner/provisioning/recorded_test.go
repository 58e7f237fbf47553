package provisioning

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

// TestRecordedDiskIsFound covers the reads before a volume is discarded. The cache has none
// of the objects.
func TestRecordedDiskIsFound(t *testing.T) {
	volume := func(name, handle string) *v1.PersistentVolume {
		v := withHandle(handle)
		v.Name = name
		return v
	}
	claim := claimOf("", "")
	claim.Spec.VolumeName = "pvc-uid"
	for name, tc := range map[string]struct {
		objects  []runtime.Object
		read     *v1.PersistentVolume // of the live read before
		fail     string               // the list that fails
		recorded bool
	}{
		"no volume":                         {nil, nil, "", false},
		"other disk":                        {[]runtime.Object{volume("by-hand", "other")}, volume("pvc-uid", "third"), "", false},
		"disk of a live volume":             {[]runtime.Object{volume("by-hand", "disk")}, nil, "", true},
		"directory around that of a volume": {[]runtime.Object{volume("by-hand", "disk/inside")}, nil, "", true},
		"directory inside that of a volume": {[]runtime.Object{volume("by-hand", "around"), volume("alike", "disk2")}, nil, "", false},
		"disk of a volume gone since":       {nil, volume("pvc-uid", "disk"), "", true},
		"volume named by a claim":           {[]runtime.Object{claim}, nil, "", true},
		"volumes cannot be read":            {nil, nil, "persistentvolumes", false},
		"claims cannot be read":             {nil, nil, "persistentvolumeclaims", false},
	} {
		t.Run(name, func(t *testing.T) {
			c, client := newObserver(t), fake.NewClientset(tc.objects...)
			f := &flow{T: t, client: client}
			client.PrependReactor("*", "*", f.reactors.answer)
			c.Client, c.Deletion = client, &discarding{}
			if tc.fail != "" {
				f.failNext("list", tc.fail, false)
			}
			o := observed(claimRecord{disk: diskFacts{volume: withHandle("disk")}})
			o.volume = tc.read
			recorded, err := c.isRecorded(t.Context(), o)
			if (err != nil) != (tc.fail != "") || err == nil && recorded != tc.recorded {
				t.Errorf("isRecorded = %v, %v; want %v, an error: %v", recorded, err, tc.recorded, tc.fail != "")
			}
		})
	}
}
