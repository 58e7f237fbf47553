package machines

import (
	"context"
	"errors"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
)

func TestSocketAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		fault             string
		unsupported       bool
		get, stop, later  string
		delete, afterward string
	}{
		"machine": {get: "Running", stop: "Off", later: "Off", delete: "Gone", afterward: "Gone"},
		"unsupported": {unsupported: true, get: "Running", stop: "(these machines cannot be stopped)", later: "Running",
			delete: "Gone", afterward: "Gone"},
		"stop fails": {fault: "stopFails", get: "Running", stop: "(machine mock-0 cannot be stopped)", later: "Running",
			delete: "Gone", afterward: "Gone"},
		"stop takes": {fault: "stopTakes 5", get: "Running", stop: "Stopping", later: "Off", delete: "Gone",
			afterward: "Gone"},
		"lies": {fault: "lies", get: "Running", stop: "Off", later: "Off", delete: "Gone", afterward: "Gone"},
		"foreign": {fault: "foreign", get: "Foreign", stop: "Foreign", later: "Foreign", delete: "Foreign",
			afterward: "Foreign"},
		"throttled": {fault: "throttled 3", get: "(too many requests)", stop: "(too many requests)",
			later: "(too many requests)", delete: "(too many requests)", afterward: "(too many requests)"},
		"comes back": {fault: "comesBack 5", get: "Running", stop: "Off", later: "Running", delete: "Gone",
			afterward: "Gone"},
		"powered off": {fault: "poweredOff", get: "Off", stop: "Off", later: "Off", delete: "Gone",
			afterward: "Gone"},
		"deleted": {fault: "deleted", get: "Gone", stop: "Gone", later: "Gone", delete: "Gone", afterward: "Gone"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, Config{Nodes: 1, StopUnsupported: tc.unsupported}, nil, func(w *world) {
				if tc.fault != "" {
					w.faults(tc.fault)
				}
				var got []string
				got = append(got, w.call(provider.Get), w.call(provider.Stop))
				w.at(10)
				got = append(got, w.call(provider.Get), w.call(provider.Delete))
				w.at(20)
				got = append(got, w.call(provider.Get))
				for i, want := range []string{tc.get, tc.stop, tc.later, tc.delete, tc.afterward} {
					if got[i] != want {
						t.Errorf("answer %d of get, stop, get, delete, get is %s, want %s", i, got[i], want)
					}
				}
			})
		})
	}
}

func TestRefusalSaysWhatToDo(t *testing.T) {
	inWorld(t, Config{Nodes: 1, StopUnsupported: true}, nil, func(w *world) {
		refused := func() (said *instances.Error) {
			_, err := provider{w.Cloud}.Stop(w.Context(), instances.Instance{ProviderID: "mock://instance-0"})
			if !errors.As(err, &said) {
				t.Fatalf("stop: %v", err)
			}
			return said
		}
		if !refused().Unsupported {
			t.Error("stop is not said to be unsupported")
		}
		w.faults("throttled 3")
		if got := refused().RetryAfter; got != 3*time.Second {
			t.Errorf("retry after %s, want 3s", got)
		}
	})
}

func TestSlowAnswerEndsWithItsClient(t *testing.T) {
	inWorld(t, Config{Nodes: 1}, nil, func(w *world) {
		w.faults("slow")
		if state := w.call(provider.Get); state != "Running" || time.Since(w.begun) != 20*time.Second {
			t.Errorf("answer %s after %s, want Running after 20s", state, time.Since(w.begun))
		}
		ctx, cancel := context.WithTimeout(w.Context(), 5*time.Second)
		defer cancel()
		_, err := provider{w.Cloud}.Stop(ctx, instances.Instance{ProviderID: "mock://instance-0"})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stop ended with %v", err)
		}
		w.expect("")
	})
}

func TestUnknownMachineIsGone(t *testing.T) {
	inWorld(t, Config{Nodes: 1}, nil, func(w *world) {
		state, err := provider{w.Cloud}.Get(w.Context(), instances.Instance{ProviderID: "aws:///zone/i-1"})
		if err != nil || state != instances.Gone {
			t.Errorf("get of an unknown machine: %q, %v", state, err)
		}
	})
}

// renewed returns how long ago the Lease was renewed, in seconds.
func (w *world) renewed() float64 {
	w.Helper()
	lease, err := w.client.CoordinationV1().Leases(v1.NamespaceNodeLease).Get(w.Context(), "mock-0", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return time.Since(lease.Spec.RenewTime.Time).Round(time.Second).Seconds()
}

func TestLeaseIsRenewedWhileKubeletReachesServer(t *testing.T) {
	for name, tc := range map[string]struct {
		fault string
		want  bool
	}{
		"none":        {"", true},
		"kubeletDead": {"kubeletDead", false},
		"partition":   {"partition", false},
		"poweredOff":  {"poweredOff", false},
		"deleted":     {"deleted", false},
		"lies":        {"lies", true},
		"stopTakes":   {"stopTakes 600", true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, Config{Nodes: 1}, nil, func(w *world) {
				if tc.fault != "" {
					w.faults(tc.fault)
				}
				if tc.fault == "lies" || tc.fault == "stopTakes 600" {
					w.call(provider.Stop)
				}
				w.at(200)
				if got := w.renewed() <= 10; got != tc.want {
					t.Errorf("the Lease was renewed %v s ago", w.renewed())
				}
			})
		})
	}
}

func TestMachineThatComesBackKeepsItsNode(t *testing.T) {
	inWorld(t, Config{Nodes: 1}, nil, func(w *world) {
		w.create(newPod("web"))
		w.faults("comesBack 60")
		w.call(provider.Stop)
		if err := w.client.CoreV1().Nodes().Delete(w.Context(), "mock-0", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.at(59)
		if w.renewed() < 50 {
			t.Errorf("the Lease was renewed %v s ago", w.renewed())
		}
		w.at(75)
		if w.renewed() > 10 {
			t.Errorf("the Lease was renewed %v s ago", w.renewed())
		}
		if _, err := w.client.CoreV1().Nodes().Get(w.Context(), "mock-0", metav1.GetOptions{}); err == nil {
			t.Error("the machine registered a Node when it came back")
		}
		w.expect("0 web started, 0 mock-0 poweroff, 60 web started")
	})
}

func TestUnknownFaultChangesNothing(t *testing.T) {
	inWorld(t, Config{Nodes: 1}, nil, func(w *world) {
		w.faults("foreign")
		for _, text := range []string{`[{"node":"mock-0","fault":"bored"}]`, `[{"node":`, `{}`} {
			if err := w.setFaults([]byte(text)); err == nil {
				t.Errorf("faults %s are accepted", text)
			}
		}
		if got := w.call(provider.Get); got != "Foreign" {
			t.Errorf("get answers %s, want Foreign", got)
		}
	})
}
