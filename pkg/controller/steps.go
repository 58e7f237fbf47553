package controller

import "errors"

// MaxSteps bounds the steps of one reconcile. An object that needs more is changed back
// after each step, for example by an admission webhook.
const MaxSteps = 16

// ErrTooManySteps is returned for an object that needs more than [MaxSteps] steps. The
// loop requeues its key with backoff, and ignores events for the key until then.
var ErrTooManySteps = errors.New("too many writes to one object: another program reverts our writes")

// StepCounter counts the steps of one reconcile. The zero value is ready.
type StepCounter int

// Next counts one step, and returns [ErrTooManySteps] after [MaxSteps] steps.
func (s *StepCounter) Next() error {
	if *s++; *s > MaxSteps {
		return ErrTooManySteps
	}
	return nil
}
