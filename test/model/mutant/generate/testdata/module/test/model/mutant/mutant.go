// Package mutant stands for the real package of this name.
package mutant

// On reports whether the mutant is active.
func On(int) bool { return false }

// Choose returns changed if the mutant is active.
func Choose[T any](id int, changed, original T) T {
	if On(id) {
		return changed
	}
	return original
}
