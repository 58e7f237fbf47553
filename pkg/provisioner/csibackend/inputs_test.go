package csibackend

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	snapshotfake "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned/fake"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
)

// able is a driver that says it can do everything.
type able struct {
	Driver
	asked *spec.CreateVolumeRequest
}

func (*able) Name() string          { return "driver" }
func (*able) HasTopology() bool     { return true }
func (*able) HasSingleWriter() bool { return true }
func (*able) Snapshots() bool       { return true }
func (*able) Clones() bool          { return true }
func (*able) Modifies() bool        { return true }

func (d *able) CreateVolume(_ context.Context, request *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	d.asked = request
	return &spec.CreateVolumeResponse{Volume: &spec.Volume{VolumeId: "h"}}, nil
}

// plugin is an in-tree plugin that the driver serves.
type plugin struct{}

func (plugin) Class(_ context.Context, class *storagev1.StorageClass) (*storagev1.StorageClass, error) {
	class = class.DeepCopy()
	class.Parameters["translated"] = "true"
	return class, nil
}

func (plugin) Volume(volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	if volume.Spec.HostPath == nil {
		return nil, errors.New("not of the plugin")
	}
	volume = volume.DeepCopy()
	volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: "driver", VolumeHandle: volume.Spec.HostPath.Path}
	return volume, nil
}

func (plugin) Disk(volume *v1.PersistentVolume) string {
	switch {
	case volume.Spec.HostPath != nil:
		return volume.Spec.HostPath.Path
	case volume.Spec.CSI != nil:
		return volume.Spec.CSI.VolumeHandle
	}
	return ""
}

func (plugin) InTree(volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	if volume.Spec.CSI.VolumeHandle != "h" {
		return nil, errors.New("no such disk")
	}
	volume = volume.DeepCopy()
	volume.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: volume.Spec.CSI.VolumeHandle}}
	return volume, nil
}

// world is what the inputs of a test read, and which sources they protected.
type world struct {
	inputs    *Inputs
	driver    *able
	protected []string
	// removing changes a source whose finalizer is being removed when a test begins.
	removing func(key string)
}

// noted notes which sources are protected.
type noted[T metav1.Object] struct{ *world }

func (n noted[T]) AwaitRemoval(key string) {
	if n.removing != nil {
		n.removing(key)
	}
}

func (n noted[T]) Protect(_ context.Context, source T) error {
	n.protected = append(n.protected, source.GetName())
	return nil
}

// newWorld has the objects in the API server and, nodes and CSINodes, in caches.
func newWorld(t *testing.T, objects, snapshots []runtime.Object) *world {
	t.Helper()
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	w := &world{driver: &able{}}
	w.inputs = NewInputs(InputsConfig{
		Client: client, Snapshots: snapshotfake.NewSimpleClientset(snapshots...), Driver: w.driver, Translator: plugin{},
		Nodes: factory.Core().V1().Nodes().Informer(), CSINodes: factory.Storage().V1().CSINodes().Informer(),
		ImmediateTopology: true, CloneSources: noted[*v1.PersistentVolumeClaim]{w}, SnapshotSources: noted[metav1.Object]{w},
	})
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSync(t.Context().Done())
	return w
}

func newNode(name, zone string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone}}}
}

func newCSINode(name string) *storagev1.CSINode {
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			{Name: "other", TopologyKeys: []string{"rack"}}, {Name: "driver", TopologyKeys: []string{"zone"}},
		}}}
}

// options are those of a claim in namespace "team", of a class with the parameters.
func options(change func(*library.ProvisionOptions), parameters ...string) library.ProvisionOptions {
	class := "fast"
	o := library.ProvisionOptions{
		PVName: "pvc-1",
		PVC: &v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data", UID: "uid"},
			Spec: v1.PersistentVolumeClaimSpec{StorageClassName: &class,
				AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod, v1.ReadWriteMany}},
		},
		StorageClass: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "driver",
			Parameters: map[string]string{}},
	}
	for i := 0; i < len(parameters); i += 2 {
		o.StorageClass.Parameters["csi.storage.k8s.io/"+parameters[i]] = parameters[i+1]
	}
	if change != nil {
		change(&o)
	}
	return o
}

func TestEveryAccessModeIsTranslated(t *testing.T) {
	w := newWorld(t, []runtime.Object{newNode("n", "a"), newCSINode("n")}, nil)
	in, _, _, err := w.inputs.For(t.Context(), options(nil))
	must(t, err)
	if fmt.Sprint(in.AccessModes) != "[SINGLE_NODE_SINGLE_WRITER MULTI_NODE_MULTI_WRITER]" {
		t.Errorf("access modes: %v", in.AccessModes)
	}
}

func TestSelectedNodeIsPreferredOrUnsuitable(t *testing.T) {
	w := newWorld(t, []runtime.Object{newNode("n1", "a"), newNode("n2", "b"), newNode("n3", "c"), newCSINode("n1"),
		newCSINode("n2")}, nil)
	choose := func(name, zone string) library.ProvisionOptions {
		return options(func(o *library.ProvisionOptions) { o.SelectedNode = newNode(name, zone) })
	}
	in, _, _, err := w.inputs.For(t.Context(), choose("n2", "b"))
	must(t, err)
	if got := in.Topology.GetPreferred()[0].GetSegments()["zone"]; got != "b" || len(in.Topology.GetRequisite()) != 2 {
		t.Errorf("topology: %v", in.Topology)
	}
	_, _, _, err = w.inputs.For(t.Context(), choose("n3", "c"))
	var elsewhere *provision.UnsuitableNode
	if !errors.As(err, &elsewhere) || !strings.Contains(elsewhere.Sentence, "n3") {
		t.Errorf("a node without CSINode: %v, want Elsewhere that names it", err)
	}
}

func TestNewNodeIsReadLive(t *testing.T) {
	w := newWorld(t, []runtime.Object{newNode("n1", "a"), newCSINode("n1")}, nil)
	must(t, w.inputs.CSINodes.GetStore().Delete(newCSINode("n1"))) // the cache is late
	in, _, _, err := w.inputs.For(t.Context(),
		options(func(o *library.ProvisionOptions) { o.SelectedNode = newNode("n1", "a") }))
	must(t, err)
	if got := in.Topology.GetPreferred()[0].GetSegments()["zone"]; got != "a" {
		t.Errorf("topology: %v", in.Topology)
	}
}

func TestRepeatedRequestHasEveryRegisteredSetOfKeys(t *testing.T) {
	fine, coarse, silent := newNode("n1", "a"), newNode("n2", "b"), newNode("n3", "c")
	fine.Labels["rack"] = "1"
	withRack := newCSINode("n1")
	withRack.Spec.Drivers[1].TopologyKeys = []string{"zone", "rack"}
	without := newCSINode("n3")
	without.Spec.Drivers = without.Spec.Drivers[:1]
	w := newWorld(t, []runtime.Object{fine, coarse, silent, withRack, newCSINode("n2"), without}, nil)
	first, _, _, err := w.inputs.For(t.Context(), options(nil))
	must(t, err)
	var got []string
	for _, requisite := range first.Topology.GetRequisite() {
		got = append(got, fmt.Sprint(requisite.GetSegments()))
	}
	if want := []string{"map[zone:a]", "map[zone:b]", "map[rack:1 zone:a]"}; !slices.Equal(got, want) {
		t.Errorf("requisite topologies: %v, want %v", got, want)
	}
	for range 20 { // the caches list nodes in another order each time
		again, _, _, err := w.inputs.For(t.Context(), options(nil))
		must(t, err)
		if !proto.Equal(first.Topology, again.Topology) {
			t.Fatalf("repeated: %v, first: %v", again.Topology, first.Topology)
		}
	}
}

func TestSecretIsSentAndNotStored(t *testing.T) {
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data-key"},
		Data: map[string][]byte{"password": []byte("hunter2")}}
	w := newWorld(t, []runtime.Object{newNode("n", "a"), newCSINode("n"), secret}, nil)
	b := &Backend{Driver: w.driver, Inputs: w.inputs}
	call := prepare(t, b, options(nil, "provisioner-secret-name", "${pvc.name}-key", "provisioner-secret-namespace",
		"${pvc.namespace}"))
	later := backend.Call{Request: call.Request.WithoutCredentials(), Volume: call.Volume}
	for name, tried := range map[string]backend.Call{"the first call": call, "a later call, from memory": later} {
		answer := create(t, b, tried)
		if got := w.driver.asked.GetSecrets(); !maps.Equal(got, map[string]string{"password": "hunter2"}) {
			t.Errorf("%s: the driver got %v", name, got)
		}
		stored, _ := tried.Request.Stored()
		if text := fmt.Sprintf("%+v %#v %v %v", tried.Request.WithoutCredentials(), tried.Request, stored,
			answer.Volume); strings.Contains(text, "hunter2") {
			t.Errorf("%s: the secret is kept: %s", name, text)
		}
		if answer.Volume.Annotations[provision.DeletionSecretName] != "data-key" {
			t.Errorf("%s: annotations: %v", name, answer.Volume.Annotations)
		}
	}
	must(t, w.inputs.Client.CoreV1().Secrets("team").Delete(t.Context(), "data-key", metav1.DeleteOptions{}))
	if _, failure := b.Create(t.Context(), later); failure == nil ||
		!strings.Contains(failure.Err.Error(), "team/data-key") || failure.Unresolved == "" {
		t.Errorf("without the secret: %+v, want a failure that names it", failure)
	}
}

// prepare returns the call for a claim's volume, as the engine makes it.
func prepare(t *testing.T, b *Backend, options library.ProvisionOptions) backend.Call {
	t.Helper()
	request, volume, err := b.Prepare(t.Context(), options)
	must(t, err)
	provision.NewAssignment(options.PVC, options.StorageClass).ApplyTo(volume, true)
	return backend.Call{Request: request, Volume: volume}
}

// create returns the answer of a call that succeeds.
func create(t *testing.T, b *Backend, call backend.Call) backend.Answer {
	t.Helper()
	answer, failure := b.Create(t.Context(), call)
	if failure != nil {
		t.Fatal(failure.Err)
	}
	return answer
}

func TestMissingInputIsNamedInTheError(t *testing.T) {
	gold, group := "gold", "snapshot.storage.k8s.io"
	from := func(kind string) func(*library.ProvisionOptions) {
		return func(o *library.ProvisionOptions) {
			o.PVC.Spec.DataSource = &v1.TypedLocalObjectReference{Kind: kind, Name: "origin"}
			if kind == "VolumeSnapshot" {
				o.PVC.Spec.DataSource.APIGroup = &group
			}
		}
	}
	w := newWorld(t, []runtime.Object{newNode("n", "a"), newCSINode("n")}, nil)
	for name, tc := range map[string]struct {
		options library.ProvisionOptions
		names   string
	}{
		"a secret":              {options(nil, "secret-name", "s", "secret-namespace", "ns"), "ns/s"},
		"a class of attributes": {options(func(o *library.ProvisionOptions) { o.PVC.Spec.VolumeAttributesClassName = &gold }), "gold"},
		"a claim":               {options(from("PersistentVolumeClaim")), "claim"},
		"a snapshot":            {options(from("VolumeSnapshot")), "VolumeSnapshot"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, _, err := w.inputs.For(t.Context(), tc.options)
			var missing *provision.NotReady
			if !errors.As(err, &missing) || !strings.Contains(missing.Sentence, tc.names) {
				t.Errorf("For = %v, want NotYet that names %q", err, tc.names)
			}
		})
	}
	if len(w.protected) > 0 {
		t.Errorf("protected: %v", w.protected)
	}
}

func TestSnapshotIsProtectedAndRestored(t *testing.T) {
	ready, content, snapshotHandle, group := true, "content", "snap", "snapshot.storage.k8s.io"
	snapshot := &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "origin", UID: "s"},
		Status:     &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: &content, ReadyToUse: &ready},
	}
	w := newWorld(t, []runtime.Object{newNode("n", "a"), newCSINode("n")},
		[]runtime.Object{snapshot, &snapshotv1.VolumeSnapshotContent{
			ObjectMeta: metav1.ObjectMeta{Name: content},
			Spec: snapshotv1.VolumeSnapshotContentSpec{Driver: "driver",
				VolumeSnapshotRef: v1.ObjectReference{Namespace: "team", Name: "origin", UID: "s"}},
			Status: &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: &snapshotHandle},
		}})
	in, _, _, err := w.inputs.For(t.Context(), options(func(o *library.ProvisionOptions) {
		o.PVC.Spec.DataSource = &v1.TypedLocalObjectReference{APIGroup: &group, Kind: "VolumeSnapshot", Name: "origin"}
	}))
	must(t, err)
	if got := in.Source.GetSnapshot().GetSnapshotId(); got != "snap" || fmt.Sprint(w.protected) != "[origin]" {
		t.Errorf("source %q, protected %v", got, w.protected)
	}
}

func TestInTreeVolumeIsClonedAndTranslatedBack(t *testing.T) {
	class := "fast"
	origin := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "origin", UID: "o"},
		Spec:       v1.PersistentVolumeClaimSpec{VolumeName: "v", StorageClassName: &class},
		Status:     v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound},
	}
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "v"},
		Spec: v1.PersistentVolumeSpec{
			ClaimRef:               &v1.ObjectReference{Namespace: "team", Name: "origin", UID: "o"},
			PersistentVolumeSource: v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "disk"}},
		},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeBound},
	}
	w := newWorld(t, []runtime.Object{newNode("n", "a"), newCSINode("n"), origin, volume}, nil)
	b := &Backend{Driver: w.driver, Inputs: w.inputs}
	call := prepare(t, b, options(func(o *library.ProvisionOptions) {
		o.StorageClass.Provisioner = "kubernetes.io/old"
		o.PVC.Spec.DataSource = &v1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "origin"}
	}))
	answer := create(t, b, call)
	if got := w.driver.asked; got.GetVolumeContentSource().GetVolume().GetVolumeId() != "disk" ||
		got.GetParameters()["translated"] != "true" {
		t.Errorf("the driver was asked for %v", got)
	}
	if !strings.Contains(answer.Unusable, "not made from the source volume") || answer.Handle != "h" {
		t.Errorf("answer: %+v", answer)
	}
	call.Request.(*request).message.VolumeContentSource = nil
	answer = create(t, b, call)
	if answer.Unusable != "" || answer.Volume.Spec.HostPath == nil ||
		answer.Volume.Annotations["pv.kubernetes.io/provisioned-by"] != "kubernetes.io/old" {
		t.Errorf("answer: %+v", answer)
	}
	if fmt.Sprint(w.protected) != "[origin]" {
		t.Errorf("protected: %v", w.protected)
	}
}

func TestUnannotatedVolumeUsesDeletionSecretOfItsClass(t *testing.T) {
	inputs := newWorld(t, nil, nil).inputs
	class := options(nil, "provisioner-secret-name", "${pvc.name}-${pv.name}", "provisioner-secret-namespace",
		"${pvc.namespace}",
		"node-stage-secret-name", "${pvc.annotations['gone-with-the-claim']}", "node-stage-secret-namespace", "team").
		StorageClass
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}
	for name, tc := range map[string]struct {
		claim *v1.ObjectReference
		want  string
	}{
		"its claim is gone":    {&v1.ObjectReference{Namespace: "team", Name: "data"}, "team/data-pvc-1"},
		"it never had a claim": {nil, ""},
	} {
		volume.Spec.ClaimRef = tc.claim
		got, err := inputs.DeletionSecret(t.Context(), class, volume)
		must(t, err)
		if text := describe(got); text != tc.want {
			t.Errorf("%s: the secret is %q, want %q", name, text, tc.want)
		}
	}
}

func describe(reference *v1.SecretReference) string {
	if reference == nil {
		return ""
	}
	return reference.Namespace + "/" + reference.Name
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
