package storage

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

// reading is an Explorer that reads, and explains nothing.
type reading struct {
	chain.Explorer
	reader *cluster.Reader
}

func (r reading) Reader() *cluster.Reader  { return r.reader }
func (reading) Commands() cluster.Commands { return cluster.Commands{} }

func TestUsersOfClassesAreListedOnce(t *testing.T) {
	objects := clustertest.Objects{}
	for i := range 2 * maxUsers {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("c", i),
			UID: types.UID(fmt.Sprint("c", i))}}
		claim.Spec.VolumeAttributesClassName, claim.Status.CurrentVolumeAttributesClassName = new("gold"), new("gold")
		objects["persistentvolumeclaims"] = append(objects["persistentvolumeclaims"], claim)
	}
	changing := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "changing", UID: "c"}}
	changing.Spec.VolumeAttributesClassName, changing.Status.CurrentVolumeAttributesClassName = new("silver"), new("bronze")
	objects["persistentvolumeclaims"] = append(objects["persistentvolumeclaims"], changing)
	modified := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "modified", UID: "m"}}
	modified.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: "target"}
	objects["persistentvolumeclaims"] = append(objects["persistentvolumeclaims"], modified)
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", UID: "v"}}
	volume.Spec.VolumeAttributesClassName = new("silver")
	objects["persistentvolumes"] = []metav1.Object{volume}
	var requests atomic.Int32
	e := reading{reader: clustertest.NewReader(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		objects.ServeHTTP(w, r)
	})}
	for name, want := range map[string]int{"gold": maxUsers, "silver": 2, "bronze": 1, "target": 1, "unused": 0} {
		class := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}}}
		users, seen := usersOfClass(t.Context(), e, class)
		if len(users) != want || !seen {
			t.Errorf("%s has %d users, want %d", name, len(users), want)
		}
	}
	if got := requests.Load(); got != 2 {
		t.Errorf("%d requests, want one for claims and one for volumes", got)
	}
}
