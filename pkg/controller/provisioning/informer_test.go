package provisioning

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

func TestTheLibrarysOwnAdditionCountsUntilTheWatchBringsTheVolume(t *testing.T) {
	watched, made := cache.NewStore(cache.MetaNamespaceKeyFunc), cache.NewStore(cache.MetaNamespaceKeyFunc)
	s := &store{Store: watched, made: made}
	own := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
	brought := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "uid"}}
	expect := func(what string, want any) {
		t.Helper()
		got, exists, err := s.GetByKey("v")
		if err != nil || exists != (want != nil) || exists && got != want {
			t.Errorf("%s: %v, %v, want %v", what, got, err, want)
		}
	}
	expect("nothing was made", nil)
	must(t, s.Add(own))
	expect("made", own)
	must(t, watched.Add(brought))
	expect("the watch has brought it", brought)
	must(t, made.Delete(own)) // what the handler does
	must(t, watched.Delete(brought))
	expect("the watch has seen it go", nil)
	must(t, watched.Add(brought))
	must(t, s.Add(own)) // the library is late
	must(t, watched.Delete(brought))
	expect("it went after a late addition", nil)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
