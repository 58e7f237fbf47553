package load

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// failing binds single claims before and while the deletions of other volumes fail again and again.
// The driver refuses every DeleteVolume.
func failing(ctx context.Context, s *session) error {
	if err := s.programs.Start(ctx); err != nil {
		return err
	}
	size, others := s.turn.Scenario.Size, s.turn.Scenario.Others
	if err := s.bindAll(ctx, others); err != nil {
		return err
	}
	if err := s.bindSingle(ctx, "bind alone", others); err != nil {
		return err
	}
	err := inParallel(ctx, others, func(ctx context.Context, i int) error {
		return errors.Join(s.deleteVolume(ctx, s.view.volumeOf(claimName(i))), s.deleteClaim(ctx, claimName(i)))
	})
	if err != nil {
		return err
	}
	err = s.view.await(ctx, "the deleted claims are gone", func(v *view) bool { return len(v.claims) == size })
	if err != nil {
		return err
	}
	return s.bindSingle(ctx, "bind beside failures", others+size)
}

// pods deletes claims in a namespace that has many pods, which use other claims.
func pods(ctx context.Context, s *session) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	size := s.turn.Scenario.Size
	if err := s.bindAll(ctx, size); err != nil {
		return err
	}
	err := inParallel(ctx, s.turn.Scenario.Others, func(ctx context.Context, i int) error {
		if _, err := s.client.CoreV1().Pods(s.namespace).Create(ctx, newPod(i), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create pod: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := s.awaitQuiet(ctx); err != nil {
		return err
	}
	_, err = s.measure(ctx, Reclaim, size, func(ctx context.Context) error { return s.reclaimAll(ctx, size) })
	return err
}

// newPod returns a pod like those of a StatefulSet.
func newPod(i int) *v1.Pod {
	name := fmt.Sprintf("pod-%d", i)
	container := v1.Container{
		Name: "database", Image: "example.com/database:1",
		Env:          []v1.EnvVar{{Name: "CLUSTER", Value: "database"}, {Name: "MEMBER", Value: name}},
		VolumeMounts: []v1.VolumeMount{{Name: "data", MountPath: "/data"}},
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/name": "database"}},
		Spec: v1.PodSpec{
			Containers: []v1.Container{container},
			Volumes: []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
				PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data-of-" + name},
			}}},
		},
	}
}
