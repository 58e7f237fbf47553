package fuzzobj

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Choices makes choices from bytes. After the last byte, every choice is the first one.
type Choices struct {
	bytes []byte
}

// New returns choices from the bytes.
func New(bytes []byte) *Choices {
	return &Choices{bytes}
}

// Done reports whether all bytes are used.
func (d *Choices) Done() bool {
	return len(d.bytes) == 0
}

// Below returns a number from 0 to n-1.
func (d *Choices) Below(n int) int {
	if d.Done() {
		return 0
	}
	first := d.bytes[0]
	d.bytes = d.bytes[1:]
	return int(first) % n
}

// Pick returns one of the values.
func Pick[T any](d *Choices, values ...T) T {
	return values[d.Below(len(values))]
}

// some returns the values that the next byte selects, nil for none. Each further eight values
// have a byte of their own.
func some[T any](d *Choices, values ...T) []T {
	var chosen []T
	for eight := range slices.Chunk(values, 8) {
		bits := d.Below(1 << len(eight))
		for i, value := range eight {
			if bits>>i&1 == 1 {
				chosen = append(chosen, value)
			}
		}
	}
	return chosen
}

// pointer returns nil for "-".
func pointer[T ~string](value T) *T {
	if value == "-" {
		return nil
	}
	return &value
}

func (d *Choices) storage() v1.ResourceList {
	size := Pick(d, "1Gi", "", "0", "-1Gi", "2Gi", "1", "0.5", "9223372036854775807", "1e30", "-9e40")
	if size == "" {
		return nil
	}
	return v1.ResourceList{v1.ResourceStorage: resource.MustParse(size)}
}

func (d *Choices) modes() []v1.PersistentVolumeAccessMode {
	return some(d, v1.ReadWriteOnce, v1.ReadOnlyMany, v1.ReadWriteMany, v1.ReadWriteOncePod, "ReadNever", "")
}

func (d *Choices) volumeMode() *v1.PersistentVolumeMode {
	return pointer(Pick[v1.PersistentVolumeMode](d, "-", v1.PersistentVolumeFilesystem, v1.PersistentVolumeBlock, "Cloth",
		""))
}

func (d *Choices) deletion() *metav1.Time {
	return Pick(d, nil, &metav1.Time{}, &metav1.Time{Time: metav1.Unix(1, 0).Time})
}

func (d *Choices) labels() map[string]string {
	return Pick(d, nil, map[string]string{"tier": "gold"}, map[string]string{"tier": "lead"}, map[string]string{"": ""})
}

// annotations returns some of the keys, each with a value.
func (d *Choices) annotations(keys []string, values ...string) map[string]string {
	result := map[string]string{}
	for _, key := range some(d, keys...) {
		result[key] = Pick(d, values...)
	}
	return result
}

func (d *Choices) selector() *metav1.LabelSelector {
	expression := func(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator,
			Values: values}}}
	}
	return Pick(d, nil,
		&metav1.LabelSelector{},
		&metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}},
		&metav1.LabelSelector{MatchLabels: map[string]string{"": "no label"}},
		expression("tier", metav1.LabelSelectorOpIn, "gold", "lead"),
		expression("tier", metav1.LabelSelectorOpNotIn, "gold"),
		expression("tier", metav1.LabelSelectorOpIn),
		expression("tier", metav1.LabelSelectorOpExists, "too", "many"),
		expression("tier", "Near", "gold"),
		expression("", metav1.LabelSelectorOpExists))
}
