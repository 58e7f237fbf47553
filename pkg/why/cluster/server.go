package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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

// IsFeatureOff reports whether the metrics of the API server say that a feature gate is off. It is false without the
// right to read them.
func (r *Reader) IsFeatureOff(ctx context.Context, name string) bool {
	body, err := r.kubernetes.Discovery().RESTClient().Get().AbsPath("/metrics").SetHeader("Accept", "text/plain").Stream(ctx)
	if err != nil {
		return false
	}
	defer func() { _ = body.Close() }()
	for lines := bufio.NewScanner(body); lines.Scan(); {
		if state, found := strings.CutPrefix(lines.Text(), `kubernetes_feature_enabled{name="`+name+`",`); found {
			return strings.HasSuffix(state, "} 0")
		}
	}
	return false
}

// ServerTime returns the time by the clock of the API server, and false before its first answer with a time.
func (r *Reader) ServerTime() (time.Time, bool) {
	r.server.mu.Lock()
	known := !r.server.date.IsZero()
	r.server.mu.Unlock()
	return r.Now(), known
}
