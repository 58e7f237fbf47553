package manifests

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// kubectlLine is a command in a code block or between backquotes.
var kubectlLine = regexp.MustCompile("(?m)(?:^ *|`)(kubectl [^`\n]*)")

// sample replaces placeholders in a command.
var sample = strings.NewReplacer("NAMESPACE", "storage", "LEASES", "storage", "ACCOUNT", "hostpath-controller", "NAME",
	"name", "DRIVER", "csimock.exeunt.io", "VERSION", "v0.1.0")

// kubectlLines returns the commands with the text in all documents.
func kubectlLines(t *testing.T, contains string) []string {
	t.Helper()
	var found []string
	for _, name := range guides {
		for _, match := range kubectlLine.FindAllStringSubmatch(guide(t, name), -1) {
			if strings.Contains(match[1], contains) {
				found = append(found, sample.Replace(match[1]))
			}
		}
	}
	if len(found) == 0 {
		t.Errorf("no document has a command with %s", contains)
	}
	return found
}

func TestDocumentedKubectlFlagsExist(t *testing.T) {
	server := startServer(t)
	for _, line := range kubectlLines(t, "kubectl") {
		if words := wordsOf(t, line); len(words) < 3 || strings.HasPrefix(words[len(words)-1], "-") &&
			len(words[len(words)-1]) == 2 {
			continue // only the name of a command
		}
		before, _, _ := strings.Cut(line, " | ")
		before, _, _ = strings.Cut(before, " > ")
		before, command, _ := strings.Cut(before, " -- ")
		if command != "" {
			command = " -- " + command
		}
		if output, err := server.kubectl(t, before+" --help"+command); err != nil || !strings.Contains(output, "Usage:") {
			t.Errorf("%s: %v\n%s", line, err, output)
		}
	}
}

func TestDocumentedRightsAreGranted(t *testing.T) {
	server := startServer(t)
	lines := kubectlLines(t, "auth can-i")
	for _, line := range lines {
		if output, err := server.kubectl(t, line); err == nil || !strings.HasPrefix(output, "no") {
			t.Errorf("before anything is granted, %s says %q, error %v", line, output, err)
		}
	}
	for _, object := range slices.Concat(kustomized(t, "pv-controller"), kustomized(t, "overlays/example")) {
		if strings.Contains(object.GetAPIVersion(), "rbac") {
			server.prepareNamespace(t, object)
			if err := server.apply(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, line := range lines {
		if output, err := server.kubectl(t, line); err != nil || strings.TrimSpace(output) != "yes" {
			t.Errorf("%s says %q, error %v", line, output, err)
		}
	}
}

// Volumes that upstream ignores are deleted with their data right after the switch.
func TestDocumentsListWhatTheSwitchDeletes(t *testing.T) {
	server := startServer(t)
	csi := v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "csimock.exeunt.io",
		VolumeHandle: "handle"}}
	migrated := v1.PersistentVolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "disk"}}
	const remove, keep, recycle = v1.PersistentVolumeReclaimDelete, v1.PersistentVolumeReclaimRetain,
		v1.PersistentVolumeReclaimRecycle
	for name, tc := range map[string]struct {
		source v1.PersistentVolumeSource
		policy v1.PersistentVolumeReclaimPolicy
		phase  v1.PersistentVolumePhase
	}{
		"failed-static":   {csi, remove, v1.VolumeFailed},
		"failed-migrated": {migrated, remove, v1.VolumeFailed},
		"released-static": {csi, remove, v1.VolumeReleased},
		"failed-retained": {csi, keep, v1.VolumeFailed},
		"failed-recycled": {migrated, recycle, v1.VolumeFailed},
		"bound":           {csi, remove, v1.VolumeBound},
		"available":       {csi, remove, v1.VolumeAvailable},
	} {
		server.createVolume(t, name, tc.source, tc.policy, tc.phase)
	}
	for _, line := range kubectlLines(t, `(eq .status.phase "Failed")`) {
		output, err := server.kubectl(t, line)
		if err != nil {
			t.Fatal(err)
		}
		const want = "failed-migrated\tFailed\t\tns/failed-migrated\n" +
			"failed-static\tFailed\tcsimock.exeunt.io\tns/failed-static\n" +
			"released-static\tReleased\tcsimock.exeunt.io\tns/released-static\n"
		if output != want {
			t.Errorf("%s\nlists\n%swant\n%s", line, output, want)
		}
	}
}

func TestDocumentedPatchKeepsTheData(t *testing.T) {
	server := startServer(t)
	server.createVolume(t, "name",
		v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h"}},
		v1.PersistentVolumeReclaimDelete, v1.VolumeFailed)
	for _, line := range kubectlLines(t, `"persistentVolumeReclaimPolicy":"Retain"`) {
		if _, err := server.kubectl(t, line); err != nil {
			t.Error(err)
		}
	}
	output, err := server.kubectl(t, "kubectl get pv name -o jsonpath={.spec.persistentVolumeReclaimPolicy}")
	if err != nil || output != "Retain" {
		t.Errorf("the policy is %q, error %v", output, err)
	}
}

// createVolume creates a volume that was bound to a claim of its name in namespace ns.
func (s *server) createVolume(t *testing.T, name string, source v1.PersistentVolumeSource,
	policy v1.PersistentVolumeReclaimPolicy, phase v1.PersistentVolumePhase) {
	t.Helper()
	volumes := kubernetes.NewForConfigOrDie(s.config).CoreV1().PersistentVolumes()
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PersistentVolumeSpec{
		PersistentVolumeSource: source, PersistentVolumeReclaimPolicy: policy,
		AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
		Capacity:    v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")},
		ClaimRef:    &v1.ObjectReference{Namespace: "ns", Name: name, UID: "gone"},
	}}
	if phase == v1.VolumeAvailable {
		volume.Spec.ClaimRef = nil
	}
	created, err := volumes.Create(t.Context(), volume, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	created = created.DeepCopy()
	created.Status.Phase = phase
	if _, err := volumes.UpdateStatus(t.Context(), created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
