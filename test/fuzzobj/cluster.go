package fuzzobj

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// Keys of the claims and names of the volumes in Objects.
var (
	Claims  = []string{Namespace + "/p0", Namespace + "/p1"}
	Volumes = []string{"v0", "v1", "v2"}
)

// Objects returns some of these claims and volumes, some classes and perhaps a pod.
func (d *Choices) Objects() []runtime.Object {
	var objects []runtime.Object
	maybe := func(object runtime.Object) {
		if d.Below(5) > 0 {
			objects = append(objects, object)
		}
	}
	for i := range Claims {
		maybe(d.Claim(fmt.Sprint("p", i)))
	}
	for _, name := range Volumes {
		maybe(d.Volume(name))
	}
	for i := range 2 {
		maybe(d.Class(fmt.Sprint("c", i)))
	}
	maybe(d.Pod("pod"))
	return objects
}

// AddSeeds adds so many seeds of a length to the corpus, each with the further arguments of the target.
func AddSeeds(f *testing.F, count, length int, more ...any) {
	f.Helper()
	for _, data := range seeds(count, length) {
		f.Add(append([]any{data}, more...)...)
	}
}

// seeds returns bytes that lead to many different choices.
func seeds(count, length int) [][]byte {
	all := [][]byte{{}}
	for number := range count {
		random := rand.NewChaCha8([32]byte{byte(number), byte(number >> 8)})
		seed := make([]byte, length)
		_, _ = random.Read(seed) // never fails
		all = append(all, seed)
	}
	return all
}
