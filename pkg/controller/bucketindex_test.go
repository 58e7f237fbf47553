package controller

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// labelIndexed returns an informer with an index of pods by the values of their labels.
func labelIndexed(t *testing.T) cache.SharedIndexInformer {
	t.Helper()
	return cache.NewSharedIndexInformer(&cache.ListWatch{}, &v1.Pod{}, 0,
		cache.Indexers{"label": BucketIndex(func(object any) []string {
			var values []string
			for _, value := range object.(*v1.Pod).Labels {
				values = append(values, value)
			}
			return values
		})})
}

func labeledPods(informer cache.SharedIndexInformer, value string) []string {
	var names []string
	for _, pod := range FromBucket(informer, "label", value,
		func(pod *v1.Pod) bool { return pod.Labels["a"] == value || pod.Labels["b"] == value }) {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return names
}

func labeledPod(name, a, b string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"a": a, "b": b}}}
}

func TestFromBucketReturnsObjectsOfValueOnly(t *testing.T) {
	informer := labelIndexed(t)
	const pods = 3 * buckets // so that values share buckets
	for i := range pods {
		if err := informer.GetStore().Add(labeledPod(fmt.Sprint("pod-", i), fmt.Sprint(i), fmt.Sprint(i/2))); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []int{1, 2, 3, 99, pods/2 - 1} {
		want := []string{fmt.Sprint("pod-", i), fmt.Sprint("pod-", 2*i), fmt.Sprint("pod-", 2*i+1)}
		slices.Sort(want)
		if got := labeledPods(informer, fmt.Sprint(i)); !slices.Equal(got, slices.Compact(want)) {
			t.Errorf("pods of %d = %v, want %v", i, got, want)
		}
	}
	if got := labeledPods(informer, "none"); got != nil {
		t.Errorf("pods of no value = %v", got)
	}
}

func TestBucketIndexFollowsChanges(t *testing.T) {
	informer := labelIndexed(t)
	for _, step := range []struct {
		change func(any) error
		pod    *v1.Pod
		one    []string
		two    []string
	}{
		{informer.GetStore().Add, labeledPod("p", "1", "2"), []string{"p"}, []string{"p"}},
		{informer.GetStore().Update, labeledPod("p", "2", "2"), nil, []string{"p"}},
		{informer.GetStore().Add, labeledPod("q", "2", "1"), []string{"q"}, []string{"p", "q"}},
		{informer.GetStore().Delete, labeledPod("p", "2", "2"), []string{"q"}, []string{"q"}},
		{informer.GetStore().Delete, labeledPod("q", "2", "1"), nil, nil},
	} {
		if err := step.change(step.pod); err != nil {
			t.Fatal(err)
		}
		if one, two := labeledPods(informer, "1"), labeledPods(informer, "2"); !slices.Equal(one, step.one) ||
			!slices.Equal(two, step.two) {
			t.Errorf("after %s: %v and %v, want %v and %v", step.pod.Name, one, two, step.one, step.two)
		}
	}
}

func TestUnknownBucketIndexHasNothing(t *testing.T) {
	if got := FromBucket(labelIndexed(t), "other", "1", func(*v1.Pod) bool { return true }); got != nil {
		t.Errorf("FromBucket = %v", got)
	}
}

func TestIsKey(t *testing.T) {
	for _, tc := range []struct {
		key, namespace, name string
		want                 bool
	}{
		{"a/b", "a", "b", true},
		{"a/b", "a", "c", false},
		{"a/b", "c", "b", false},
		{"a-b", "a", "b", false},
		{"a/b", "a/b", "", false},
		{"a/b/", "a/b", "", true},
		{"/b", "", "b", true},
		{"b", "", "b", false},
		{"", "", "", false},
		{"ab/c", "a", "b/c", false},
	} {
		if got := IsKey(tc.key, tc.namespace, tc.name); got != tc.want {
			t.Errorf("IsKey(%q, %q, %q) = %t, want %t", tc.key, tc.namespace, tc.name, got, tc.want)
		}
	}
}
