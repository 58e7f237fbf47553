package load

import (
	"context"
	"fmt"
	"time"

	"github.com/exeunt-io/exeunt/test/bench/plan"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// between is the time between two single claims.
const between = 300 * time.Millisecond

// single binds claims one after the other, and deletes them one after the other.
func single(ctx context.Context, s *session) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if err := s.bindSingle(ctx, Bind, 0); err != nil {
		return err
	}
	return s.oneByOne(ctx, Reclaim, func(ctx context.Context, i int) (time.Duration, error) {
		claim := claimName(i)
		volume := s.view.volumeOf(claim)
		if s.turn.Scenario.Order != plan.ClaimFirst {
			if err := s.deleteVolume(ctx, volume); err != nil {
				return 0, err
			}
			sandbox.Pause(ctx, between)
		}
		start := time.Now()
		if err := s.deleteClaim(ctx, claim); err != nil {
			return 0, err
		}
		if s.ceiling != nil {
			if err := s.ceiling.reclaim(ctx, claim, volume); err != nil {
				return 0, err
			}
		}
		err := s.view.await(ctx, "the volume is gone", func(v *view) bool { return v.volumes[volume] == nil })
		return time.Since(start), err
	})
}

// bindSingle binds claims one after the other, the first of them with the number.
func (s *session) bindSingle(ctx context.Context, name string, first int) error {
	return s.oneByOne(ctx, name, func(ctx context.Context, i int) (time.Duration, error) {
		start := time.Now()
		claim, err := s.createClaim(ctx, claimName(first+i))
		if err != nil {
			return 0, err
		}
		if s.ceiling != nil {
			if err := s.ceiling.bind(ctx, claim); err != nil {
				return 0, err
			}
		}
		err = s.view.await(ctx, fmt.Sprintf("%s is bound", claim.Name), func(v *view) bool { return v.isBound(claim.Name) })
		return time.Since(start), err
	})
}

// oneByOne measures a phase whose volumes are handled one after the other, and notes the
// latency of each. The rate is that without the time between two volumes.
func (s *session) oneByOne(ctx context.Context, name string,
	handle func(ctx context.Context, i int) (time.Duration, error)) error {
	var latencies []float64
	sum := 0.0
	phase, err := s.measure(ctx, name, s.turn.Scenario.Size, func(ctx context.Context) error {
		for i := range s.turn.Scenario.Size {
			took, err := handle(ctx, i)
			if err != nil {
				return err
			}
			latencies = append(latencies, float64(took)/float64(time.Millisecond))
			sum += took.Seconds()
			sandbox.Pause(ctx, between)
		}
		return nil
	})
	if err != nil {
		return err
	}
	phase.Latencies, phase.Seconds = latencies, sum
	return nil
}
