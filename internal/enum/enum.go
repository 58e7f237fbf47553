// Package enum names the values of enums in logs and test failures.
package enum

import "strconv"

// Name returns the name of an enum's value, names being those of the values 0, 1, 2, ...
func Name[T ~int](value T, names ...string) string {
	if value < 0 || int(value) >= len(names) {
		return "invalid(" + strconv.Itoa(int(value)) + ")"
	}
	return names[value]
}
