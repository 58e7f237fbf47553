package provisioning

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
)

// errFound ends a live list early.
var errFound = errors.New("found")

// someObject reports whether some object of a live list, read page by page, is as
// wanted.
func someObject[T any](ctx context.Context, list pager.ListPageFunc, wanted func(T) bool) (bool, error) {
	err := pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		if typed, ok := object.(T); ok && wanted(typed) {
			return errFound
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return false, fmt.Errorf("list all objects: %w", err)
	}
	return err != nil, nil
}

// someVolume reports whether some PersistentVolume, read live, is as wanted.
func someVolume(ctx context.Context, client kubernetes.Interface, wanted func(*v1.PersistentVolume) bool) (bool, error) {
	return someObject(ctx, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().PersistentVolumes().List(ctx, options)
	}, wanted)
}

// someClaim reports whether some claim, read live, is as wanted.
func someClaim(ctx context.Context, client kubernetes.Interface, wanted func(*v1.PersistentVolumeClaim) bool) (bool, error) {
	return someObject(ctx, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, options)
	}, wanted)
}
