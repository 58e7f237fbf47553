package process_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/model/process"
)

// restless is a program that sends another call in each run.
func restless(runs *int, call func(ctx context.Context, env *process.Env, run int) error) process.Build {
	return func(env *process.Env) (*process.Program, error) {
		*runs++
		run := *runs
		return &process.Program{Start: func(ctx context.Context) error { return call(ctx, env, run) }}, nil
	}
}

func readVolume(ctx context.Context, env *process.Env, name string) error {
	_, err := env.Client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	return err
}

func TestMachineNoticesThatProgramDoesNotRepeat(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, env *process.Env, run int) error{
		"another call": func(ctx context.Context, env *process.Env, run int) error {
			return readVolume(ctx, env, fmt.Sprint("disk-", run))
		},
		"no call": func(ctx context.Context, env *process.Env, run int) error {
			if run > 1 {
				return nil
			}
			return readVolume(ctx, env, "disk")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				m, err := process.NewMachine(restless(&runs, call))
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close()
				started, err := m.Next(process.Off, process.Input{Start: &process.Start{}}, "start")
				if err != nil || len(m.Local(started).Calls) != 1 {
					t.Fatalf("calls %v, error %v, want one call", m.Local(started).Calls, err)
				}
				lost := process.Input{Answer: &process.Answered{Answer: process.Answer{Lost: true}}}
				if _, err := m.Next(started, lost, "lost"); err != nil {
					t.Fatalf("the process that is there: %v", err)
				}
				if _, err := m.Next(started, process.Input{Seconds: 1}, "a second"); !errors.Is(err, process.ErrNotRepeated) {
					t.Errorf("error %v, want %v", err, process.ErrNotRepeated)
				}
			})
		})
	}
}
