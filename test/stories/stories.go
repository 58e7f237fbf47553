package stories

import (
	"context"
	"fmt"
	"time"
)

// runKilled kills the provisioner between the creation of a volume and the answer.
func runKilled(ctx context.Context, s *session) ([]Measure, error) {
	return nil, inOrder(
		func() error { return s.createClaims(ctx, className, 1) },
		func() error {
			return s.await(ctx, "the driver has created the volume",
				func(ctx context.Context) (bool, error) { return s.hasStored(ctx, 1) })
		},
		func() error {
			s.say("kill -9 $PROVISIONER  # the volume is created, the answer is on its way")
			return s.cluster.KillProvisioner()
		},
		func() error { return s.deleteClaims(ctx) },
		func() error { return s.awaitNoClaim(ctx) },
		func() error {
			s.say("the provisioner is started again")
			return s.cluster.StartProvisioner(ctx)
		},
	)
}

// racingVolumes is the number of volumes whose deletion races against the controllers, which
// win some of the races.
const racingVolumes = 20

// runPolicyRace lets the controllers no time between the policy and the deletion.
func runPolicyRace(ctx context.Context, s *session) ([]Measure, error) {
	return nil, inOrder(
		func() error { return s.createClass(ctx, retainClass) },
		func() error { return s.createClaims(ctx, retainClass, racingVolumes) },
		func() error { return s.awaitBound(ctx, racingVolumes) },
		func() error { return s.setPolicyAndDelete(ctx) },
		func() error { return s.deleteClaims(ctx) },
		func() error { return s.awaitNothing(ctx) },
	)
}

// runVolumesFirst deletes many volumes before their claims.
func runVolumesFirst(ctx context.Context, s *session) ([]Measure, error) {
	return s.runMany(ctx, s.deleteVolumes, s.deleteClaims)
}

// runClaimsFirst deletes many claims before their volumes.
func runClaimsFirst(ctx context.Context, s *session) ([]Measure, error) {
	return s.runMany(ctx, s.deleteClaims, s.deleteVolumes)
}

// runMany creates volumes, deletes them in the order of the steps, and measures rates.
func (s *session) runMany(ctx context.Context, steps ...func(context.Context) error) ([]Measure, error) {
	bound, err := timed(func() error {
		return inOrder(
			func() error { return s.createClaims(ctx, className, s.volumes) },
			func() error { return s.awaitBound(ctx, s.volumes) })
	})
	if err != nil {
		return nil, err
	}
	gone, err := timed(func() error {
		for _, step := range steps {
			if err := step(ctx); err != nil {
				return err
			}
		}
		return inOrder(
			func() error { return s.awaitNothing(ctx) },
			func() error {
				return s.await(ctx, "the driver has no volume",
					func(ctx context.Context) (bool, error) { return s.hasStored(ctx, 0) })
			})
	})
	return []Measure{rate("volumes bound per second", s.volumes, bound),
		rate("volumes deleted per second", s.volumes, gone)}, err
}

// claimsOfNamespace are the bound claims of the namespace that is deleted.
const claimsOfNamespace = 3

// runNamespace deletes a namespace with bound claims, and with one whose volume is being
// created. The session does the work of the namespace controller, which does not run here.
func runNamespace(ctx context.Context, s *session) ([]Measure, error) {
	s.namespace = "shop-" + string(s.pair)
	err := inOrder(
		func() error { return s.createNamespace(ctx) },
		func() error { return s.createClaims(ctx, className, claimsOfNamespace) },
		func() error { return s.awaitBound(ctx, claimsOfNamespace) },
		func() error { return s.createClaim(ctx, className, "late") },
		func() error {
			return s.await(ctx, "the driver creates the last volume",
				func(ctx context.Context) (bool, error) { return s.hasStored(ctx, claimsOfNamespace+1) })
		})
	if err != nil {
		return nil, err
	}
	took, err := timed(func() error {
		return inOrder(
			func() error { return s.deleteNamespace(ctx) },
			func() error { return s.deleteClaims(ctx) },
			func() error { return s.awaitNoClaim(ctx) },
			func() error { return s.finalizeNamespace(ctx) },
			func() error { return s.awaitNothing(ctx) })
	})
	return []Measure{{Name: "seconds until namespace and PVs are gone", Value: fmt.Sprintf("%.1f", took.Seconds())}}, err
}

// inOrder calls steps up to the first error.
func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// timed returns how long do takes.
func timed(do func() error) (time.Duration, error) {
	begun := time.Now()
	err := do()
	return time.Since(begun), err
}

// rate returns a measure of things per second.
func rate(name string, count int, took time.Duration) Measure {
	return Measure{Name: name, Value: fmt.Sprintf("%.0f", float64(count)/took.Seconds())}
}
