package intree

import (
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
)

// Recycling describes the recycler pods of a plugin.
type Recycling struct {
	// Template is the pod. Name, deadline and the source of the first volume are replaced.
	// Nil is the default pod.
	Template *v1.Pod
	// MinimumTimeout is the minimum deadline of the pod in seconds. TimeoutIncrement is
	// the time in seconds for each Gi of the volume.
	MinimumTimeout, TimeoutIncrement int32
}

// pod returns the recycler pod of the volume with the source.
func (r Recycling) pod(volume *v1.PersistentVolume, source v1.VolumeSource) *v1.Pod {
	pod := r.Template.DeepCopy()
	if pod == nil {
		pod = DefaultTemplate()
	}
	pod.Name, pod.GenerateName, pod.Namespace = plugin.RecyclerName(volume), "", r.namespace()
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, plugin.RecyclerAnnotation, plugin.DataID(volume))
	timeout := r.timeout(volume)
	pod.Spec.ActiveDeadlineSeconds = &timeout
	pod.Spec.Volumes[0].VolumeSource = source
	return pod
}

// namespace returns the namespace of the template, or the namespace default.
func (r Recycling) namespace() string {
	if r.Template == nil || r.Template.Namespace == "" {
		return metav1.NamespaceDefault
	}
	return r.Template.Namespace
}

// timeout returns the deadline in seconds. It counts whole Gi, as kube-controller-manager does.
func (r Recycling) timeout(volume *v1.PersistentVolume) int64 {
	capacity := volume.Spec.Capacity[v1.ResourceStorage]
	gi := resource.MustParse("1Gi")
	return max(int64(r.MinimumTimeout), capacity.Value()/gi.Value()*int64(r.TimeoutIncrement))
}

// DefaultTemplate returns the recycler pod that is used without a template file. Image and
// mount point are those of kube-controller-manager.
func DefaultTemplate() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault},
		Spec: v1.PodSpec{
			RestartPolicy: v1.RestartPolicyNever,
			Volumes:       []v1.Volume{{Name: "vol"}},
			Containers: []v1.Container{{
				Name:         "pv-recycler",
				Image:        "registry.k8s.io/build-image/debian-base:bookworm-v1.0.6",
				Command:      []string{"/bin/sh", "-ec"},
				Args:         []string{`cd /scrub; find . -mindepth 1 -delete; left="$(ls -A)"; test -z "$left"`},
				VolumeMounts: []v1.VolumeMount{{Name: "vol", MountPath: "/scrub"}},
			}},
		},
	}
}

// LoadTemplate reads a pod from a file in YAML or JSON. Without a file name it returns
// [DefaultTemplate].
func LoadTemplate(file string) (*v1.Pod, error) {
	if file == "" {
		return DefaultTemplate(), nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read recycler pod: %w", err)
	}
	object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decode recycler pod in %s: %w", file, err)
	}
	pod, isPod := object.(*v1.Pod)
	switch {
	case !isPod:
		return nil, fmt.Errorf("the recycler pod in %s is a %s, not a Pod of v1", file, kind)
	case len(pod.Spec.Volumes) == 0:
		return nil, fmt.Errorf("the recycler pod in %s has no volume that could be replaced by the one to scrub", file)
	case len(pod.Spec.Containers) == 0:
		return nil, fmt.Errorf("the recycler pod in %s has no container", file)
	}
	return pod, nil
}
