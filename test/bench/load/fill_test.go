package load

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// pattern returns a pair of the driver.
func pattern(number int, driver string) pair {
	claim := newClaim(background, claimName(number))
	claim.UID, claim.ResourceVersion, claim.Spec.VolumeName = types.UID("claim of "+driver), "7", background+"-"+claim.Name
	volume := newVolume(claim)
	volume.Name, volume.UID, volume.ResourceVersion, volume.Spec.CSI.Driver = claim.Spec.VolumeName,
		types.UID("volume of "+driver), "8", driver
	return pair{claim: claim, volume: volume}
}

// decodeStored returns what the API server reads from etcd.
func decodeStored(t *testing.T, value []byte) runtime.Object {
	t.Helper()
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(value, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func TestCopiesArePairsOfTheirOwn(t *testing.T) {
	const first, last = 3, 203
	uids := map[types.UID]bool{"claim of " + driverName: true, "claim of " + foreign: true}
	claims, drivers := map[string]*v1.PersistentVolumeClaim{}, map[string]int{}
	for object, err := range copies(pattern(first, driverName), pattern(first+1, foreign), first, last) {
		if err != nil {
			t.Fatal(err)
		}
		switch o := decodeStored(t, object.Value).(type) {
		case *v1.PersistentVolumeClaim:
			if object.Key != "/registry/persistentvolumeclaims/background/"+o.Name || o.ResourceVersion != "" || uids[o.UID] {
				t.Errorf("%s has %+v", object.Key, o.ObjectMeta)
			}
			uids[o.UID], claims[o.Spec.VolumeName] = true, o
		case *v1.PersistentVolume:
			claim := claims[o.Name]
			if object.Key != "/registry/persistentvolumes/"+o.Name || claim == nil || o.ResourceVersion != "" || uids[o.UID] ||
				o.Spec.ClaimRef.UID != claim.UID || o.Spec.ClaimRef.Name != claim.Name ||
				o.Spec.CSI.VolumeHandle != handleOf(claim) {
				t.Errorf("%s has %+v, its claim is %+v", object.Key, o, claim)
			}
			uids[o.UID] = true
			drivers[o.Spec.CSI.Driver]++
		}
	}
	if len(claims) != last-first-2 || drivers[driverName] != 3 || drivers[foreign] != len(claims)-3 {
		t.Errorf("%d copies of %v, want %d", len(claims), drivers, last-first-2)
	}
}
