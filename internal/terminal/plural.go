package terminal

import "fmt"

// Count returns the number and the noun, such as "1 volume" or "3 volumes".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Times returns "once", or the number of times. What happened did so once at least.
func Times(n int32) string {
	if n <= 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
