package load

import (
	"context"
	"fmt"
	"time"

	"github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

const (
	// restSeconds is how long nothing happens.
	restSeconds = 60
	// standbyTime is how long a replica that stands by has run when the leader ends.
	standbyTime = 5 * time.Second
)

// atRest lets nothing happen for a minute. What it cost is per second.
func atRest(ctx context.Context, s *session) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	phase, err := s.measure(ctx, "rest", restSeconds, func(ctx context.Context) error {
		sandbox.Pause(ctx, restSeconds*time.Second)
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	phase.Unit = "second"
	return nil
}

// startUp starts the programs while a claim waits for them.
func startUp(ctx context.Context, s *session) error {
	claim, err := s.createClaim(ctx, claimName(0))
	if err != nil {
		return err
	}
	var phase *measure.Phase
	phase, err = s.measure(ctx, "start", 1, func(ctx context.Context) error {
		if err := s.programs.Start(ctx); err != nil {
			return err
		}
		return s.view.await(ctx, "the claim is bound", func(v *view) bool { return v.isBound(claim.Name) })
	})
	if err != nil {
		return err
	}
	phase.Unit = "start"
	phase.Latencies = []float64{phase.Seconds * 1000}
	return nil
}

// handOver stops the leader, as a drain does, and kills the next one, whose lease must expire. The
// latency is that until the replica that stood by has bound a claim.
func handOver(ctx context.Context, s *session) error {
	if err := s.programs.Start(ctx); err != nil {
		return err
	}
	if err := s.bindAll(ctx, 1); err != nil {
		return err
	}
	for i, end := range []struct {
		name string
		end  func(leader *sandbox.Process) error
	}{
		{"stopped", func(leader *sandbox.Process) error { return leader.Stop(ctx) }},
		{"killed", (*sandbox.Process).Kill},
	} {
		if err := s.programs.StartReplica(ctx, fmt.Sprintf("standby %d", i+1)); err != nil {
			return err
		}
		sandbox.Pause(ctx, standbyTime)
		start := time.Now()
		if err := s.programs.EndLeader(end.end); err != nil {
			return err
		}
		if _, err := s.createClaim(ctx, claimName(i+1)); err != nil {
			return err
		}
		if err := s.view.awaitBound(ctx, i+2); err != nil {
			return err
		}
		took := time.Since(start).Seconds()
		s.phases = append(s.phases, measure.Phase{Name: end.name, Volumes: 1, Unit: "hand-over", Seconds: took,
			Latencies: []float64{took * 1000}})
	}
	return nil
}
