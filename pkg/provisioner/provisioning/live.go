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

	"github.com/exeunt-io/exeunt/internal/answer"
)

// errFound ends a live list early.
var errFound = errors.New("found")

// anyObject reports whether an object of a live list, read page by page, matches.
func anyObject[T any](ctx context.Context, list pager.ListPageFunc, matches func(T) bool) (bool, error) {
	err := pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		if typed, ok := object.(T); ok && matches(typed) {
			return errFound
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return false, fmt.Errorf("list all objects: %w", err)
	}
	return err != nil, nil
}

// anyVolume reports whether a PersistentVolume, read live, matches.
func anyVolume(ctx context.Context, client kubernetes.Interface, matches func(*v1.PersistentVolume) bool) (bool, error) {
	return anyObject(ctx, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return answer.CheckedList(client.CoreV1().PersistentVolumes().List(ctx, options))
	}, matches)
}

// anyClaim reports whether a claim, read live, matches.
func anyClaim(ctx context.Context, client kubernetes.Interface, matches func(*v1.PersistentVolumeClaim) bool) (bool, error) {
	return anyObject(ctx, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return answer.CheckedList(client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, options))
	}, matches)
}
