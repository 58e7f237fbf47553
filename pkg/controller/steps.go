package controller

import "errors"

// MaxSteps bounds one pass over one object. Every object settles in fewer steps unless
// somebody undoes what a step writes, such as an admission webhook.
const MaxSteps = 16

// ErrTooManySteps: an object did not settle within one pass. The loop tries it again
// with backoff, and not earlier, whatever events come meanwhile.
var ErrTooManySteps = errors.New("the object does not settle: somebody undoes what is written to it")

// Steps counts the steps of one pass. The zero value is ready.
type Steps int

// Take counts one step, and returns [ErrTooManySteps] if it is one too many.
func (s *Steps) Take() error {
	if *s++; *s > MaxSteps {
		return ErrTooManySteps
	}
	return nil
}
