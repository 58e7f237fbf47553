package load

import (
	"context"

	"github.com/exeunt-io/exeunt/test/bench/plan"
)

// The names of phases.
const (
	// Bind: from the first claim until all are bound.
	Bind = "bind"
	// Reclaim: from the first deletion until all claims and volumes are gone.
	Reclaim = "reclaim"
)

// script runs the phases of a scenario.
type script func(context.Context, *session) error

// scripts returns the script of each kind.
func scripts() map[plan.Kind]script {
	return map[plan.Kind]script{
		plan.Storm: storm, plan.Static: static, plan.Single: single, plan.Rest: atRest, plan.Start: startUp,
		plan.Memory: storm, plan.HandOver: handOver,
		plan.Selectors: selectors, plan.Gate: gate, plan.Failing: failing, plan.Pods: pods, plan.Drivers: storm,
		plan.Cascade: cascade, plan.Release: release,
	}
}

// storm creates all claims at once, and deletes them and their volumes once all are bound.
func storm(ctx context.Context, s *session) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	size := s.turn.Scenario.Size
	if _, err := s.measure(ctx, Bind, size, func(ctx context.Context) error { return s.bindAll(ctx, size) }); err != nil {
		return err
	}
	_, err := s.measure(ctx, Reclaim, size, func(ctx context.Context) error { return s.reclaimAll(ctx, size) })
	return err
}

// begin starts the programs and handles one volume, so that connections, discovery and caches
// are not measured.
func (s *session) begin(ctx context.Context) error {
	if err := s.programs.Start(ctx); err != nil {
		return err
	}
	if err := s.bindAll(ctx, 1); err != nil {
		return err
	}
	if err := s.reclaimAll(ctx, 1); err != nil {
		return err
	}
	_, err := s.awaitQuiet(ctx)
	return err
}

// bindAll creates claims and waits until they are bound.
func (s *session) bindAll(ctx context.Context, size int) error {
	err := s.forEach(ctx, size, func(ctx context.Context, i int) error {
		claim, err := s.createClaim(ctx, claimName(i))
		if err != nil || s.ceiling == nil {
			return err
		}
		return s.ceiling.bind(ctx, claim)
	})
	if err != nil {
		return err
	}
	return s.view.awaitBound(ctx, size)
}

// forEach calls f for each number below size. Users send some requests at once. The ceiling
// has a goroutine for each volume: some wait for the driver, and the ceiling limits its requests.
func (s *session) forEach(ctx context.Context, size int, f func(ctx context.Context, i int) error) error {
	if s.ceiling != nil {
		return withoutLimit(ctx, size, f)
	}
	return inParallel(ctx, size, f)
}

// reclaimAll deletes all claims, and the volumes before unless they follow by their policy,
// and waits until all are gone.
func (s *session) reclaimAll(ctx context.Context, size int) error {
	volumes := make([]string, size)
	for i := range volumes {
		volumes[i] = s.view.volumeOf(claimName(i))
	}
	first := s.turn.Scenario.Order != plan.ClaimFirst
	deleteVolume := func(ctx context.Context, i int) error { return s.deleteVolume(ctx, volumes[i]) }
	deleteClaim := func(ctx context.Context, i int) error {
		if err := s.deleteClaim(ctx, claimName(i)); err != nil || s.ceiling == nil {
			return err
		}
		return s.ceiling.reclaim(ctx, claimName(i), volumes[i])
	}
	if first {
		if err := s.forEach(ctx, size, deleteVolume); err != nil {
			return err
		}
	}
	if err := s.forEach(ctx, size, deleteClaim); err != nil {
		return err
	}
	return s.view.awaitGone(ctx)
}
