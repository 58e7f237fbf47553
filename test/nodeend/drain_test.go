package nodeend

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// cluster has a node and these pods on it. The budget refuses so many evictions; one that is not refused ends its pod.
func cluster(refusals int, pods ...*v1.Pod) (*fake.Clientset, *int) {
	objects := []runtime.Object{&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "old"}}}
	for _, pod := range pods {
		objects = append(objects, pod)
	}
	client, evictions := fake.NewClientset(objects...), new(int)
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "eviction" {
			return false, nil, nil
		}
		if *evictions++; *evictions <= refusals {
			return true, nil, apierrors.NewTooManyRequests("budget", 0)
		}
		name := action.(clienttesting.CreateAction).GetObject().(metav1.Object).GetName()
		return true, nil, client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), "shop", name)
	})
	return client, evictions
}

func podOn(name string, change func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: v1.PodSpec{NodeName: "old"}}
	if change != nil {
		change(pod)
	}
	return pod
}

func TestDrainRepeatsARefusedEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, evictions := cluster(3, podOn("web", nil))
		begun := time.Now()
		if err := Drain(t.Context(), client, "old", time.Minute); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 15*time.Second || *evictions != 4 {
			t.Errorf("%d evictions in %v, want 4 in 15 s", *evictions, took)
		}
		node, err := client.CoreV1().Nodes().Get(t.Context(), "old", metav1.GetOptions{})
		if err != nil || !node.Spec.Unschedulable {
			t.Errorf("the node is not cordoned: %v", err)
		}
	})
}

func TestDrainGivesUpAtItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := cluster(1000, podOn("web", nil))
		begun := time.Now()
		err := Drain(t.Context(), client, "old", time.Minute)
		if err == nil || !strings.Contains(err.Error(), "evict pod shop/web: global timeout reached: 1m0s") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("gave up after %v", took)
		}
	})
}

func TestDrainWaitsForThePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "old"}}, podOn("web", nil))
		err := Drain(t.Context(), client, "old", time.Minute) // the fake server evicts nothing
		if err == nil || !strings.Contains(err.Error(), "wait until pod shop/web is gone: global timeout") {
			t.Errorf("error %v", err)
		}
	})
}

func TestDrainLeavesDaemonsAndStaticPods(t *testing.T) {
	client, _ := cluster(0,
		podOn("web", nil),
		podOn("static", func(p *v1.Pod) { p.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "mock"} }),
		podOn("daemon", func(p *v1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: ptr.To(true)}}
		}))
	pods, err := PodsOf(context.Background(), client, "old")
	if err != nil || len(pods) != 1 || pods[0].Name != "web" {
		t.Errorf("%v, %v", pods, err)
	}
}
