package fuzzobj

import (
	"fmt"
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/runtime"
)

// Keys of the claims and names of the volumes in Objects.
var (
	Claims  = []string{Namespace + "/p0", Namespace + "/p1"}
	Volumes = []string{"v0", "v1", "v2"}
)

// Objects returns some of these claims and volumes, some classes and perhaps a pod.
func (d *Dice) Objects() []runtime.Object {
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

// Seeds returns bytes that lead to many different choices.
func Seeds(count, length int) [][]byte {
	seeds := [][]byte{{}}
	for number := range count {
		random := rand.NewChaCha8([32]byte{byte(number), byte(number >> 8)})
		seed := make([]byte, length)
		_, _ = random.Read(seed) // never fails
		seeds = append(seeds, seed)
	}
	return seeds
}
