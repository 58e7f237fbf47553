package holder

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// podsOf returns a pod for each way in which the controller is recognized.
func podsOf(c families.Controller) (pods []*corev1.Pod) {
	add := func(labels map[string]string, container corev1.Container) {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}, container}}})
	}
	for _, image := range c.Images {
		add(nil, corev1.Container{Image: "registry.example/x/" + image + ":v1"})
		add(nil, corev1.Container{Image: "rancher/mirrored-x-" + strings.ReplaceAll(image, "/", "-")})
	}
	for _, command := range c.Commands {
		add(nil, corev1.Container{Image: "x", Command: []string{"/bin/" + command}})
		add(nil, corev1.Container{Image: "x", Command: []string{"/hyper", command}})
		add(nil, corev1.Container{Image: "x", Args: []string{command}})
	}
	if len(c.Labels) > 0 {
		add(c.Labels, corev1.Container{Image: "x"})
	}
	if c.Provisioner != "" {
		add(nil, corev1.Container{Image: "x", Args: []string{"--provisioner=" + c.Provisioner}})
		add(nil, corev1.Container{Image: "x", Env: []corev1.EnvVar{{Name: "PROVISIONER_NAME", Value: c.Provisioner}}})
	}
	return pods
}

// A pod that is not found makes its controller look gone, and a user strip its finalizer.
func TestPodOfEveryKnownControllerIsKept(t *testing.T) {
	controllers := families.Recognizable()
	for _, family := range families.All() {
		controllers = append(controllers, family.Controllers()...)
	}
	for _, name := range []string{"rancher.io/local-path", "example.com/nfs"} {
		controllers = append(controllers, families.Provisioner(name))
	}
	all := &programs{families.Recognizable(), map[string]bool{}}
	for _, controller := range controllers {
		for _, pod := range podsOf(controller) {
			sidecar := pod.DeepCopy()
			sidecar.Spec.InitContainers, sidecar.Spec.Containers = sidecar.Spec.Containers, nil
			sidecar.Spec.InitContainers[1].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
			for _, p := range []*corev1.Pod{pod, sidecar} {
				if len(fittingContainers(controller, ofPod(p))) == 0 {
					t.Errorf("the pod is none of %s: %+v", controller.Name, p.Spec)
				} else if !all.runs(p) {
					t.Errorf("the pod of %s is dropped: %+v", controller.Name, p.Spec)
				}
			}
		}
	}
}

func TestPodsThatRunNoControllerAreDropped(t *testing.T) {
	var lists atomic.Int32
	f := Finder{Reader: clustertest.NewReader(t, func(w http.ResponseWriter, r *http.Request) {
		lists.Add(1)
		pod := func(name, image string) metav1.Object {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}}}
		}
		ended := pod("ended", "csi-attacher").(*corev1.Pod)
		ended.Status.Phase = corev1.PodSucceeded
		clustertest.Objects{"pods": {pod("app", "database"), pod("attacher", "csi-attacher:v4"), ended}}.ServeHTTP(w, r)
	})}
	for range 2 {
		pods, seen := f.pods(t.Context(), families.Controller{Name: "any"})
		if len(pods) != 1 || pods[0].Name != "attacher" || !seen {
			t.Errorf("%d pods are kept (all seen: %v), want the one that runs a controller", len(pods), seen)
		}
	}
	if got := lists.Load(); got != 1 {
		t.Errorf("the pods were listed %d times", got)
	}
}
