package demo

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// written returns a claim, as a write returned it.
func written(changes ...func(*v1.PersistentVolumeClaim)) *unstructured.Unstructured {
	claim := &v1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{Kind: "PersistentVolumeClaim", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "demo", UID: "u", ResourceVersion: "7"},
	}
	for _, change := range changes {
		change(claim)
	}
	return asLogged(claim)
}

// writtenVolume returns a volume, as a write returned it.
func writtenVolume(changes ...func(*v1.PersistentVolume)) *unstructured.Unstructured {
	volume := &v1.PersistentVolume{
		TypeMeta:   metav1.TypeMeta{Kind: "PersistentVolume", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: provisioned, UID: "u", ResourceVersion: "7"},
		Spec:       v1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimRetain},
	}
	for _, change := range changes {
		change(volume)
	}
	return asLogged(volume)
}

// asLogged returns an object as it stands in the audit log.
func asLogged(object any) *unstructured.Unstructured {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		panic(err)
	}
	return &unstructured.Unstructured{Object: fields}
}

// Changes of claims.
func annotated(name, value string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) {
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations[name] = value
	}
}

func named(volume string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = volume }
}

func bound(c *v1.PersistentVolumeClaim) {
	c.Status.Phase = v1.ClaimBound
	c.Status.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
}

func deleting(c *v1.PersistentVolumeClaim) {
	c.DeletionTimestamp, c.DeletionGracePeriodSeconds = &metav1.Time{Time: begun}, new(int64(0))
}

func finalizers(names ...finalizer.Name) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) {
		for _, name := range names {
			c.Finalizers = append(c.Finalizers, string(name))
		}
	}
}

// Changes of volumes.
func claimed(name, uid string) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) {
		v.Spec.ClaimRef = &v1.ObjectReference{Namespace: namespace, Name: name, UID: types.UID(uid)}
	}
}

func released(v *v1.PersistentVolume) {
	v.Status.Phase = v1.VolumeReleased
	v.Status.LastPhaseTransitionTime = &metav1.Time{Time: begun.Add(time.Second)}
}

func protected(v *v1.PersistentVolume) {
	v.Finalizers = []string{string(finalizer.External), string(finalizer.VolumeProtection)}
}

var changeCases = map[string]struct {
	verb          string
	before, after *unstructured.Unstructured
	want          string
}{
	"a claim is created":  {"create", nil, written(finalizers(finalizer.ClaimProtection)), "creates PVC demo with finalizer pvc-protection"},
	"a volume is created": {"create", nil, writtenVolume(), "creates PV pvc-394c3d6b"},
	"a volume is created for a claim": {"create", nil, writtenVolume(claimed("demo", "c"), protected),
		"creates PV pvc-394c3d6b for PVC demo with finalizers external-provisioner and pv-protection"},
	"the provisioner is named": {"patch", written(), written(annotated(storage.AnnStorageProvisioner, "x"),
		annotated(storage.AnnBetaStorageProvisioner, "x")), "names the provisioner of PVC demo"},
	"the old annotation names it": {"patch", written(), written(annotated(storage.AnnBetaStorageProvisioner, "x")), "names the provisioner of PVC demo"},
	"a node is selected":          {"patch", written(), written(annotated(storage.AnnSelectedNode, "node-1")), "selects node node-1 for PVC demo"},
	"a claim is bound": {"patch", written(), written(named(provisioned),
		annotated(storage.AnnBindCompleted, "yes"), annotated(storage.AnnBoundByController, "yes")),
		"binds PVC demo to PV pvc-394c3d6b"},
	"a claim is unbound":         {"patch", written(named("a")), written(), "unbinds PVC demo from PV a"},
	"a claim becomes Bound":      {"patch", written(), written(bound), "marks PVC demo Bound"},
	"a volume is bound":          {"patch", writtenVolume(), writtenVolume(claimed("demo", "c")), "binds PV pvc-394c3d6b to PVC demo"},
	"a reserved volume is bound": {"patch", writtenVolume(claimed("demo", "")), writtenVolume(claimed("demo", "c")), "binds PV pvc-394c3d6b to PVC demo"},
	"a volume is reserved":       {"patch", writtenVolume(), writtenVolume(claimed("demo", "")), "reserves PV pvc-394c3d6b for PVC demo"},
	"a volume is unbound":        {"patch", writtenVolume(claimed("demo", "c")), writtenVolume(), "unbinds PV pvc-394c3d6b from PVC demo"},
	"a volume becomes Released":  {"patch", writtenVolume(), writtenVolume(released), "marks PV pvc-394c3d6b Released"},
	"two changes in one write": {"patch", writtenVolume(protected), writtenVolume(released),
		"marks PV pvc-394c3d6b Released and removes finalizers external-provisioner and pv-protection from it"},
	"the policy is changed": {"patch", writtenVolume(),
		writtenVolume(func(v *v1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = "Delete" }),
		"sets the reclaim policy of PV pvc-394c3d6b to Delete"},
	"a finalizer is added":   {"patch", written(), written(finalizers("example.com/backup")), "adds finalizer example.com/backup to PVC demo"},
	"a finalizer is removed": {"patch", written(finalizers(finalizer.ClaimProtection)), written(), "removes finalizer pvc-protection from PVC demo"},
	"finalizers are exchanged": {"patch", written(finalizers("a/b")), written(finalizers("c/d")),
		"adds finalizer c/d to PVC demo and removes finalizer a/b from it"},
	"a deletion starts":               {"delete", written(finalizers("a/b")), written(finalizers("a/b"), deleting), "starts the deletion of PVC demo"},
	"a deletion of an unknown starts": {"delete", nil, written(finalizers("a/b"), deleting), "starts the deletion of PVC demo"},
	"a deletion is repeated": {"delete", written(finalizers("a/b"), deleting),
		written(finalizers("a/b"), deleting), "repeats the deletion of PVC demo"},
	"a claim is deleted": {"delete", written(), written(), "deletes PVC demo"},
	"another field is changed": {"update", written(),
		written(func(c *v1.PersistentVolumeClaim) { c.Labels = map[string]string{"a": "b"} }),
		"changes metadata.labels.a of PVC demo"},
	"a field is removed": {"update", written(annotated("a", "b")), written(), "changes metadata.annotations.a of PVC demo"},
	"three changes are a list": {"update", written(), written(named("a"), bound, annotated("x", "y")),
		"binds PVC demo to PV a, marks it Bound and changes metadata.annotations.x of it"},
	"nothing is changed": {"patch", written(),
		written(func(c *v1.PersistentVolumeClaim) { c.ResourceVersion, c.Generation = "8", 2 }),
		"changes nothing of PVC demo"},
	"the object before is not known": {"patch", nil, written(), "changes PVC demo"},
	"an annotation of binding by itself": {"patch", written(), written(annotated(storage.AnnBindCompleted, "yes")),
		"changes metadata.annotations.pv.kubernetes.io/bind-completed of PVC demo"},
}

func TestChangeIsDescribedInPlainWords(t *testing.T) {
	for name, tc := range changeCases {
		t.Run(name, func(t *testing.T) {
			if got := describeChange(tc.verb, tc.before, tc.after); got != tc.want {
				t.Errorf("change is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestHistoryFindsTheVersionBefore(t *testing.T) {
	version := func(number string, more ...func(*v1.PersistentVolumeClaim)) *unstructured.Unstructured {
		return written(append(more, func(c *v1.PersistentVolumeClaim) { c.ResourceVersion = number })...)
	}
	first, second, third := version("9"), version("10", finalizers("a/b"), deleting),
		version("11", finalizers("a/b"), deleting)
	nothing, last := version("11", finalizers("a/b"), deleting), version("11", deleting)
	other := written(func(c *v1.PersistentVolumeClaim) { c.UID, c.ResourceVersion = "other", "8" })
	all := history{}
	for _, object := range []*unstructured.Unstructured{other, third, first, second, nothing, last} {
		all.add(object)
	}
	for name, tc := range map[string]struct{ after, want *unstructured.Unstructured }{
		"the first has none":                     {first, nil},
		"versions are compared as numbers":       {second, first},
		"a version that was added early":         {third, second},
		"a write that changed nothing":           {nothing, third},
		"the last finalizer keeps the version":   {last, third},
		"an object with the same name is no use": {other, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := all.before(tc.after); got != tc.want {
				t.Errorf("before is %v, want %v", got, tc.want)
			}
		})
	}
	if !all.has("u", "10") || all.has("u", "8") || all.has("none", "10") {
		t.Error("has finds other versions than those that were added")
	}
}
