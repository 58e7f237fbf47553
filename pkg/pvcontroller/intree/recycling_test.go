package intree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
)

func TestRecyclerPodHasDeadline(t *testing.T) {
	template := intree.DefaultTemplate()
	recycling := intree.Recycling{Template: template, MinimumTimeout: 60, TimeoutIncrement: 30}
	for name, tc := range map[string]struct {
		plugin   intree.Recycler
		volume   *v1.PersistentVolume
		capacity string
		deadline int64
	}{
		"small volume": {&intree.HostPath{Recycling: recycling}, at("/data"), "1Gi", 60},
		"large volume": {&intree.NFS{Recycling: recycling}, export("server", "/a"), "10.5Gi", 300},
	} {
		t.Run(name, func(t *testing.T) {
			tc.volume.Name, tc.volume.UID = "v", "u"
			tc.volume.Spec.ClaimRef = &v1.ObjectReference{UID: "c"}
			tc.volume.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse(tc.capacity)}
			pod := tc.plugin.RecyclerPod(tc.volume)
			if pod.Namespace != "default" || pod.Name != "recycler-for-v" || *pod.Spec.ActiveDeadlineSeconds != tc.deadline {
				t.Errorf("pod %s/%s with deadline %d, want default/recycler-for-v with %d", pod.Namespace, pod.Name,
					*pod.Spec.ActiveDeadlineSeconds, tc.deadline)
			}
			if got := plugin.RecyclerOf(pod, tc.volume); got != plugin.RecyclerRunning {
				t.Errorf("RecyclerOf the new pod = %v, want %v", got, plugin.RecyclerRunning)
			}
			if source := pod.Spec.Volumes[0].VolumeSource; source.HostPath == nil && source.NFS == nil {
				t.Errorf("the pod scrubs %+v", source)
			}
		})
	}
	if template.Name != "" || template.Spec.ActiveDeadlineSeconds != nil || template.Spec.Volumes[0].HostPath != nil {
		t.Errorf("the template was changed: %+v", template)
	}
}

func TestLoadTemplate(t *testing.T) {
	const good = "apiVersion: v1\nkind: Pod\nmetadata: {namespace: scrub}\nspec:\n  volumes: [{name: vol}]\n  containers: [{name: scrub, image: scrub}]\n"
	for name, tc := range map[string]struct {
		text, complaint string
	}{
		"valid template": {good, ""},
		"no volume":      {strings.Replace(good, "[{name: vol}]", "[]", 1), "no volume"},
		"no container":   {strings.Replace(good, "[{name: scrub, image: scrub}]", "[]", 1), "no container"},
		"another kind":   {"apiVersion: v1\nkind: ConfigMap\n", "not a Pod"},
		"not an object":  {"scrub", "decode"},
		"empty file":     {"", "decode"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pod.yaml")
			if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			pod, err := intree.LoadTemplate(file)
			switch {
			case tc.complaint == "" && (err != nil || pod.Namespace != "scrub"):
				t.Errorf("LoadTemplate = %+v, %v", pod, err)
			case tc.complaint != "" && (err == nil || !strings.Contains(err.Error(), tc.complaint) ||
				strings.Contains(err.Error(), "\n")):
				t.Errorf("LoadTemplate = %v, want one sentence with %q", err, tc.complaint)
			}
		})
	}
	if _, err := intree.LoadTemplate(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there was read")
	}
	if pod, err := intree.LoadTemplate(""); err != nil || len(pod.Spec.Containers) != 1 {
		t.Errorf("without a file: %+v, %v", pod, err)
	}
}

func TestRecyclerPodHasNodeAffinityOfVolume(t *testing.T) {
	volume := at("/data")
	if pod := (&intree.HostPath{}).RecyclerPod(volume); pod.Spec.Affinity != nil {
		t.Errorf("the pod of a volume of any node has %+v", pod.Spec.Affinity)
	}
	volume.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn,
			Values: []string{"a"}}},
	}}}}
	template := intree.DefaultTemplate()
	template.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{}}
	affinity := (&intree.HostPath{Recycling: intree.Recycling{Template: template}}).RecyclerPod(volume).Spec.Affinity
	if affinity.PodAffinity == nil ||
		affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Values[0] != "a" {
		t.Errorf("the pod has %+v", affinity)
	}
	if template.Spec.Affinity.NodeAffinity != nil {
		t.Error("the template was changed")
	}
}

func TestRecyclerPodHasNamespaceOfTemplate(t *testing.T) {
	template := intree.DefaultTemplate()
	template.Namespace = "scrubbing"
	set := intree.NewSet(migration.New(), &intree.HostPath{Recycling: intree.Recycling{Template: template}}, &intree.NFS{})
	for namespace, want := range map[string]bool{"scrubbing": true, "default": true, "tenant": false} {
		if got := set.RecyclesIn(namespace); got != want {
			t.Errorf("RecyclesIn(%q) = %v, want %v", namespace, got, want)
		}
	}
}
