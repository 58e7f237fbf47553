package process

import (
	"fmt"
	"time"
)

// String names the input in one line.
func (i Input) String() string {
	switch {
	case i.Start != nil:
		return fmt.Sprintf("start with %d objects", len(i.Start.Listed))
	case i.See != nil && i.See.JSON == "":
		return fmt.Sprintf("sees that %s %s is gone", i.See.Resource, i.See.Name)
	case i.See != nil:
		return fmt.Sprintf("sees version %d of %s %s", i.See.Version, i.See.Resource, i.See.Name)
	case i.Reconcile != nil:
		return fmt.Sprintf("reconciles %s in loop %d", i.Reconcile.Key, i.Reconcile.Loop)
	case i.Answer != nil && i.Answer.Lost:
		return "gets no answer"
	case i.Answer != nil:
		return fmt.Sprintf("gets answer %d %s", i.Answer.Response.Code, i.Answer.Code)
	}
	return fmt.Sprintf("%d seconds pass", i.Seconds)
}

// take gives the actor one input and lets it work.
func (a *actor) take(input Input) error {
	switch {
	case input.Start != nil:
		if err := safely(func() error { return a.start(input.Start.Listed) }); err != nil {
			return err
		}
	case input.See != nil:
		if err := safely(func() error { return a.see(*input.See, input.Listed) }); err != nil {
			return err
		}
	case input.Reconcile != nil:
		a.reconcile(input.Reconcile.Loop, input.Reconcile.Key)
	case input.Answer != nil:
		if err := a.answer(input.Answer.Call, input.Answer.Answer); err != nil {
			return err
		}
	default:
		<-time.After(time.Duration(input.Seconds) * time.Second)
	}
	return a.settle()
}
