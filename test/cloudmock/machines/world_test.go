package machines

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
)

// world is a cloud on a fake API server, in a bubble of synctest: time passes once nothing is left to be done.
type world struct {
	*testing.T
	*Cloud
	client *fake.Clientset
	lines  *bytes.Buffer
	begun  time.Time
}

// inWorld runs a test with this number of machines, which have registered their Nodes.
func inWorld(t *testing.T, config Config, objects []runtime.Object, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		config.NoScheduler = true
		if config.LeaseDuration == 0 {
			config.LeaseDuration = 40 * time.Second
		}
		w := &world{T: t, client: fake.NewClientset(objects...), lines: &bytes.Buffer{}}
		w.client.PrependReactor("create", "*", setUID)
		w.Cloud = newCloud(ctx, w.client, config, w.lines)
		ended := make(chan error, 1)
		go func() { ended <- w.run(ctx) }()
		synctest.Wait()
		<-time.After(time.Second) // the caches of the informers have synced
		synctest.Wait()
		w.begun = time.Now()
		test(w)
		stop()
		if err := <-ended; err != nil {
			t.Errorf("cloud ended: %v", err)
		}
		w.group.Wait()
	})
}

// setUID gives an object that is created a UID, as an API server does, and goes on.
func setUID(action clienttesting.Action) (bool, runtime.Object, error) {
	object := action.(clienttesting.CreateAction).GetObject()
	if accessor, err := meta.Accessor(object); err == nil && accessor.GetUID() == "" {
		accessor.SetUID(types.UID("uid-of-" + accessor.GetName()))
	}
	return false, nil, nil
}

// at waits until so many seconds have passed since the beginning, and everything has been done.
func (w *world) at(seconds float64) {
	w.Helper()
	<-time.After(time.Until(w.begun.Add(time.Duration(seconds * float64(time.Second)))))
	synctest.Wait()
}

// newPod returns a pod on mock-0 with 30 s of grace; each change is an annotation, key=value.
func newPod(name string, annotations ...string) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Annotations: map[string]string{}},
		Spec: v1.PodSpec{NodeName: "mock-0", TerminationGracePeriodSeconds: new(int64(30)),
			Containers: []v1.Container{{Name: "main"}}},
	}
	for _, annotation := range annotations {
		key, value, _ := strings.Cut(annotation, "=")
		pod.Annotations["cloudmock.exeunt.io/"+key] = value
	}
	return pod
}

func (w *world) create(pod *v1.Pod) {
	w.Helper()
	if _, err := w.client.CoreV1().Pods(pod.Namespace).Create(w.Context(), pod, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

// pod returns the pod of the name, or nil.
func (w *world) pod(name string) *v1.Pod {
	w.Helper()
	pod, err := w.client.CoreV1().Pods("ns").Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return pod
}

// setGrace deletes the pod, or deletes it again, with a grace period.
func (w *world) setGrace(name string, seconds int64) {
	w.Helper()
	pod := w.pod(name)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now()}, &seconds
	if _, err := w.client.CoreV1().Pods("ns").Update(w.Context(), pod, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

// forget removes the pod from the API.
func (w *world) forget(name string) {
	w.Helper()
	if err := w.client.CoreV1().Pods("ns").Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

// faults replaces all faults: "kubeletDead", or "comesBack 5" with seconds, of mock-0.
func (w *world) faults(texts ...string) {
	w.Helper()
	all := []Fault{}
	for _, text := range texts {
		fault := Fault{Node: "mock-0"}
		_, _ = fmt.Sscan(text, &fault.Kind, &fault.Seconds)
		all = append(all, fault)
	}
	text, err := json.Marshal(all)
	if err != nil {
		w.Fatal(err)
	}
	if err := w.setFaults(text); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

// story returns the log as one line, with the seconds since the beginning: "0 web started, 5 web sigterm".
func (w *world) story() string {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var parts []string
	for line := range strings.Lines(w.lines.String()) {
		var e Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			w.Fatal(err)
		}
		words := []string{fmt.Sprint(e.Time.Sub(w.begun).Round(time.Millisecond).Seconds())}
		for _, word := range []string{strings.TrimPrefix(e.Pod, "ns/"), e.Volume} {
			if word != "" {
				words = append(words, word)
			}
		}
		if e.Pod == "" {
			words = append(words, e.Node)
		}
		parts = append(parts, strings.Join(append(words, string(e.Event)), " "))
	}
	return strings.Join(parts, ", ")
}

func (w *world) expect(want string) {
	w.Helper()
	if got := w.story(); got != want {
		w.Errorf("happened:\n%s\nwant:\n%s", got, want)
	}
}

// call sends a request for mock-0 to the provider and returns the state, or the error in parentheses.
func (w *world) call(send func(provider, context.Context, instances.Instance) (instances.State, error)) string {
	w.Helper()
	state, err := send(provider{w.Cloud}, w.Context(), instances.Instance{ProviderID: "mock://instance-0"})
	synctest.Wait()
	if err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	return string(state)
}

// seeUpdates calls see for each state of a pod that is written.
func (w *world) seeUpdates(see func(*v1.Pod)) {
	w.Helper()
	if _, err := w.views.pods.AddEventHandler(changes(func(object any, _ bool) { see(object.(*v1.Pod)) })); err != nil {
		w.Fatal(err)
	}
}
