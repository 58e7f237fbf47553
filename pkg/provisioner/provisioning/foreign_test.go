package provisioning_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller/partial"
	"github.com/exeunt-io/exeunt/pkg/provisioner/provisioning"
	"github.com/exeunt-io/exeunt/test/controllertest"
)

// volumeOf returns a bound volume of the driver.
func volumeOf(driver, name string) *v1.PersistentVolume {
	volume := foreignVolume()
	volume.Name, volume.UID = name, types.UID(name)
	volume.Annotations["pv.kubernetes.io/provisioned-by"], volume.Spec.CSI.Driver = driver, driver
	return volume
}

// server streams volumes of another driver and one of the driver "ours.example.com".
type server struct{ events []byte }

func newServer(tb testing.TB, foreign int) *rest.Config {
	tb.Helper()
	s := &server{}
	for i := range foreign {
		s.add(tb, "ADDED", volumeOf("theirs.example.com", fmt.Sprint("pvc-", i)))
	}
	s.add(tb, "ADDED", volumeOf("ours.example.com", "ours"))
	s.add(tb, "BOOKMARK", &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2",
		Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
	s.add(tb, "DELETED", volumeOf("theirs.example.com", "pvc-0"))
	listening := httptest.NewServer(s)
	tb.Cleanup(listening.Close)
	return &rest.Config{Host: listening.URL, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: apiruntime.ContentTypeProtobuf,
			AcceptContentTypes: apiruntime.ContentTypeProtobuf}}
}

// add appends a watch event in its frame.
func (s *server) add(tb testing.TB, event string, object apiruntime.Object) {
	tb.Helper()
	raw := controllertest.Encode(tb, apiruntime.ContentTypeProtobuf, object)
	data, err := apiruntime.Encode(protobuf.NewRawSerializer(scheme.Scheme, scheme.Scheme),
		&metav1.WatchEvent{Type: event, Object: apiruntime.RawExtension{Raw: raw}})
	if err != nil {
		tb.Fatal(err)
	}
	size := len(data)
	s.events = append(s.events, byte(size>>24), byte(size>>16), byte(size>>8), byte(size))
	s.events = append(s.events, data...)
}

// ServeHTTP streams the events and keeps the watch open.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/persistentvolumes") || r.URL.Query().Get("watch") == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", apiruntime.ContentTypeProtobuf+";stream=watch")
	_, _ = w.Write(s.events)
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// volumesOf returns the volumes that a provisioner caches.
func volumesOf(tb testing.TB, config *rest.Config, rules partial.Rules) []any {
	tb.Helper()
	whole, err := kubernetes.NewForConfig(config)
	if err != nil {
		tb.Fatal(err)
	}
	client, err := partial.NewClient(config, whole, rules)
	if err != nil {
		tb.Fatal(err)
	}
	volumes := provisioning.NewVolumes(client, provisioning.Names{Driver: "ours.example.com"})
	ctx, stop := context.WithCancel(tb.Context())
	var running sync.WaitGroup
	running.Go(func() { volumes.RunWithContext(ctx) })
	defer running.Wait()
	defer stop()
	cache.WaitForCacheSync(ctx.Done(), volumes.HasSynced)
	return volumes.GetStore().List()
}

func TestOnlyOwnVolumesAreCached(t *testing.T) {
	config, names := newServer(t, 5), provisioning.Names{Driver: "ours.example.com"}
	for name, rules := range map[string]partial.Rules{"whole": nil, "partial": names.Rules()} {
		t.Run(name, func(t *testing.T) {
			volumes := volumesOf(t, config, rules)
			if len(volumes) != 1 {
				t.Fatalf("%d volumes are cached, want 1", len(volumes))
			}
			if own := volumes[0].(*v1.PersistentVolume); own.Name != "ours" || own.Spec.CSI.VolumeHandle == "" ||
				own.Spec.ClaimRef.UID == "" {
				t.Errorf("cached %v", own)
			}
		})
	}
}

// BenchmarkForeignVolumes fills the cache of one provisioner in a cluster with 10,000 volumes of
// another driver.
func BenchmarkForeignVolumes(b *testing.B) {
	const foreign = 10_000
	config, names := newServer(b, foreign), provisioning.Names{Driver: "ours.example.com"}
	for name, rules := range map[string]partial.Rules{"whole": nil, "partial": names.Rules()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			before := cpu(b)
			for b.Loop() {
				volumesOf(b, config, rules)
			}
			b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N)/foreign, "cpu-µs/volume")
		})
	}
}

// cpu returns the CPU time of this process, which does not depend on the load of the machine.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
