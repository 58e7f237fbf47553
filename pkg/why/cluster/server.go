package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
)

// Version reads the version of the API server, such as v1.36.3.
func (r *Reader) Version(ctx context.Context) (string, error) {
	request := r.kubernetes.Discovery().RESTClient().Get().AbsPath("/version").
		SetHeader("Accept", runtime.ContentTypeJSON)
	text, err := request.Do(ctx).Raw()
	if err != nil {
		return "", fmt.Errorf("read the version of the API server: %w", err)
	}
	var info version.Info
	if err := json.Unmarshal(text, &info); err != nil || info.GitVersion == "" {
		return "", errors.New("read the version of the API server: the answer names none")
	}
	return info.GitVersion, nil
}

// ServerTime returns the time by the clock of the API server, and false before its first answer with a time.
func (r *Reader) ServerTime() (time.Time, bool) {
	r.server.mu.Lock()
	known := !r.server.date.IsZero()
	r.server.mu.Unlock()
	return r.Now(), known
}
