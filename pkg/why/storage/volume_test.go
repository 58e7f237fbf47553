package storage

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
	"github.com/exeunt-io/exeunt/test/paste"
)

// withClaims returns the Explorer of a cluster with these claims and a provisioner of the image that leads.
func withClaims(t *testing.T, image, identity string, claims ...corev1.PersistentVolumeClaim) explorer {
	t.Helper()
	version := metav1.ListMeta{ResourceVersion: "7"}
	lease, deployment := provisioner(image, identity)
	return explorer{reader: clustertest.NewReader(t, func(w http.ResponseWriter, request *http.Request) {
		var answer any = corev1.PersistentVolumeList{ListMeta: version} // an empty list of any kind
		switch path := request.URL.Path; {
		case strings.HasSuffix(path, "/leases") && image != "":
			answer = coordinationv1.LeaseList{ListMeta: version, Items: []coordinationv1.Lease{lease}}
		case strings.HasSuffix(path, "/deployments") && image != "":
			answer = appsv1.DeploymentList{ListMeta: version, Items: []appsv1.Deployment{deployment}}
		case strings.HasSuffix(path, "/persistentvolumeclaims"):
			answer = corev1.PersistentVolumeClaimList{ListMeta: version, Items: claims}
		case strings.HasSuffix(path, "/persistentvolumeclaims/data") && len(claims) > 0:
			claims[0].TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}
			answer = claims[0]
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	})}
}

func claimOfVolume(namespace, name string, uid types.UID) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "v"},
	}
}

// A claim that was created again expects the disk which the deletion of the volume deletes.
func TestDiskThatClaimNamesIsKeptFirst(t *testing.T) {
	failed := newVolume(corev1.VolumeFailed, "data", finalizer.External)
	plugin := newVolume(corev1.VolumeFailed, "data", finalizer.InTree)
	plugin.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs",
		Path: "/"}}
	plugin.Status.Message = "no volume plugin matched"
	external := newVolume(corev1.VolumeReleased, "data")
	external.DeletionTimestamp = nil // without a finalizer it would be gone
	external.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/opt/v"}}
	external.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": "rancher.io/local-path"}
	for name, v := range map[string]*corev1.PersistentVolume{
		"released": newVolume(corev1.VolumeReleased, "data", finalizer.External), "failed": failed, "in-tree": plugin,
		"without a CSI driver": external,
	} {
		for image, identity := range map[string]string{"": "", stockImage: stockIdentity, ownImage: ownIdentity} {
			for _, claim := range []corev1.PersistentVolumeClaim{claimOfVolume("shop", "data", "2"),
				claimOfVolume("other", "again", "3")} {
				object, err := toUnstructured("v1", "PersistentVolume", v)
				if err != nil {
					t.Fatal(err)
				}
				for _, found := range explainVolume(t.Context(), withClaims(t, image, identity, claim), object) {
					commands := strings.Split(found.Next, "\n")[1:]
					if len(commands) == 0 || !strings.HasPrefix(commands[0], "kubectl patch pv v ") ||
						!strings.Contains(commands[0], "Retain") || !strings.Contains(found.Next, claim.Name) {
						t.Errorf("%s, %q: the next step is %q, want Retain first", name, image, found.Next)
					}
					paste.ExpectSafe(t, found.Next)
				}
			}
		}
	}
}

// Whether the data is wanted comes before whatever deletes it.
func TestNoFirstAdviceDeletesDisk(t *testing.T) {
	plugin := newVolume(corev1.VolumeFailed, "data", finalizer.InTree)
	plugin.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs",
		Path: "/"}}
	plugin.Status.Message = "no volume plugin matched"
	for name, v := range map[string]*corev1.PersistentVolume{
		"failed": newVolume(corev1.VolumeFailed, "former", finalizer.External), "in-tree": plugin,
		"late": newVolume(corev1.VolumeBound, "data", finalizer.VolumeProtection),
	} {
		object, err := toUnstructured("v1", "PersistentVolume", v)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range explainVolume(t.Context(), provisionedBy(t, stockImage, stockIdentity), object) {
			first, _, _ := strings.Cut(found.Next, ".")
			if strings.Contains(found.Next, "by hand") || strings.Contains(found.Next, "data") &&
				strings.Contains(first, "run the provisioner") {
				t.Errorf("%s: the next step is %q", name, found.Next)
			}
			paste.ExpectSafe(t, found.Next)
		}
	}
}

// An NFS volume has no disk, and its plugin no provisioner.
func TestFailedVolumeNamesWhereItsDataIs(t *testing.T) {
	for want, source := range map[string]corev1.PersistentVolumeSource{
		"the data in NFS directory filer:/export/a,": {NFS: &corev1.NFSVolumeSource{Server: "filer", Path: "/export/a"}},
		"the data in directory /opt/v of its node,":  {HostPath: &corev1.HostPathVolumeSource{Path: "/opt/v"}},
		"the disk of PersistentVolume v,":            {ISCSI: &corev1.ISCSIPersistentVolumeSource{}},
	} {
		v := newVolume(corev1.VolumeFailed, "former", finalizer.InTree)
		v.Spec.PersistentVolumeSource, v.Status.Message = source, "no volume plugin matched"
		object, err := toUnstructured("v1", "PersistentVolume", v)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range explainVolume(t.Context(), provisionedBy(t, stockImage, stockIdentity), object) {
			if !strings.Contains(found.Next, "# no plugin can delete "+want) {
				t.Errorf("the next step is %q, want %q", found.Next, want)
			}
		}
	}
}

// Whoever starts the provisioner again has to know that it deletes the data.
func TestStartOfProvisionerIsSaidToDeleteData(t *testing.T) {
	v := newVolume(corev1.VolumeReleased, "former")
	v.DeletionTimestamp = nil
	v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/opt/v"}}
	v.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": "rancher.io/local-path"}
	object, err := toUnstructured("v1", "PersistentVolume", v)
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "local-path"}
	stopped := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "local-path-storage",
		Name: "local-path-provisioner"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Image: "rancher/local-path-provisioner:v0.0.31"}}},
		},
	}}
	e := explorer{reader: clustertest.NewReader(t, clustertest.Objects{"deployments": {stopped}}.ServeHTTP)}
	found := explainVolume(t.Context(), e, object)
	want := "# the data in directory /opt/v of its node waits for the provisioner rancher.io/local-path, which deletes the data once it runs\n"
	if len(found) != 1 || !strings.HasPrefix(found[0].Next, want) ||
		!strings.Contains(found[0].Next, "scale deployment/local-path-provisioner") {
		t.Errorf("the blockers are %+v, want the next step %q first", found, want)
	}
}

// A volume that is to be scrubbed and used again is not kept on purpose.
func TestVolumeOfOtherPolicyIsNotCalledRetained(t *testing.T) {
	for policy, want := range map[corev1.PersistentVolumeReclaimPolicy]int{
		corev1.PersistentVolumeReclaimRetain: 1, corev1.PersistentVolumeReclaimRecycle: 0} {
		v := newVolume(corev1.VolumeFailed, "data")
		v.DeletionTimestamp, v.Spec.PersistentVolumeReclaimPolicy = nil, policy
		object, err := toUnstructured("v1", "PersistentVolume", v)
		if err != nil {
			t.Fatal(err)
		}
		if found := explainVolume(t.Context(), withClaims(t, "", ""), object); len(found) != want {
			t.Errorf("%s: %+v", policy, found)
		}
	}
}
