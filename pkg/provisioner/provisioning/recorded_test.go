package provisioning

import (
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/controller"
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
			recorded, err := c.isRecorded(t.Context(), o, new(time.Now()))
			if (err != nil) != (tc.fail != "") || err == nil && recorded != tc.recorded {
				t.Errorf("isRecorded = %v, %v; want %v, an error: %v", recorded, err, tc.recorded, tc.fail != "")
			}
		})
	}
}

// A process without leader election is frozen during or after the lists, while its successor records the disk.
func TestFrozenProcessDiscardsNoRecordedDisk(t *testing.T) {
	for name, tc := range map[string]struct {
		resource string
		pages    int // of that list
		perPage  time.Duration
		refused  bool
	}{
		"frozen after the first page":     {"persistentvolumes", 2, 10 * time.Minute, true},
		"frozen between the lists":        {"persistentvolumes", 1, 10 * time.Minute, true},
		"frozen after the lists":          {"persistentvolumeclaims", 1, 10 * time.Minute, true},
		"long lists of a working process": {"persistentvolumes", 300, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, client, deletion := newObserver(t), fake.NewClientset(), &discarding{}
				c.Client, c.Deletion, c.Reporter = client, deletion, controller.NewReporter(record.NewFakeRecorder(10))
				pages := 0
				client.PrependReactor("list", tc.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
					if pages++; pages > tc.pages {
						return false, nil, nil
					}
					<-time.After(tc.perPage)
					more := metav1.ListMeta{ResourceVersion: "1"}
					if pages < tc.pages {
						more.Continue = "next"
					}
					if tc.resource == "persistentvolumes" {
						return true, &v1.PersistentVolumeList{ListMeta: more}, nil
					}
					return true, &v1.PersistentVolumeClaimList{ListMeta: more}, nil
				})
				o := observed(claimRecord{disk: diskFacts{volume: withHandle("disk")}})
				if _, err := c.discard(t.Context(), o); (err != nil) != tc.refused || (deletion.deleted == 0) != tc.refused {
					t.Errorf("%d disks are deleted, error %v", deletion.deleted, err)
				}
			})
		})
	}
}
