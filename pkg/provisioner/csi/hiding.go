package csi

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// discreet has what is logged of a call stripped of the values of its secrets, should
// the driver repeat one in its answer. What the request has of them is stripped
// anyway.
func discreet(ctx context.Context, secrets map[string]string) context.Context {
	logger := klog.FromContext(ctx)
	if len(secrets) == 0 || logger.GetSink() == nil {
		return ctx
	}
	return klog.NewContext(ctx, logger.WithSink(hiding{logger.GetSink(), secrets}))
}

// hiding is a log from which secrets are kept.
type hiding struct {
	logr.LogSink
	secrets map[string]string
}

// Info logs what is left.
func (h hiding) Info(level int, message string, keysAndValues ...any) {
	h.LogSink.Info(level, Hide(message, h.secrets), h.values(keysAndValues)...)
}

// Error logs what is left.
func (h hiding) Error(err error, message string, keysAndValues ...any) {
	if err != nil {
		err = errors.New(Hide(err.Error(), h.secrets))
	}
	h.LogSink.Error(err, Hide(message, h.secrets), h.values(keysAndValues)...)
}

// WithValues hides secrets in what is added, too.
func (h hiding) WithValues(keysAndValues ...any) logr.LogSink {
	return hiding{h.LogSink.WithValues(h.values(keysAndValues)...), h.secrets}
}

// WithName hides secrets below the name, too.
func (h hiding) WithName(name string) logr.LogSink {
	return hiding{h.LogSink.WithName(name), h.secrets}
}

func (h hiding) values(given []any) []any {
	shown := make([]any, len(given))
	for i, value := range given {
		switch value := value.(type) {
		case string:
			shown[i] = Hide(value, h.secrets)
		case error:
			shown[i] = Hide(value.Error(), h.secrets)
		case fmt.Stringer: // a request: a handle may have a value in it
			shown[i] = Hide(value.String(), h.secrets)
		default:
			shown[i] = value
		}
	}
	return shown
}
