package cluster

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// Reach returns an error if the API server does not answer, or does not know the user. Without
// this request each of many lists would fail for the same reason.
func (r *Reader) Reach(ctx context.Context) error {
	request := r.kubernetes.Discovery().RESTClient().Get().AbsPath("/version").SetHeader("Accept", runtime.ContentTypeJSON)
	_, err := request.Do(ctx).Raw()
	var answer apierrors.APIStatus
	if errors.As(err, &answer) && !apierrors.IsUnauthorized(err) && !apierrors.IsTimeout(err) {
		return nil
	}
	return err
}
